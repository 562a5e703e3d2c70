//! Plays every role from the prompt alone. It does what a good model does on the wire: it calls tools in
//! parallel, cites what a result shows, and answers in the requested form. It does not analyse the evidence.
//! The same request gets the same reply.

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

#[derive(Debug, Clone)]
pub struct Brain {
    /// Rounds until the report; the first is discovery.
    pub rounds: u32,
    pub expert_calls: usize,
    pub critic_calls: usize,
    /// Maximum number of tool calls in one turn.
    pub calls_a_turn: usize,
    /// Findings of an Expert in a task; the last one is a count or an absence.
    pub findings: usize,
    pub journal: usize,
    /// The Director's notes and its question come in one turn.
    pub one_turn: bool,
    /// The Director's first note names the alert, so that no two investigations have the same prompt.
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
            one_turn: false,
            names_alert: false,
            verdict: Verdict::TruePositive,
        }
    }
}

impl Brain {
    /// The named scripts: `default`, and `benchmark` (5 rounds, 3 calls per Expert, 4 per Review).
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
    Both(Vec<Ask>, Value),
}

impl Step {
    pub(super) fn reply(self, request: &Request) -> Reply {
        match self {
            Self::Call(calls) => Reply::calls(calls),
            Self::Answer(object) => answer(request, &object),
            Self::Both(calls, object) => {
                let answer = answer(request, &object);
                Reply { calls: calls.into_iter().chain(answer.calls).collect(), ..answer }
            }
        }
    }
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
        Play::Reply(step.reply(request))
    }
}

/// Replies with the object in the requested form: as text, or as the arguments of `submit`.
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

/// Replies to a request outside our tasks, such as a check of availability: calls the first tool once, fills
/// the requested form, or returns `ok`.
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

/// A call of `tool`; a strict tool gets every field.
pub(super) fn ask(tool: &Tool, arguments: &Value) -> Ask {
    let fitted = fit::fit(&tool.schema, &tool.schema, Some(arguments));
    let arguments = if tool.strict || !arguments.is_object() { fitted } else { arguments.clone() };
    Ask { name: tool.name.clone(), arguments: arguments.to_string() }
}

/// The tools that may be called except `submit`.
pub(super) fn tools(request: &Request) -> Vec<&Tool> {
    let free = |tool: &&Tool| match &request.choice {
        Choice::Only(name) => tool.name == *name,
        _ => true,
    };
    request.offered().iter().filter(|tool| tool.name != SUBMIT).filter(free).collect()
}

fn made(request: &Request) -> usize {
    let results = |turn: &Turn| if let Turn::Results(answers) = turn { answers.len() } else { 0 };
    request.turns.iter().map(results).sum()
}

fn due(brain: &Brain, request: &Request, planned: Vec<Ask>) -> Vec<Ask> {
    planned.into_iter().skip(made(request)).take(brain.calls_a_turn.max(1)).collect()
}

/// Whether the model must repair an earlier answer: it calls no more tools.
pub(super) fn repairing(request: &Request) -> bool {
    request.turns.len() > 1 && matches!(request.turns.last(), Some(Turn::User(_)))
}
