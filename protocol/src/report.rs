//! The final report: one JSON document from which the other forms are made.

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::ruling::{Guard, Ruling};
use crate::{
    Alert, ArtifactId, Citation, Coherence, Credibility, Domain, EventTime, Finding, FindingId, Gap, InvestigationId,
    JournalEntry, LeadState, Phase, Player, Proof, Rule, Score, SourceCoverage, SourceNote, TaskId, TaskKind,
    Timestamp, ToolCall, Usage, Verdict,
};

pub const REPORT_VERSION: u16 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub casebook_report: u16,
    pub investigation: InvestigationId,
    pub opened: Timestamp,
    pub closed: Timestamp,
    pub alert: Alert,
    pub verdict: Verdict,
    /// What happened to whom, how sure, and since when, in at most 30 words. Empty in reports of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headline: String,
    pub ruling: Ruling,
    /// Why the investigation ended, unless the Director ended it.
    pub stop_reason: Option<String>,
    /// A few sentences for the person on call.
    pub summary: String,
    pub root_cause: String,
    /// Most urgent first.
    pub actions: Vec<String>,
    pub open_questions: Vec<String>,
    /// The findings that support the verdict.
    pub rests_on: Vec<FindingId>,
    /// Notes on the sources that credible findings rest on: clocks, missing or malformed records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_notes: Vec<SourceNote>,
    /// Of which hosts, kinds and times the sources have records. Empty in reports of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<SourceCoverage>,
    pub timeline: ReportTimeline,
    pub findings: Vec<ReportFinding>,
    /// Differences between Expert and Critic, and contradictions between findings.
    pub disagreements: Vec<Disagreement>,
    pub blind_spots: Vec<String>,
    /// The limits that the sources set to every finding and verdict. Empty in reports of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_reach: Vec<String>,
    /// What the Critic noticed and no finding mentions, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<LeadState>,
    pub journal: Vec<JournalEntry>,
    /// What the rules capped, dropped or changed.
    pub guards: Vec<Guard>,
    /// Every tool call, so that a reader can follow a citation to its bytes.
    pub calls: Vec<ToolCall>,
    pub usage: ReportUsage,
    /// None in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportTimeline {
    pub narrative: String,
    pub score: Score,
    pub label: Coherence,
    pub events: Vec<ReportEvent>,
    pub gaps: Vec<Gap>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportEvent {
    pub time: Timestamp,
    pub when: EventTime,
    pub description: String,
    /// The best score among its findings.
    pub score: Score,
    pub findings: Vec<FindingId>,
    pub evidence: Vec<RecordRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportCitation {
    pub citation: Citation,
    pub holds: bool,
    pub note: String,
    pub artifact: Option<ArtifactId>,
    pub records: Vec<RecordRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportFinding {
    pub finding: Finding,
    /// The score after the rules; none if the finding was never reviewed.
    pub score: Option<Score>,
    pub label: Option<Credibility>,
    /// The Critic's score before the rules. None if it was never reviewed, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Score>,
    pub capped_by: Vec<Rule>,
    pub rationale: String,
    pub corroborated_by: Vec<FindingId>,
    pub contradicted_by: Vec<FindingId>,
    pub citations: Vec<ReportCitation>,
    /// What the claim states without evidence.
    pub faults: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    pub findings: Vec<FindingId>,
    pub about: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskUsage {
    pub task: TaskId,
    pub kind: TaskKind,
    /// Set for an Expert's task.
    pub domain: Option<Domain>,
    pub phase: Phase,
    pub player: Option<Player>,
    pub failed: Option<String>,
    /// The findings that its Expert corrected after code returned them.
    #[serde(default, skip_serializing_if = "crate::task::is_zero")]
    pub corrected: u32,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportUsage {
    pub rounds: u32,
    pub total: Usage,
    pub tasks: Vec<TaskUsage>,
}
