//! The Critic's Review: a score for every finding of a round. Each round replaces it.

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::{Credibility, Finding, FindingId, LeadDraft, Rule, Score};

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub round: u32,
    pub summary: String,
    /// In order of id.
    pub findings: Vec<Reviewed>,
}
