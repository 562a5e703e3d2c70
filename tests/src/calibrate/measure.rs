//! Summarises outcomes of trials: shares with intervals, and how well scores separate true from false.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use casebook_protocol::{Credibility, Score};
use serde::Serialize;

use super::kind::{By, Expect, Kind};
use super::trial::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    pub hits: usize,
    pub of: usize,
    /// Wilson's score interval, 0 to 1.
    pub low: f64,
    pub high: f64,
}

impl Share {
    /// Wilson's interval is accurate for few trials and for shares of 0 and 1.
    pub fn new(hits: usize, of: usize) -> Self {
        const Z: f64 = 1.959_964;
        if of == 0 {
            return Self { hits, of, low: 0.0, high: 1.0 };
        }
        let (n, p) = (of as f64, hits as f64 / of as f64);
        let z2 = Z * Z;
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        Self { hits, of, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
    }

    /// From 0 to 1; 0 if there are no trials.
    pub fn value(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.hits as f64 / self.of as f64 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub kind: Kind,
    pub expect: Expect,
    pub by: By,
    pub trials: usize,
    pub stopped: usize,
    /// Credible by the rule for Timeline membership.
    pub believed: usize,
    pub on_timeline: usize,
    pub right: Share,
}

/// How well a Critic's scores separate true from false.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    pub truths: usize,
    pub falsehoods: usize,
    /// The chance that a true finding scores higher than a false one; `None` if one group is empty.
    pub auroc: Option<f64>,
    /// Half of its 95% interval (Hanley and McNeil 1982).
    pub auroc_half: Option<f64>,
    /// The mean squared difference of the score from 1 (true) or 0 (false).
    pub brier: Option<f64>,
    /// The share of true findings in each band of the rubric, best band first.
    pub bands: Vec<(&'static str, Share)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    pub critic: String,
    pub rows: Vec<Row>,
    /// All findings that are true or false by themselves.
    pub all: Calibration,
    /// Findings that passed the mechanical check: the Critic's own merit.
    pub passed: Calibration,
    /// Trials without a score, because the Critic failed.
    pub unscored: usize,
}

pub fn measure(critic: &str, seen: &[Outcome]) -> Measure {
    let mut by_kind: BTreeMap<Kind, Vec<&Outcome>> = BTreeMap::new();
    for one in seen {
        by_kind.entry(one.kind).or_default().push(one);
    }
    let single = || seen.iter().filter(|s| matches!(s.kind.row().expect, Expect::Refused | Expect::Kept));
    Measure {
        critic: critic.to_owned(),
        rows: by_kind.into_iter().map(|(kind, seen)| row(kind, &seen)).collect(),
        all: calibration(&single().collect::<Vec<_>>()),
        passed: calibration(&single().filter(|s| s.passed).collect::<Vec<_>>()),
        unscored: seen.iter().filter(|s| s.score.is_none()).count(),
    }
}

fn row(kind: Kind, seen: &[&Outcome]) -> Row {
    let table = kind.row();
    let count = |test: fn(&Outcome) -> bool| seen.iter().filter(|s| test(s)).count();
    Row {
        kind,
        expect: table.expect,
        by: table.by,
        trials: seen.len(),
        stopped: count(|s| !s.passed),
        believed: count(|s| s.believed),
        on_timeline: count(|s| s.on_timeline),
        right: Share::new(count(Outcome::right), seen.len()),
    }
}

fn calibration(seen: &[&Outcome]) -> Calibration {
    let of = |truth: bool| -> Vec<f64> {
        seen.iter().filter(|s| (s.kind.row().expect == Expect::Kept) == truth).filter_map(|s| s.score).collect()
    };
    let (truths, falsehoods) = (of(true), of(false));
    let auroc = auroc(&truths, &falsehoods);
    let n = truths.len() + falsehoods.len();
    let squares: f64 = truths.iter().map(|s| (1.0 - s).powi(2)).chain(falsehoods.iter().map(|s| s * s)).sum();
    let bands = [0.9, 0.7, 0.5, 0.3, 0.0].map(|from| {
        let of = |score| Credibility::of(Score::clamped(score));
        let band = of(from);
        let within = |all: &[f64]| all.iter().filter(|score| of(**score) == band).count();
        let hits = within(&truths);
        (band.name(), Share::new(hits, hits + within(&falsehoods)))
    });
    Calibration {
        truths: truths.len(),
        falsehoods: falsehoods.len(),
        auroc,
        auroc_half: auroc.map(|a| hanley(a, truths.len() as f64, falsehoods.len() as f64)),
        brier: (n > 0).then(|| squares / n as f64),
        bands: bands.to_vec(),
    }
}

/// The chance that one of `high` is above one of `low`; a tie counts half.
fn auroc(high: &[f64], low: &[f64]) -> Option<f64> {
    if high.is_empty() || low.is_empty() {
        return None;
    }
    let win = |high: &f64, low: &f64| match high.total_cmp(low) {
        Ordering::Greater => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Less => 0.0,
    };
    let wins: f64 = high.iter().flat_map(|high| low.iter().map(move |low| win(high, low))).sum();
    Some(wins / (high.len() * low.len()) as f64)
}

fn hanley(a: f64, truths: f64, falsehoods: f64) -> f64 {
    let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
    let spread = a * (1.0 - a) + (truths - 1.0) * (q1 - a * a) + (falsehoods - 1.0) * (q2 - a * a);
    1.96 * (spread.max(0.0) / (truths * falsehoods)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let share = Share::new(0, 100);
        assert!((share.high - 0.037).abs() < 0.001 && share.low == 0.0, "{share:?}");
        let share = Share::new(81, 263);
        assert!((share.low - 0.2553).abs() < 0.001 && (share.high - 0.3662).abs() < 0.001, "{share:?}");
    }

    #[test]
    fn scores_that_tell_nothing_have_half() {
        assert_eq!(auroc(&[0.5, 0.5], &[0.5]), Some(0.5));
        assert_eq!(auroc(&[0.9, 0.8], &[0.1, 0.2]), Some(1.0));
        assert_eq!(auroc(&[0.9, 0.1], &[0.5]), Some(0.5));
        assert_eq!(auroc(&[], &[0.5]), None);
    }
}
