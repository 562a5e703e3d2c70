//! The verdict on an alert, and what the rules did to a proposal.

use serde::{Deserialize, Serialize};

/// The answer to an alert (rule 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An attack.
    TruePositive,
    /// The rule is right, the activity harmless.
    BenignPositive,
    /// The rule is wrong.
    FalsePositive,
    /// Not shown either way: a person must look.
    Inconclusive,
}

impl Verdict {
    /// The name as stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TruePositive => "true_positive",
            Self::BenignPositive => "benign_positive",
            Self::FalsePositive => "false_positive",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// It closes the alert.
    #[must_use]
    pub const fn dismisses(self) -> bool {
        matches!(self, Self::BenignPositive | Self::FalsePositive)
    }
}

/// The verdict that counts, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    pub verdict: Verdict,
    /// What the Director proposed.
    pub proposed: Verdict,
    /// What it rests on.
    pub grounds: Vec<String>,
    /// What is missing for the verdict that was proposed.
    pub missing: Vec<String>,
}

/// A rule that capped, dropped or changed a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// 3.3: no citation: at most 0.29.
    CitationMissing,
    /// 3.3: a citation does not hold: at most 0.29.
    CitationDoesNotHold,
    /// 3.2: the claim states what its evidence does not: at most 0.29.
    ClaimNotInEvidence,
    /// 3.3: evidence from one source only: at most 0.89.
    SingleSource,
    /// The Review says nothing of a finding: it scores 0.
    NotReviewed,
    /// The Review judges what was not submitted: dropped.
    NotSubmitted,
    /// 3.4: not credible enough, or without a valid citation: not on the Timeline.
    NotCredible,
    /// 3.4: no finding gives the event a time: not on the Timeline.
    NoTime,
    /// 3.4: the description says what its findings do not: the finding's own words stand instead.
    NewFact,
    /// 3.4: the same occurrence twice: merged.
    Duplicate,
    /// 3.4: more than three gaps: the rest dropped.
    TooManyGaps,
    /// A Timeline without events cannot be coherent: at most 0.29.
    EmptyTimeline,
    /// 3.5: a dismissal without two independent checked sources: inconclusive.
    DismissalUnsupported,
    /// 3.5: an attack without a credible incriminating finding: inconclusive.
    AccusationUnsupported,
    /// The question names an Expert that is not on the roster: dropped from it.
    NotOnRoster,
    /// In discovery the question goes to everyone.
    DiscoveryAsksAll,
    /// The conclusion rests on findings that do not exist or are not credible, or a Journal entry
    /// cites one that does not exist: dropped from it.
    UnknownFinding,
    /// A Journal entry corrects one that does not exist: the reference is dropped.
    UnknownEntry,
    /// More findings in one answer than are kept: the rest dropped.
    TooManyFindings,
}

impl Rule {
    /// The name as stored, such as `single_source`.
    #[must_use]
    pub fn name(self) -> String {
        crate::hash::canonical_json(&self).trim_matches('"').to_owned()
    }
}

/// What a rule did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    pub rule: Rule,
    /// What it was applied to.
    pub subject: String,
    /// What it did and why.
    pub effect: String,
}
