//! The final report: one JSON document from which the other forms are made (design, section 7).

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::ruling::{Guard, Ruling};
use crate::{
    Alert, ArtifactId, Citation, Coherence, Credibility, Domain, EventTime, Finding, FindingId, Gap, InvestigationId,
    JournalEntry, Phase, Player, Rule, Score, TaskId, TaskKind, Timestamp, ToolCall, Usage, Verdict,
};

/// The version of the report that is written.
pub const REPORT_VERSION: u16 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub casebook_report: u16,
    pub investigation: InvestigationId,
    pub opened: Timestamp,
    pub closed: Timestamp,
    pub alert: Alert,
    /// The verdict that counts.
    pub verdict: Verdict,
    /// How it came about (rule 3.5).
    pub ruling: Ruling,
    /// Why it ended, when the Director did not end it by itself.
    pub stop_reason: Option<String>,
    /// A few sentences for whoever is on call.
    pub summary: String,
    pub root_cause: String,
    /// What to do, most urgent first.
    pub actions: Vec<String>,
    pub open_questions: Vec<String>,
    /// The findings that the verdict rests on.
    pub rests_on: Vec<FindingId>,
    pub timeline: ReportTimeline,
    /// Every finding with its latest score.
    pub findings: Vec<ReportFinding>,
    /// Where Expert and Critic differ, and where findings contradict each other.
    pub disagreements: Vec<Disagreement>,
    /// What no Expert could see.
    pub blind_spots: Vec<String>,
    pub journal: Vec<JournalEntry>,
    /// What the rules capped, dropped or changed.
    pub guards: Vec<Guard>,
    /// Every tool call, for the way from a citation to its bytes.
    pub calls: Vec<ToolCall>,
    pub usage: ReportUsage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportTimeline {
    /// The story in a few sentences.
    pub narrative: String,
    /// How well it holds together.
    pub score: Score,
    pub label: Coherence,
    /// Its events in order.
    pub events: Vec<ReportEvent>,
    pub gaps: Vec<Gap>,
}

/// An event of the Timeline in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportEvent {
    /// The moment, RFC 3339 in UTC.
    pub time: Timestamp,
    /// How that moment is known.
    pub when: EventTime,
    pub description: String,
    /// The best score among its findings.
    pub score: Score,
    /// The findings that it stands on.
    pub findings: Vec<FindingId>,
    /// The records that it leads to.
    pub evidence: Vec<RecordRef>,
}

/// A citation in the report, followed to its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportCitation {
    pub citation: Citation,
    pub holds: bool,
    /// What the check found.
    pub note: String,
    pub artifact: Option<ArtifactId>,
    pub records: Vec<RecordRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportFinding {
    pub finding: Finding,
    /// The score that counts; none when it was never reviewed.
    pub score: Option<Score>,
    pub label: Option<Credibility>,
    pub capped_by: Vec<Rule>,
    /// The Critic's reasons.
    pub rationale: String,
    /// Findings that support it.
    pub corroborated_by: Vec<FindingId>,
    /// Findings against it.
    pub contradicted_by: Vec<FindingId>,
    /// What it cites.
    pub citations: Vec<ReportCitation>,
    /// What the claim states and its evidence does not.
    pub faults: Vec<String>,
}

/// A difference of opinion that a reader should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The findings concerned.
    pub findings: Vec<FindingId>,
    /// What differs.
    pub about: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskUsage {
    pub task: TaskId,
    pub kind: TaskKind,
    /// The Expert.
    pub domain: Option<Domain>,
    pub phase: Phase,
    pub player: Option<Player>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportUsage {
    pub rounds: u32,
    pub total: Usage,
    /// By task.
    pub tasks: Vec<TaskUsage>,
}
