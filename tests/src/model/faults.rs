//! A script that adds failures of providers and models to another script.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use casebook_protocol::TaskKind;
use serde_json::Value;

use crate::model::Request;
use crate::model::invariants::SUBMIT;
use crate::model::play::{Ask, Play, Reply, Script, Stop};
use crate::model::prompt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 429 with these seconds in `retry-after`, or without it.
    RateLimited(Option<u64>),
    /// Anthropic's 529; 503 in OpenAI's form.
    Overloaded,
    Broken,
    /// This status in the provider's form.
    Status(u16),
    /// A gateway's page with status 502.
    Gateway,
    /// A page other than JSON, with status 200.
    NoJsonBody,
    /// The right answer, with this delay.
    Slow(Duration),
    /// The connection ends in the middle of the body.
    Cut,
    /// The reply ends at the token limit, in the middle of its object.
    Truncated,
    Refusal,
    Prose,
    /// The right answer as text in a Markdown fence, even if a tool was requested.
    Fenced,
    /// The fields of the answer have wrong types.
    WrongTypes,
    UnknownTool,
    /// The arguments of each tool call are invalid JSON.
    BadArguments,
    /// Tools are called forever, even if none is offered.
    EndlessCalls,
    /// An answer of this many bytes.
    Huge(u64),
    Empty,
}

#[derive(Debug, Clone, Default)]
pub struct When {
    pub kind: Option<TaskKind>,
    /// Only the reply that answers the task, not those that call tools.
    pub answers: bool,
    /// Only this one of the matching calls, from 1; `None` for all.
    pub nth: Option<usize>,
    /// Only the first attempts of the same request; `None` for all.
    pub attempts: Option<u32>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The order in which matching calls first arrived, by content.
    order: HashMap<u64, usize>,
    attempts: HashMap<u64, u32>,
    /// Calls that failed, by content.
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
    /// `inner` with `fault` in the cases of `when`.
    pub fn new(inner: S, fault: Fault, when: When) -> Self {
        Self { inner, fault, when, seen: Mutex::default() }
    }

    /// Number of different calls that failed.
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

/// A script that fails each request while a fault is set.
#[derive(Debug, Clone)]
pub struct Switched<S> {
    inner: S,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl<S: Script> Switched<S> {
    pub fn new(inner: S, fault: Fault) -> Self {
        Self { inner, fault: Arc::new(Mutex::new(Some(fault))) }
    }

    /// Answers from now on.
    pub fn mend(&self) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<S: Script> Script for Switched<S> {
    fn reply(&self, request: &Request) -> Play {
        let play = self.inner.reply(request);
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(fault) => fail(fault, request, play),
            None => play,
        }
    }
}

/// Whether the reply answers the task instead of calling tools.
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
        Fault::Status(status) => Play::Fail { status: *status, retry_after: None },
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
