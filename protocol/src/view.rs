//! What each of the six tasks may see.
//!
//! A view holds what the design's table in section 1 allows and nothing else: what a role must never
//! see has no field to be in.

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::task::{MemberState, Question, SourceInfo, TaskKind};
use crate::{Alert, Domain, Finding, JournalEntry, Review, Timeline, Toolset, Usage};

/// What the Director sees: derived text alone, never raw bytes of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectorView {
    pub alert: Alert,
    pub journal: Vec<JournalEntry>,
    pub review: Option<Review>,
    pub timeline: Option<Timeline>,
    /// Who is there.
    pub roster: Vec<MemberState>,
    /// What is used so far.
    pub used: Usage,
    /// Near the limit: which one, and how near.
    pub warning: Option<String>,
    /// Why the investigation must conclude now, if it must.
    pub stop_reason: Option<String>,
}

/// What an Expert sees: neither Review nor Timeline nor other Experts' findings, so that it is not
/// led by them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpertView {
    pub alert: Alert,
    pub journal: Vec<JournalEntry>,
    pub question: Question,
    pub toolset: Toolset,
    /// The sources behind it.
    pub sources: Vec<SourceInfo>,
}

/// A finding with the result of its mechanical check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedFinding {
    pub finding: Finding,
    /// What code found out about its citations.
    pub checked: Checked,
}

/// Which Expert had which tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainToolset {
    pub domain: Domain,
    pub toolset: Toolset,
}

/// What the Critic sees to review a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewView {
    pub journal: Vec<JournalEntry>,
    /// This round's findings.
    pub findings: Vec<CheckedFinding>,
    /// Findings of earlier rounds that one of this round's contradicts.
    pub contradicted: Vec<CheckedFinding>,
    /// Every toolset by Expert, for the Critic's tools.
    pub toolsets: Vec<DomainToolset>,
}

/// What the Critic sees to rewrite the Timeline. It has no tools here at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineView {
    pub journal: Vec<JournalEntry>,
    /// This round's Review.
    pub review: Review,
    /// The Timeline so far.
    pub previous: Option<Timeline>,
}

/// What a task may know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    Plan(Box<DirectorView>),
    Investigate(Box<ExpertView>),
    Review(Box<ReviewView>),
    Timeline(Box<TimelineView>),
    Decide(Box<DirectorView>),
    Report(Box<DirectorView>),
}

impl View {
    pub const fn kind(&self) -> TaskKind {
        match self {
            Self::Plan(_) => TaskKind::Plan,
            Self::Investigate(_) => TaskKind::Investigate,
            Self::Review(_) => TaskKind::Review,
            Self::Timeline(_) => TaskKind::Timeline,
            Self::Decide(_) => TaskKind::Decide,
            Self::Report(_) => TaskKind::Report,
        }
    }
}
