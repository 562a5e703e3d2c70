//! The verdict on an alert, and what the rules did to a proposal.

use serde::{Deserialize, Serialize};

use crate::closed;

closed! {
    /// The answer to an alert (rule 3.5).
    pub enum Verdict {
        TruePositive = "true_positive", "an attack or breach took place";
        BenignPositive = "benign_positive", "the rule is right, the activity harmless and explained";
        FalsePositive = "false_positive", "the rule is wrong";
        Inconclusive = "inconclusive", "not shown either way";
    }
}

impl Verdict {
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

closed! {
    /// A rule that capped, dropped or changed a proposal.
    pub enum Rule {
        CitationMissing = "citation_missing", "3.3: no citation: at most 0.29";
        CitationDoesNotHold = "citation_does_not_hold", "3.3: a citation does not hold: at most 0.29";
        ClaimNotInEvidence = "claim_not_in_evidence", "3.2: the claim states what its evidence does not: at most 0.29";
        SingleSource = "single_source", "3.3: evidence from one source only: at most 0.89";
        NotReviewed = "not_reviewed", "The Review says nothing of a finding: it scores 0";
        NotSubmitted = "not_submitted", "The Review judges what was not submitted: dropped";
        NotCredible = "not_credible", "3.4: not credible enough, or without a valid citation: not on the Timeline";
        NoTime = "no_time", "3.4: no finding gives the event a time: not on the Timeline";
        NewFact = "new_fact",
            "3.4: the description says what its findings do not: the finding's own words stand instead";
        Duplicate = "duplicate", "3.4: the same occurrence twice: merged";
        TooManyGaps = "too_many_gaps", "3.4: more than three gaps: the rest dropped";
        EmptyTimeline = "empty_timeline", "A Timeline without events cannot be coherent: at most 0.29";
        DismissalUnsupported = "dismissal_unsupported",
            "3.5: a dismissal without two independent checked sources: inconclusive";
        AccusationUnsupported = "accusation_unsupported",
            "3.5: an attack without a credible incriminating finding: inconclusive";
        NotOnRoster = "not_on_roster", "The question names an Expert that is not on the roster: dropped from it";
        DiscoveryAsksAll = "discovery_asks_all", "In discovery the question goes to everyone";
        UnknownFinding = "unknown_finding",
            "The conclusion rests on findings that do not exist or are not credible, or a Journal entry cites one that does not exist: dropped from it";
        UnknownEntry = "unknown_entry", "A Journal entry corrects one that does not exist: the reference is dropped";
        TooManyFindings = "too_many_findings", "More findings in one answer than are kept: the rest dropped";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    pub rule: Rule,
    /// What it was applied to.
    pub subject: String,
    /// What it did and why.
    pub effect: String,
}
