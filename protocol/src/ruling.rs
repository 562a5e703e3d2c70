//! The verdict on an alert, and what the rules did to proposals.

use serde::{Deserialize, Serialize};

use crate::{Accounting, closed};

closed! {
    /// The answer to an alert (rule "verdict").
    pub enum Verdict {
        TruePositive = "true_positive", "an attack or breach took place";
        BenignPositive = "benign_positive", "the rule is right, the activity harmless and explained";
        FalsePositive = "false_positive", "the rule is wrong";
        Inconclusive = "inconclusive", "not shown either way";
    }
}

impl Verdict {
    /// True if the verdict closes the alert.
    #[must_use]
    pub const fn dismisses(self) -> bool {
        matches!(self, Self::BenignPositive | Self::FalsePositive)
    }
}

/// The verdict after the rules, and the reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    pub verdict: Verdict,
    pub proposed: Verdict,
    pub grounds: Vec<String>,
    /// What is missing for the proposed verdict.
    pub missing: Vec<String>,
    /// The acts that a dismissal must account for, and what explains each. None in logs of older versions, and if no
    /// Expert could list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
}

closed! {
    /// A rule that capped, dropped or changed a proposal (docs/rules.md).
    pub enum Rule {
        CitationMissing = "citation_missing", "no citation: at most 0.29";
        CitationDoesNotHold = "citation_does_not_hold", "a citation is not valid: at most 0.29";
        ClaimNotInEvidence = "claim_not_in_evidence", "the claim states something that its evidence does not: at most 0.29";
        TimeNotInEvidence = "time_not_in_evidence", "no cited record has the time of the finding: it loses the time";
        SingleSource = "single_source", "evidence from one sensor only: at most 0.89";
        Corroborated = "corroborated", "a finding of a later round supports it from another source: its cap is lifted";
        NotReviewed = "not_reviewed", "the Review does not mention the finding: it scores 0";
        NotSubmitted = "not_submitted", "the Review judges a finding that was not submitted in this round: dropped";
        NotCredible = "not_credible", "no finding of the event is credible and has valid citations: not on the Timeline";
        NoTime = "no_time", "no finding gives the event a time: not on the Timeline";
        NewFact = "new_fact",
            "a description or the narrative adds a fact to the findings: replaced by the text of the finding, or dropped";
        Duplicate = "duplicate", "the same occurrence twice: merged";
        TooManyGaps = "too_many_gaps", "more than three gaps: the rest is dropped";
        TooManyEvents = "too_many_events", "more than 60 events: those closest to the alert stay";
        EmptyTimeline = "empty_timeline", "a Timeline without events: coherence at most 0.29";
        DismissalUnsupported = "dismissal_unsupported",
            "a dismissal without two independent checked sources: inconclusive";
        AccusationUnsupported = "accusation_unsupported",
            "an attack without a credible incriminating finding: inconclusive";
        VerdictByClaim = "verdict_by_claim",
            "whether the claimed act happened decides between a benign and a false positive";
        NotOnRoster = "not_on_roster", "the question names an Expert that is not on the roster: the name is dropped";
        DiscoveryAsksAll = "discovery_asks_all", "in discovery a question goes to every Expert";
        UnknownFinding = "unknown_finding",
            "the conclusion cites a finding that does not exist or is not credible, or a Journal entry cites one that does not exist: the reference is dropped";
        UnknownEntry = "unknown_entry", "a Journal entry corrects an entry that does not exist: the reference is dropped";
        LeadWithoutPlace = "lead_without_place", "nothing is at the place that the Critic gives for a lead: dropped";
        LeadNotTakenUp = "lead_not_taken_up", "neither the question nor the Journal takes up a lead of the Critic";
        TooManyFindings = "too_many_findings", "more findings in one answer than the limit: the rest is dropped";
    }
}

impl Rule {
    /// True for a cap that the form of the citations causes, whatever the Critic thinks of the claim.
    #[must_use]
    pub const fn is_of_form(self) -> bool {
        matches!(self, Self::CitationMissing | Self::CitationDoesNotHold | Self::ClaimNotInEvidence)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    pub rule: Rule,
    /// The proposal that it was applied to.
    pub subject: String,
    pub effect: String,
}
