//! The two rubrics: the credibility of a finding (Review) and the coherence of the story (Timeline). Both have five
//! labels over the same half-open bands.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A score from 0.0 to 1.0, kept to three decimals so that stored text and value are equal.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(f64);

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("score {0} is not between 0.0 and 1.0")]
pub struct NotAScore(f64);

impl Score {
    pub const ZERO: Self = Self(0.0);

    pub fn new(value: f64) -> Result<Self, NotAScore> {
        if (0.0..=1.0).contains(&value) { Ok(Self((value * 1000.0).round() / 1000.0)) } else { Err(NotAScore(value)) }
    }

    /// The nearest score to `value`; 0.0 for NaN.
    #[must_use]
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() {
            return Self::ZERO;
        }
        Self((value.clamp(0.0, 1.0) * 1000.0).round() / 1000.0)
    }

    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

impl TryFrom<f64> for Score {
    type Error = NotAScore;
    fn try_from(value: f64) -> Result<Self, NotAScore> {
        Self::new(value)
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> Self {
        score.0
    }
}

fn band(score: Score) -> usize {
    [0.3, 0.5, 0.7, 0.9].iter().filter(|&&from| score.0 >= from).count()
}

/// Declares five labels, the worst first, each with its name and description, and the text of the rubric, the best
/// first.
macro_rules! rubric {
    ($(#[$meta:meta])* $name:ident, $(#[$text_meta:meta])* $text:ident {
        $a:ident = $an:literal, $am:literal; $b:ident = $bn:literal, $bm:literal; $c:ident = $cn:literal, $cm:literal;
        $d:ident = $dn:literal, $dm:literal; $e:ident = $en:literal, $em:literal;
        $($(#[$other_meta:meta])* outside $other:ident = $on:literal;)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $a, $b, $c, $d, $e, $($(#[$other_meta])* $other)? }

        impl $name {
            pub const BANDS: [Self; 5] = [Self::$a, Self::$b, Self::$c, Self::$d, Self::$e];

            #[must_use]
            pub fn of(score: Score) -> Self {
                Self::BANDS.get(band(score)).copied().unwrap_or(Self::$a)
            }

            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::$a => $an, Self::$b => $bn, Self::$c => $cn, Self::$d => $dn, Self::$e => $en,
                    $(Self::$other => $on,)?
                }
            }
        }

        $(#[$text_meta])*
        pub const $text: &str = concat!(
            "0.9-1.0 ", $en, ": ", $em, "\n0.7-0.89 ", $dn, ": ", $dm, "\n0.5-0.69 ", $cn, ": ", $cm,
            "\n0.3-0.49 ", $bn, ": ", $bm, "\n0.0-0.29 ", $an, ": ", $am
        );
    };
}

rubric! {
    Credibility,
    CREDIBILITY_RUBRIC {
        Misguided = "Misguided", "no evidence provided or misinterpreted";
        Speculative = "Speculative", "poor evidence support";
        Plausible = "Plausible", "mixed evidence support";
        HighlyPlausible = "Highly-plausible", "corroborated by a single source";
        Trustworthy = "Trustworthy", "supported by multiple sources with no contradictory indicators";
        /// Code capped the score for the form of its citations. The Critic's own score says how far it can be believed.
        outside CitationIncomplete = "citation incomplete";
    }
}

rubric! {
    Coherence,
    COHERENCE_RUBRIC {
        Invalid = "Invalid", "no evidence, confounding inconsistencies present";
        Speculative = "Speculative", "poor evidence support, significant gaps, conflicted narrative";
        Plausible = "Plausible", "some uncertainty in event ordering, notable gaps exist";
        HighlyPlausible = "Highly-plausible", "good evidence support, minor gaps present, mostly consistent Timeline";
        Trustworthy = "Trustworthy",
            "strong corroboration across multiple sources, consistent timestamps, no significant gaps";
    }
}

pub const CONSOLIDATION_RULES: &str = "\
1. Include only events supported by credible citations: speculation does not belong on the Timeline.
2. Remove duplicate entries describing the same event: an event does not appear twice because two Experts mentioned it.
3. When timestamps conflict, prefer the source with stronger evidence: a log entry's own time beats an inferred one.
4. Maintain chronological ordering based on the best available evidence.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_half_open() {
        let label = |value| Credibility::of(Score::new(value).unwrap()).name();
        assert_eq!(label(1.0), "Trustworthy");
        assert_eq!(label(0.9), "Trustworthy");
        assert_eq!(label(0.899), "Highly-plausible");
        assert_eq!(label(0.7), "Highly-plausible");
        assert_eq!(label(0.5), "Plausible");
        assert_eq!(label(0.3), "Speculative");
        assert_eq!(label(0.299), "Misguided");
        assert_eq!(Coherence::of(Score::ZERO).name(), "Invalid");
    }

    #[test]
    fn what_is_no_score_is_refused() {
        for value in [-0.001, 1.001, f64::NAN, f64::INFINITY] {
            assert!(Score::new(value).is_err());
        }
        assert_eq!(Score::clamped(f64::NAN), Score::ZERO);
        assert!(serde_json::from_str::<Score>("1.5").is_err());
    }
}
