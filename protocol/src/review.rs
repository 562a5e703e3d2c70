//! The Critic's Review: a score for every finding of a round. Each round replaces it.

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::{Bearing, Credibility, Finding, FindingId, LeadDraft, Rule, Score};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub finding: FindingId,
    pub score: Score,
    /// What was checked, and what it showed.
    pub rationale: String,
    /// Other findings that support it.
    pub corroborated_by: Vec<FindingId>,
    /// Findings that cannot be true together with it.
    pub contradicted_by: Vec<FindingId>,
}

impl Judgement {
    /// A judgement that names no other finding.
    pub fn new(finding: &FindingId, score: Score, rationale: &str) -> Self {
        let (corroborated_by, contradicted_by) = Default::default();
        Self { finding: finding.clone(), score, rationale: rationale.to_owned(), corroborated_by, contradicted_by }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewDraft {
    pub summary: String,
    /// Exactly one for each finding.
    pub judgements: Vec<Judgement>,
    /// What no finding mentions, at most [`MAX_LEADS`](crate::MAX_LEADS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<LeadDraft>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    pub finding: Finding,
    pub checked: Checked,
    /// The score after the rules.
    pub score: Score,
    /// That of the score, or `CitationIncomplete` if the form of its citations capped it.
    pub label: Credibility,
    /// The Critic's score.
    pub proposed: Score,
    pub capped_by: Vec<Rule>,
    pub rationale: String,
    pub corroborated_by: Vec<FindingId>,
    pub contradicted_by: Vec<FindingId>,
}

impl Reviewed {
    /// How much it matters if not everything can be shown. What speaks for a harmless explanation comes before what is
    /// about the alert, and then the score counts.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is between 0 and 1")]
    pub fn rank(&self) -> u64 {
        let draft = &self.finding.draft;
        let exonerates = draft.bearing == Bearing::Exonerating && self.checked.valid();
        let score = (self.score.get() * 1000.0).round() as u64;
        score + u64::from(draft.about_alert) * 2000 + u64::from(exonerates) * KEPT
    }
}

/// The rank of what is shown before all else, such as the earliest event.
pub const KEPT: u64 = 10_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub round: u32,
    pub summary: String,
    /// In order of id.
    pub findings: Vec<Reviewed>,
}
