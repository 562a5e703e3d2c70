//! What a scripted model does with a request: reply, or fail as a provider fails.

use std::sync::Arc;
use std::time::Duration;

use crate::model::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is done, or wants its tool calls made.
    Done,
    Length,
    Refusal,
}

/// A tool call that the model asks for; its id is made when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub name: String,
    /// The arguments: JSON text, unless a fault wants otherwise.
    pub arguments: String,
}

/// What the model replies, free of any provider's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its text; the reason where it refused.
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

/// What happens on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    Reply(Reply),
    /// The same, so much later.
    Late(Duration, Box<Play>),
    /// The provider answers with an error in its own form.
    Fail {
        /// The status: 429, 500, 529 and so on.
        status: u16,
        /// Seconds in `retry-after`.
        retry_after: Option<u64>,
    },
    /// A gateway in between answers with a page that is no JSON.
    Page {
        status: u16,
    },
    /// The connection ends in the middle of the body of this reply.
    Cut(Reply),
    /// A reply in good form whose text has this many bytes.
    Huge(u64),
}

pub trait Script: Send + Sync + 'static {
    /// What happens on this request. The same request gives the same play, unless a fault counts.
    fn reply(&self, request: &Request) -> Play;
}

impl<S: Script + ?Sized> Script for Arc<S> {
    fn reply(&self, request: &Request) -> Play {
        (**self).reply(request)
    }
}
