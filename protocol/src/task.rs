//! The six tasks, the roles that perform them, and their outcomes. A task sees only its [`View`].

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    Domain, FindingDraft, FindingId, HostCoverage, InvestigationId, LeadId, ReviewDraft, TaskId, TimelineDraft,
    Toolset, Usage, Verdict, View, closed, journal::EntryDraft,
};

closed! {
    #[derive(Default)]
    pub enum Phase {
        #[default]
        Discovery = "discovery", "one broadcast question, so that every Expert examines its sources";
        Trace = "trace", "the Director questions the Experts that it chooses";
        Conclude = "conclude", "the report";
    }
}

closed! {
    pub enum TaskKind {
        Plan = "plan", "Director: what to ask, and whom";
        Investigate = "investigate", "Expert: answer with findings";
        Review = "review", "Critic: score every finding";
        Timeline = "timeline", "Critic: fold the credible into the story";
        Decide = "decide", "Director: stay or advance";
        Report = "report", "Director: conclude";
    }
}

impl TaskKind {
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Self::Plan | Self::Decide | Self::Report => Role::Director,
            Self::Investigate => Role::Expert,
            Self::Review | Self::Timeline => Role::Critic,
        }
    }
}

closed! {
    pub enum Role {
        Director = "director", "plans, decides, reports";
        Expert = "expert", "investigates in one domain";
        Critic = "critic", "reviews, and keeps the Timeline";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SourceInfo {
    /// Its id in tool results.
    pub source: String,
    /// What wrote it. Sources of one sensor are not independent of each other.
    pub sensor: String,
    /// The described host writes it, so an attacker on that host can change it (rule "verdict").
    pub on_subject_host: bool,
    pub records: u64,
    pub about: String,
    /// Of which hosts it has records, and of which kinds. Empty if that is not known.
    #[serde(default)]
    pub coverage: Vec<HostCoverage>,
}

impl SourceInfo {
    /// A source on another host, of which no more is known.
    pub fn new(source: impl Into<String>, sensor: impl Into<String>) -> Self {
        let (source, sensor) = (source.into(), sensor.into());
        Self { source, sensor, on_subject_host: false, records: 0, about: String::new(), coverage: Vec::new() }
    }
}

/// Logs of older versions have no coverage, and their hashes are over the text: an empty one is not written. Messages
/// between processes do not name their fields, so there none may be left out.
impl Serialize for SourceInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = !serializer.is_human_readable() || !self.coverage.is_empty();
        let mut written = serializer.serialize_struct("SourceInfo", 5 + usize::from(whole))?;
        written.serialize_field("source", &self.source)?;
        written.serialize_field("sensor", &self.sensor)?;
        written.serialize_field("on_subject_host", &self.on_subject_host)?;
        written.serialize_field("records", &self.records)?;
        written.serialize_field("about", &self.about)?;
        if whole {
            written.serialize_field("coverage", &self.coverage)?;
        }
        written.end()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub domain: Domain,
    /// What the Director reads about the Expert: its knowledge and its sources.
    pub description: String,
    pub sources: Vec<SourceInfo>,
    pub toolset: Toolset,
    /// The domains of its evidence, besides its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<Domain>,
    /// The most that the first call of its model can use, at least. None for the built-in analyst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_call: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    pub domain: Domain,
    pub description: String,
    /// Why the Expert cannot be asked now, or why its last task failed.
    pub trouble: Option<String>,
    /// The limits that its last task reached.
    #[serde(default)]
    pub limit: Option<String>,
    /// The domains of its evidence, besides its own.
    #[serde(default)]
    pub covers: Vec<Domain>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub text: String,
    /// The domains that it goes to; empty for every Expert on the roster.
    pub to: Vec<Domain>,
    /// Names, addresses and ids to follow, as the evidence writes them.
    pub follow: Vec<String>,
}

/// The Director's plan for a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(flatten)]
    pub question: Question,
    /// The leads of the last Review that the question takes up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes_up: Vec<LeadId>,
}

