//! What each task may see. A view has no field for anything that its role must not see.

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::task::{MemberState, Question, SourceInfo, TaskKind};
use crate::{
    Accounting, Alert, Domain, FileHash, Finding, JournalEntry, LeadState, Review, Reviewed, SourceCoverage,
    SourceNote, Timeline, Toolset, Usage,
};

/// The Director sees derived text only, never raw evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectorView {
    pub alert: Alert,
    pub journal: Vec<JournalEntry>,
    pub review: Option<Review>,
    pub timeline: Option<Timeline>,
    /// How much each event of the Timeline matters, the least important to be cut first.
    #[serde(default)]
    pub ranks: Vec<u64>,
    /// The Critic's leads of the last Review, and what has become of them.
    #[serde(default)]
    pub leads: Vec<LeadState>,
    /// Every credible finding of all rounds, without quotations. Only for the report.
    #[serde(default)]
    pub credible: Vec<Reviewed>,
    /// The acts that a dismissal must account for. None if no Expert has listed them.
    #[serde(default)]
    pub accounting: Option<Accounting>,
    pub roster: Vec<MemberState>,
    /// Notes on the sources that findings rest on: clocks, missing records.
    #[serde(default)]
    pub notes: Vec<SourceNote>,
    /// Of which hosts, kinds and times the sources have records.
    #[serde(default)]
    pub coverage: Vec<SourceCoverage>,
    /// The limits that the sources of the roster set to every finding and verdict.
    #[serde(default)]
    pub out_of_reach: Vec<String>,
    pub used: Usage,
    /// The limit that is near, and how near it is.
    pub warning: Option<String>,
    /// Why the investigation must conclude now.
    pub stop_reason: Option<String>,
}

/// An Expert does not see Review, Timeline or other Experts' findings, so that they cannot influence it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpertView {
    pub alert: Alert,
    pub journal: Vec<JournalEntry>,
    pub question: Question,
    pub toolset: Toolset,
    pub sources: Vec<SourceInfo>,
    /// Its own findings of earlier rounds, for the tool `my_findings`. The prompt does not show them.
    #[serde(default)]
    pub earlier: Vec<Finding>,
    /// The evidence files that the domain read for this investigation. Later tasks read the same parts of them. The
    /// prompt does not show them.
    #[serde(default)]
    pub snapshot: Vec<FileHash>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedFinding {
    pub finding: Finding,
    pub checked: Checked,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainToolset {
    pub domain: Domain,
    pub toolset: Toolset,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewView {
    /// None in views of older versions.
    #[serde(default)]
    pub alert: Option<Alert>,
    /// The question that the findings answer. None in views of older versions.
    #[serde(default)]
    pub question: Option<Question>,
    pub journal: Vec<JournalEntry>,
    pub findings: Vec<CheckedFinding>,
    /// Findings of earlier rounds that a finding of this round may contradict or support.
    #[serde(alias = "contradicted")]
    pub earlier: Vec<CheckedFinding>,
    /// The acts that a dismissal must account for. None if no Expert has listed them.
    #[serde(default)]
    pub accounting: Option<Accounting>,
    pub toolsets: Vec<DomainToolset>,
    /// Notes on the sources that the findings rest on: clocks, missing records.
    #[serde(default)]
    pub notes: Vec<SourceNote>,
    /// Of which hosts, kinds and times the sources have records.
    #[serde(default)]
    pub coverage: Vec<SourceCoverage>,
    /// The limits that Experts of this round reached, each as `domain: limit`.
    #[serde(default)]
    pub limits: Vec<String>,
    /// The limits that the sources of the roster set to every finding and verdict.
    #[serde(default)]
    pub out_of_reach: Vec<String>,
}

/// The Timeline task has no tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineView {
    pub journal: Vec<JournalEntry>,
    pub review: Review,
    pub previous: Option<Timeline>,
    /// How much each event of the previous Timeline matters, the least important to be cut first.
    #[serde(default)]
    pub ranks: Vec<u64>,
}

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
