//! A request in no provider's form.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use hyper::body::Bytes;
use serde_json::Value;

use crate::model::cache::Prefix;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anthropic Messages, `POST /v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions, `POST /v1/chat/completions`.
    Chat,
    /// OpenAI Responses, `POST /v1/responses`.
    Responses,
}

impl Provider {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Chat, Self::Responses];

    pub const fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// The provider must enforce the schema.
    pub strict: bool,
}

/// How the model may use tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Auto,
    None,
    Any,
    Only(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// JSON text.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The provider's id of the call.
    pub id: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    User(Vec<String>),
    Assistant { text: String, calls: Vec<Call> },
    Results(Vec<Answer>),
}

/// A valid request.
#[derive(Debug, Clone)]
pub struct Request {
    pub provider: Provider,
    pub key: String,
    pub model: String,
    /// Parts are joined.
    pub system: String,
    /// The first turn is the prompt of the task.
    pub turns: Vec<Turn>,
    /// The declared tools; [`Request::offered`] returns those that may be called.
    pub tools: Vec<Tool>,
    pub choice: Choice,
    /// Structured output: name (empty if the format has none) and schema.
    pub format: Option<(String, Value)>,
    pub max_output: Option<u64>,
    pub bytes: Bytes,
    /// The prompt for a provider's prompt cache.
    pub prefix: Prefix,
}

impl Request {
    /// A request for the model in `body`, before the rest is parsed.
    pub(crate) fn of(provider: Provider, body: &Value, prefix: Prefix) -> Self {
        Self {
            provider,
            key: String::new(),
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: String::new(),
            turns: Vec::new(),
            tools: Vec::new(),
            choice: Choice::Auto,
            format: None,
            max_output: None,
            bytes: Bytes::new(),
            prefix,
        }
    }

    pub fn offered(&self) -> &[Tool] {
        if self.choice == Choice::None { &[] } else { &self.tools }
    }

    /// The first turn's parts: the prompt of the task.
    pub fn task_parts(&self) -> &[String] {
        match self.turns.first() {
            Some(Turn::User(parts)) => parts,
            _ => &[],
        }
    }

    pub fn replies(&self) -> usize {
        self.turns.iter().filter(|turn| matches!(turn, Turn::Assistant { .. })).count()
    }

    /// Identifies the conversation and its length; the same for a repeated request.
    pub fn place(&self) -> (u64, usize) {
        (hash(&(&self.key, &self.model, &self.system, self.task_parts())), self.replies())
    }

    pub fn seed(&self) -> u64 {
        hash(&self.bytes)
    }
}

/// A hash that is the same in every run of one build.
pub(crate) fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
