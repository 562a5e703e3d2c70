//! The Critic's Review: every finding of a round, scored (replaced each round; design, section 2).

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::{Credibility, Finding, FindingId, Rule, Score};

/// The Critic's judgement of one finding, as proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub finding: FindingId,
    /// How far it can be believed, by the credibility rubric.
    pub score: Score,
    /// Why: what was checked and what it showed.
    pub rationale: String,
    /// Findings that support it from elsewhere.
    pub corroborated_by: Vec<FindingId>,
    /// Findings that it cannot be true together with.
    pub contradicted_by: Vec<FindingId>,
}

/// The Review as the Critic proposes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewDraft {
    /// What the round amounts to.
    pub summary: String,
    /// One judgement a finding, no more and no fewer.
    pub judgements: Vec<Judgement>,
}

/// A finding with its judgement after the rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    pub finding: Finding,
    /// The result of the mechanical check.
    pub checked: Checked,
    /// The score that counts.
    pub score: Score,
    pub label: Credibility,
    pub proposed: Score,
    pub capped_by: Vec<Rule>,
    /// The Critic's reasons.
    pub rationale: String,
    /// Findings that support it.
    pub corroborated_by: Vec<FindingId>,
    /// Findings against it.
    pub contradicted_by: Vec<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub round: u32,
    /// What the round amounts to.
    pub summary: String,
    /// The findings, by id.
    pub findings: Vec<Reviewed>,
}
