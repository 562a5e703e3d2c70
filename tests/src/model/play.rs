//! The reactions of a scripted model to a request: a reply, or a failure of the provider.

use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::TaskKind;
use serde_json::Value;

use crate::model::invariants::SUBMIT;
use crate::model::{Request, prompt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finished, or waiting for tool calls.
    Done,
    /// Token limit reached.
    Length,
    Refusal,
}

/// A tool call of the model; its id is created on sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub name: String,
    /// JSON text, except in a fault.
    pub arguments: String,
}

/// A reply in no provider's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The reason if it refused.
    pub text: String,
    pub calls: Vec<Ask>,
    pub stop: Stop,
}

impl Reply {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new(), stop: Stop::Done }
    }

    pub const fn calls(calls: Vec<Ask>) -> Self {
        Self { text: String::new(), calls, stop: Stop::Done }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    Reply(Reply),
    Late(Duration, Box<Play>),
    Fail {
        status: u16,
        /// Seconds in `retry-after`.
        retry_after: Option<u64>,
    },
    /// A gateway answers with an HTML page.
    Page {
        status: u16,
    },
    /// The connection ends in the middle of this reply.
    Cut(Reply),
    /// A valid reply whose text has this many bytes.
    Huge(u64),
}

pub trait Script: Send + Sync + 'static {
    /// The same request has the same result, unless a fault counts attempts.
    fn reply(&self, request: &Request) -> Play;
}

/// The answer in a reply: the arguments of `submit`, or the text.
pub fn object(reply: &mut Reply) -> &mut String {
    match reply.calls.iter_mut().find(|call| call.name == SUBMIT) {
        Some(call) => &mut call.arguments,
        None => &mut reply.text,
    }
}

/// A script whose answers to one kind of task are changed.
pub struct Changed<S, C> {
    pub script: S,
    pub kind: TaskKind,
    pub change: C,
}

impl<S: Script, C: Fn(&Request, &mut Value) + Send + Sync + 'static> Script for Changed<S, C> {
    fn reply(&self, request: &Request) -> Play {
        let play = self.script.reply(request);
        let Play::Reply(mut reply) = play else { return play };
        let answers = reply.calls.iter().all(|call| call.name == SUBMIT);
        if prompt::kind(&request.system) == Some(self.kind)
            && answers
            && let Ok(mut answer @ Value::Object(_)) = serde_json::from_str(object(&mut reply))
        {
            (self.change)(request, &mut answer);
            *object(&mut reply) = answer.to_string();
        }
        Play::Reply(reply)
    }
}

impl<S: Script + ?Sized> Script for Arc<S> {
    fn reply(&self, request: &Request) -> Play {
        (**self).reply(request)
    }
}
