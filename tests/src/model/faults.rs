//! A script around another that fails where it is told to, as providers and models fail.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use casebook_protocol::TaskKind;
use serde_json::Value;

use crate::model::Request;
use crate::model::invariants::SUBMIT;
use crate::model::play::{Ask, Play, Reply, Script, Stop};
use crate::model::prompt;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 429 with so many seconds in `retry-after`, or without it.
    RateLimited(Option<u64>),
    /// Anthropic's 529; 503 in OpenAI's form.
    Overloaded,
    /// 500.
    Broken,
    /// A gateway's page instead of the provider's answer, with status 502.
    Gateway,
    /// A page that is no JSON, with status 200.
    NoJsonBody,
    /// The right answer, so much too late.
    Slow(Duration),
    /// The connection ends in the middle of the body.
    Cut,
    /// The reply ends at the limit of tokens, in the middle of its object.
    Truncated,
    Refusal,
    Prose,
    /// The answer is right, but as text in a Markdown fence, also where a tool was asked for.
    Fenced,
    /// The answer's fields have other types than asked.
    WrongTypes,
    UnknownTool,
    /// The arguments of each tool call are no JSON.
    BadArguments,
    /// A tool is called again and again, as long as any is offered, and also when none is.
    EndlessCalls,
    /// An answer of so many bytes.
    Huge(u64),
    Empty,
}

/// When it goes wrong.
#[derive(Debug, Clone, Default)]
pub struct When {
    /// Only in tasks of this kind.
    pub kind: Option<TaskKind>,
    /// Only on the reply that would answer the task, not on those that call tools.
    pub answers: bool,
    /// Only on this one of the calls that match so far, from 1; on all of them without.
    pub nth: Option<usize>,
    /// Only the first so many times that the very same request comes; without, every time.
    pub attempts: Option<u32>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The matching calls by content, in order of their first arrival.
    order: HashMap<u64, usize>,
    attempts: HashMap<u64, u32>,
    /// Content of calls that were failed.
    struck: HashSet<u64>,
}

#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    fault: Fault,
    when: When,
    seen: Mutex<Seen>,
}

impl<S: Script> Faulty<S> {
    /// `inner`, failing with `fault` where `when` says.
    pub fn new(inner: S, fault: Fault, when: When) -> Self {
        Self { inner, fault, when, seen: Mutex::default() }
    }

    /// Different calls that were failed so far.
    pub fn struck(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).struck.len()
    }

    fn strikes(&self, request: &Request, play: &Play) -> bool {
        let kind = prompt::kind(&request.system);
        if self.when.kind.is_some_and(|wanted| kind != Some(wanted)) || self.when.answers && !answers(play) {
            return false;
        }
        let content = request.seed();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let next = seen.order.len() + 1;
        let place = *seen.order.entry(content).or_insert(next);
        let attempt = seen.attempts.entry(content).or_default();
        *attempt += 1;
        let strikes =
            self.when.nth.is_none_or(|nth| nth == place) && self.when.attempts.is_none_or(|most| *attempt <= most);
        if strikes {
            seen.struck.insert(content);
        }
        strikes
    }
}

impl<S: Script> Script for Faulty<S> {
    fn reply(&self, request: &Request) -> Play {
        let play = self.inner.reply(request);
        if self.strikes(request, &play) { fail(&self.fault, request, play) } else { play }
    }
}

/// The reply answers the task instead of calling tools for it.
fn answers(play: &Play) -> bool {
    match play {
        Play::Reply(reply) => reply.calls.iter().all(|call| call.name == SUBMIT),
        _ => false,
    }
}

fn fail(fault: &Fault, request: &Request, play: Play) -> Play {
    let reply = match &play {
        Play::Reply(reply) | Play::Cut(reply) => reply.clone(),
        _ => Reply::text(""),
    };
    match fault {
        Fault::RateLimited(retry_after) => Play::Fail { status: 429, retry_after: *retry_after },
        Fault::Overloaded => {
            let status = if request.provider == crate::model::Provider::Anthropic { 529 } else { 503 };
            Play::Fail { status, retry_after: None }
        }
        Fault::Broken => Play::Fail { status: 500, retry_after: None },
        Fault::Gateway => Play::Page { status: 502 },
        Fault::NoJsonBody => Play::Page { status: 200 },
        Fault::Slow(pause) => Play::Late(*pause, Box::new(play)),
        Fault::Cut => Play::Cut(reply),
        Fault::Huge(bytes) => Play::Huge(*bytes),
        Fault::Truncated => Play::Reply(truncated(reply)),
        Fault::Refusal => Play::Reply(Reply { stop: Stop::Refusal, ..Reply::text("I cannot help with this request.") }),
        Fault::Prose => Play::Reply(Reply::text("It looks harmless to me, but I would ask a colleague.")),
        Fault::Fenced => Play::Reply(Reply::text(format!("Here it is:\n```json\n{}\n```\n", object(&reply)))),
        Fault::WrongTypes => Play::Reply(wrong_types(reply)),
        Fault::UnknownTool => {
            Play::Reply(Reply::calls(vec![Ask { name: "delete_everything".into(), arguments: "{}".into() }]))
        }
        Fault::BadArguments => Play::Reply(bad_arguments(request, reply)),
        Fault::EndlessCalls => Play::Reply(endless(request)),
        Fault::Empty => Play::Reply(Reply::text("")),
    }
}

/// The text of the object that the reply answers with.
fn object(reply: &Reply) -> &str {
    reply.calls.iter().find(|call| call.name == SUBMIT).map_or(&reply.text, |call| &call.arguments)
}

fn half(text: &str) -> String {
    let half = text.chars().count() / 2;
    text.chars().take(half).collect()
}

fn truncated(mut reply: Reply) -> Reply {
    reply.stop = Stop::Length;
    reply.text = half(&reply.text);
    if let Some(last) = reply.calls.last_mut() {
        last.arguments = half(&last.arguments);
    }
    reply
}

fn wrong_types(mut reply: Reply) -> Reply {
    let other = |text: &str| {
        let Ok(Value::Object(map)) = serde_json::from_str(text) else { return "[]".to_owned() };
        let turned = map.into_iter().map(|(key, value)| match value {
            Value::String(_) => (key, Value::from(7)),
            _ => (key, Value::from("seven")),
        });
        Value::Object(turned.collect()).to_string()
    };
    if !reply.text.is_empty() {
        reply.text = other(&reply.text);
    }
    for call in &mut reply.calls {
        call.arguments = other(&call.arguments);
    }
    reply
}

fn bad_arguments(request: &Request, mut reply: Reply) -> Reply {
    if reply.calls.is_empty() {
        let name = request.offered().first().map_or("search", |tool| &tool.name).to_owned();
        reply = Reply::calls(vec![Ask { name, arguments: String::new() }]);
    }
    for call in &mut reply.calls {
        call.arguments = "{\"terms\": [unquoted".to_owned();
    }
    reply
}

fn endless(request: &Request) -> Reply {
    let tool = request.tools.iter().find(|tool| tool.name != SUBMIT).or_else(|| request.tools.first());
    let name = tool.map_or("search", |tool| &tool.name).to_owned();
    let arguments =
        if name == "search" { format!("{{\"terms\":[\"again-{}\"]}}", request.replies()) } else { "{}".into() };
    Reply::calls(vec![Ask { name, arguments }])
}
