//! Plays every role from the prompt alone, as the contract between prompts and this model lays it
//! out. It is no analyst: it does what a good model does on the wire (calls tools in parallel, cites
//! what a result really shows, answers in the form that is asked) with as little thought as that
//! takes. The same request gets the same reply.

mod critic;
mod director;
mod expert;
mod fit;

use casebook_protocol::{TaskKind, Verdict};
use serde_json::Value;

use crate::model::Request;
use crate::model::invariants::SUBMIT;
use crate::model::play::{Ask, Play, Reply, Script};
use crate::model::prompt;
use crate::model::request::{Choice, Tool, Turn};

/// How the roles are played.
#[derive(Debug, Clone)]
pub struct Brain {
    /// Rounds until the Director goes to the report; the first is discovery, and a trace has one.
    pub rounds: u32,
    /// Tool calls of an Expert in a task.
    pub expert_calls: usize,
    /// Tool calls of the Critic in a review.
    pub critic_calls: usize,
    /// Tool calls in one turn at the most.
    pub calls_a_turn: usize,
    /// Findings of an Expert in a task; the last one is a count or an absence.
    pub findings: usize,
    /// Entries that the Director writes into its Journal before it plans.
    pub journal: usize,
    /// The Director's first note names the alert: then no two investigations have a prompt in common.
    pub names_alert: bool,
    pub verdict: Verdict,
}

impl Default for Brain {
    fn default() -> Self {
        Self {
            rounds: 3,
            expert_calls: 4,
            critic_calls: 2,
            calls_a_turn: 8,
            findings: 3,
            journal: 1,
            names_alert: false,
            verdict: Verdict::TruePositive,
        }
    }
}

impl Brain {
    /// The scripts that have a name: `default`, and `benchmark` (5 rounds, 3 calls an Expert, 4 calls
    /// a Review).
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "benchmark" => Some(Self { rounds: 5, expert_calls: 3, critic_calls: 4, ..Self::default() }),
            _ => None,
        }
    }
}

pub(super) enum Step {
    Call(Vec<Ask>),
    Answer(Value),
}

impl Script for Brain {
    fn reply(&self, request: &Request) -> Play {
        let Some(kind) = prompt::kind(&request.system) else {
            return Play::Reply(other(request));
        };
        let step = match kind {
            TaskKind::Plan => director::plan(self, request),
            TaskKind::Decide => director::decide(self, request),
            TaskKind::Report => director::report(self, request),
            TaskKind::Investigate => expert::investigate(self, request),
            TaskKind::Review => critic::review(self, request),
            TaskKind::Timeline => critic::timeline(request),
        };
        Play::Reply(match step {
            Step::Call(calls) => Reply::calls(calls),
            Step::Answer(object) => answer(request, &object),
        })
    }
}

/// The object as the request asks for it: as text in the provider's own form, or as the arguments of
/// `submit`.
pub fn answer(request: &Request, object: &Value) -> Reply {
    if let Some((_, schema)) = &request.format {
        return Reply::text(fit::fit(schema, schema, Some(object)).to_string());
    }
    match request.offered().iter().find(|tool| tool.name == SUBMIT) {
        Some(submit) => {
            let arguments = fit::fit(&submit.schema, &submit.schema, Some(object)).to_string();
            Reply::calls(vec![Ask { name: SUBMIT.into(), arguments }])
        }
        None => Reply::text(object.to_string()),
    }
}

/// A reply to a request that is none of our tasks (a check whether the model is there): calls the
/// first tool once, fills the form that is asked, or says `ok`.
fn other(request: &Request) -> Reply {
    let called = request.turns.iter().any(|turn| matches!(turn, Turn::Results(_)));
    match tools(request).first() {
        Some(tool) if !called => Reply::calls(vec![ask(tool, &Value::Null)]),
        _ if request.format.is_some() || request.offered().iter().any(|tool| tool.name == SUBMIT) => {
            answer(request, &Value::Null)
        }
        _ => Reply::text("ok"),
    }
}

/// A call of `tool` with these arguments; a strict tool gets every field.
pub(super) fn ask(tool: &Tool, arguments: &Value) -> Ask {
    let fitted = fit::fit(&tool.schema, &tool.schema, Some(arguments));
    let arguments = if tool.strict || !arguments.is_object() { fitted } else { arguments.clone() };
    Ask { name: tool.name.clone(), arguments: arguments.to_string() }
}

/// The tools that may be called besides `submit`; none where another is forced.
pub(super) fn tools(request: &Request) -> Vec<&Tool> {
    let free = |tool: &&Tool| match &request.choice {
        Choice::Only(name) => tool.name == *name,
        _ => true,
    };
    request.offered().iter().filter(|tool| tool.name != SUBMIT).filter(free).collect()
}

/// Tool calls made so far in this conversation.
fn made(request: &Request) -> usize {
    let results = |turn: &Turn| if let Turn::Results(answers) = turn { answers.len() } else { 0 };
    request.turns.iter().map(results).sum()
}

/// The calls of this turn out of all that are planned; none when they are all made, or none may be.
fn due(brain: &Brain, request: &Request, planned: Vec<Ask>) -> Vec<Ask> {
    planned.into_iter().skip(made(request)).take(brain.calls_a_turn.max(1)).collect()
}

/// The model has answered before and is told to repair: it calls no more tools.
pub(super) fn repairing(request: &Request) -> bool {
    request.turns.len() > 1 && matches!(request.turns.last(), Some(Turn::User(_)))
}