impl From<Question> for Plan {
    fn from(question: Question) -> Self {
        Self { question, takes_up: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// The last turn offers no tools.
    pub turns: u32,
    pub tool_calls: u32,
    /// The largest tool result that is kept, in bytes. A call with a larger one fails.
    pub result_bytes: u64,
    /// Includes repairs and fallbacks.
    pub model_calls: u32,
    /// Input and output tokens of models.
    pub tokens: u64,
    /// Money, in millionths.
    pub cost_micros: u64,
    pub seconds: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            turns: 24,
            tool_calls: 120,
            result_bytes: 16 * 1024 * 1024,
            model_calls: 64,
            tokens: 2_000_000,
            cost_micros: 10_000_000,
            seconds: 1_800,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub investigation: InvestigationId,
    /// None for Director and Critic.
    pub domain: Option<Domain>,
    pub phase: Phase,
    pub round: u32,
    pub view: View,
    pub allowance: Allowance,
}

impl TaskId {
    /// The task of a kind in a round; one for each domain.
    #[must_use]
    pub fn of(round: u32, kind: TaskKind, domain: Option<&Domain>) -> Self {
        let text = match domain {
            Some(domain) => format!("r{round}.{}.{domain}", kind.name()),
            None => format!("r{round}.{}", kind.name()),
        };
        // Every part is valid, and the longest id has 54 characters.
        Self::new(text).unwrap_or_else(|_| unreachable!("a task id is made of valid parts"))
    }
}

/// The name of the built-in analyst as a [`Player`].
pub const ANALYST: &str = "built-in analyst";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// `built-in analyst`, or the name of a model.
    pub name: String,
    pub version: String,
    /// It is the built-in analyst: code, which no text in the evidence can influence.
    pub built_in: bool,
}

closed! {
    pub enum Move {
        Stay = "stay", "another round in this phase";
        Advance = "advance", "on to the next phase";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub next: Move,
    pub reason: String,
}

/// The Director's conclusion as proposed. The Hub makes the report from it and from the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// The proposed verdict. A dismissal must pass the rule "verdict".
    pub verdict: Verdict,
    /// A few sentences for the person on call.
    pub summary: String,
    /// The cause, as far as the evidence shows it.
    pub root_cause: String,
    /// Most urgent first.
    pub actions: Vec<String>,
    /// What stays open, and what a person should examine.
    pub open_questions: Vec<String>,
    pub findings: Vec<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Plan(Plan),
    Investigate(Vec<FindingDraft>),
    Review(ReviewDraft),
    Timeline(TimelineDraft),
    Decide(Decision),
    Report(Conclusion),
}

impl Answer {
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The end of a task, recorded once even if workers crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub task: TaskId,
    pub player: Player,
    pub result: Result<Answer, String>,
    /// The Director's new Journal entries. Empty for other roles.
    pub journal: Vec<EntryDraft>,
    pub calls: Vec<crate::ToolCall>,
    pub asked: Vec<crate::ModelCall>,
    /// Findings that code itself makes from an Expert's tool results. They do not depend on the reasoner and its
    /// answer.
    pub raised: Vec<FindingDraft>,
    /// The acts that a dismissal must account for, as far as the evidence of this Expert shows them. None for other
    /// roles, and for evidence that code cannot read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts: Option<crate::Acts>,
    /// The evidence files that this Expert reads. None for other roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<crate::Files>,
    /// The findings that an Expert corrected after code returned them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrected: u32,
    /// The limits that an Expert reached, by code: what it did not find may only be out of their reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    pub usage: Usage,
}

impl Outcome {
    /// The end of a task in which nothing was called and used.
    pub fn new(task: TaskId, player: Player, result: Result<Answer, String>) -> Self {
        let ((journal, calls, asked, raised, limits), (acts, files, corrected, usage)) = Default::default();
        Self { task, player, result, journal, calls, asked, raised, acts, files, corrected, limits, usage }
    }
}
