//! The six tasks, who is there to do them, and what each answers (its outcome). What each may see is its [`View`].

use serde::{Deserialize, Serialize};

use crate::{
    Domain, FindingDraft, FindingId, InvestigationId, ReviewDraft, TaskId, TimelineDraft, Toolset, Usage, Verdict,
    View, closed, journal::EntryDraft,
};

closed! {
    /// How far the investigation has come.
    #[derive(Default)]
    pub enum Phase {
        #[default]
        Discovery = "discovery", "one broadcast question, so that every Expert examines its sources";
        Trace = "trace", "the Director questions the Experts that it chooses";
        Conclude = "conclude", "the report";
    }
}

closed! {
    /// The six tasks: one model invocation each.
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
    /// The role that performs it.
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

/// A source of evidence as the roster names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Its id in tool results.
    pub source: String,
    /// What wrote it: sources of one sensor are not independent of each other.
    pub sensor: String,
    /// It is written by ordinary processes on the host that it describes, so that whoever holds that
    /// host can change it (rule 3.5).
    pub on_subject_host: bool,
    pub records: u64,
    /// What it holds, in words.
    pub about: String,
}

/// An Expert on the roster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub domain: Domain,
    /// What it knows and what it can look at: what the Director reads.
    pub description: String,
    /// What it sees.
    pub sources: Vec<SourceInfo>,
    /// What it can do.
    pub toolset: Toolset,
}

/// An Expert as the Director sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    pub domain: Domain,
    /// What it knows and what it can look at.
    pub description: String,
    /// Why it cannot be asked now, or failed when it was last asked.
    pub trouble: Option<String>,
}

/// The Director's question of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub text: String,
    /// Whom it goes to; empty for everyone on the roster.
    pub to: Vec<Domain>,
    /// Names, addresses, ids to follow, as the evidence writes them.
    pub follow: Vec<String>,
}

/// What one task may use at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Turns; the last one offers no tools.
    pub turns: u32,
    pub tool_calls: u32,
    /// Bytes of one tool result that are kept; a larger result fails the call.
    pub result_bytes: u64,
    /// Calls of a language model, repairs and fallbacks included.
    pub model_calls: u32,
    /// Tokens of language models, in and out.
    pub tokens: u64,
    /// Money, in millionths.
    pub cost_micros: u64,
    /// Seconds of work.
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
    /// Deterministic id.
    pub id: TaskId,
    pub investigation: InvestigationId,
    /// The Expert that it is for; none for Director and Critic.
    pub domain: Option<Domain>,
    pub phase: Phase,
    /// The round, from 1.
    pub round: u32,
    pub view: View,
    pub allowance: Allowance,
}

impl TaskId {
    /// The task of a kind in a round; at most one for each domain.
    #[must_use]
    pub fn of(round: u32, kind: TaskKind, domain: Option<&Domain>) -> Self {
        let text = match domain {
            Some(domain) => format!("r{round}.{}.{domain}", kind.name()),
            None => format!("r{round}.{}", kind.name()),
        };
        // Every part is valid by construction and the longest is 54 characters.
        Self::new(text).unwrap_or_else(|_| unreachable!("a task id is made of valid parts"))
    }
}

/// The name under which the built-in analyst plays.
pub const ANALYST: &str = "built-in analyst";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// `built-in analyst`, or the name of a model.
    pub name: String,
    pub version: String,
    /// It is the built-in analyst: code, which no text in the evidence can address.
    pub built_in: bool,
}

closed! {
    /// Stay in the phase, or go on to the next.
    pub enum Move {
        Stay = "stay", "another round in this phase";
        Advance = "advance", "on to the next phase";
    }
}

/// The Director's decision at the end of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub next: Move,
    pub reason: String,
}

/// The Director's conclusion as proposed: the Hub makes the report from it and from the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// The verdict proposed; a dismissal has to satisfy rule 3.5.
    pub verdict: Verdict,
    /// A few sentences for whoever is on call.
    pub summary: String,
    /// What set it off, as far as the evidence shows.
    pub root_cause: String,
    /// What to do, most urgent first.
    pub actions: Vec<String>,
    /// What stays open, and what a person should look at.
    pub open_questions: Vec<String>,
    /// The findings that the verdict rests on.
    pub findings: Vec<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Plan(Question),
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

/// The end of a task: recorded once, whoever is killed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub task: TaskId,
    pub player: Player,
    /// Its answer, or why there is none.
    pub result: Result<Answer, String>,
    /// What the Director wrote into its Journal with the journaling tool. Empty for others.
    pub journal: Vec<EntryDraft>,
    /// The tool calls that it made, in order.
    pub calls: Vec<crate::ToolCall>,
    /// The model calls that it made, in order.
    pub asked: Vec<crate::ModelCall>,
    /// What code saw in the results of an Expert's calls and raises itself, whatever the reasoner made of
    /// them and whether or not it answered.
    pub raised: Vec<FindingDraft>,
    pub usage: Usage,
}
