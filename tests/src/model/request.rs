//! A request as every provider means it, free of any provider's form.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use hyper::body::Bytes;
use serde_json::Value;

use crate::model::cache::Prefix;

/// Whose wire format it is.
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
    /// All of them.
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
    /// The provider is asked to enforce the schema.
    pub strict: bool,
}

/// What the model may do with the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Call some or none.
    Auto,
    None,
    Any,
    Only(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The provider's id.
    pub id: String,
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The call that it answers, by the provider's id.
    pub id: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// What the client says, part by part.
    User(Vec<String>),
    /// What the model replied.
    Assistant {
        text: String,
        calls: Vec<Call>,
    },
    Results(Vec<Answer>),
}

/// A request that its provider would take.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whose wire format it came in.
    pub provider: Provider,
    pub key: String,
    pub model: String,
    /// The system prompt, parts joined.
    pub system: String,
    /// The conversation; its first turn is the prompt of the task.
    pub turns: Vec<Turn>,
    /// The tools declared; [`Request::offered`] says which may be called.
    pub tools: Vec<Tool>,
    /// What may be done with them.
    pub choice: Choice,
    /// The provider's structured output: name (empty where the format has none) and schema.
    pub format: Option<(String, Value)>,
    /// Tokens that the reply may have.
    pub max_output: Option<u64>,
    /// The body as it came.
    pub bytes: Bytes,
    /// The prompt as a provider's prompt cache sees it.
    pub prefix: Prefix,
}

impl Request {
    /// A request for the model that `body` names, before more of it is read.
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

    /// The tools that the model may call now.
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

    /// Replies of the model so far.
    pub fn replies(&self) -> usize {
        self.turns.iter().filter(|turn| matches!(turn, Turn::Assistant { .. })).count()
    }

    /// Which conversation it belongs to, and how far that is: the same for a request that is sent
    /// again after a failure.
    pub fn place(&self) -> (u64, usize) {
        (hash(&(&self.key, &self.model, &self.system, self.task_parts())), self.replies())
    }

    /// A number made from all of the body.
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
