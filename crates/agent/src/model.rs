//! Requests to language models and their replies, independent of providers. [`Model`] is the interface to the
//! providers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use casebook_protocol::hash::canonical_json;
use casebook_protocol::{ArtifactId, ModelCallId, Purpose, closed};
use serde::{Deserialize, Serialize};

pub mod brief;
pub mod circuit;
pub mod client;
pub mod config;
pub mod data;
pub mod dialogue;
pub mod form;
pub mod kept;
pub mod open;
pub mod price;
pub mod prompt;
pub mod reasoner;
pub mod replay;
pub mod retry;
pub mod reword;
pub mod schema;
pub mod secret;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Marks the end of a prefix that will be reused soon, for providers with explicit cache marks.
    pub cache: bool,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Our text.
    User(Vec<Part>),
    /// The model's reply, unchanged.
    Assistant(Reply),
    Results(Vec<ToolAnswer>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    pub failed: bool,
    pub id: String,
    pub text: String,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub name: String,
    pub description: String,
    pub schema: schema::Schema,
    /// The schema is in the strict subset that providers can enforce.
    pub strict: bool,
}

/// Which of the offered tools the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Free,
    /// No tool. They are listed for the provider's cache, and because the conversation has calls of them.
    Nothing,
    /// Only this tool, which it must call.
    Only(String),
}

/// The form of the answer, for structured output of the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    pub name: String,
    /// In the strict subset.
    pub schema: schema::Schema,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: ModelCallId,
    /// The name in the models file.
    pub model: String,
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    pub purpose: Purpose,
    /// The system prompt, equal for all tasks of a kind.
    pub system: Vec<Part>,
    /// The conversation so far. The first message is ours.
    pub messages: Vec<Message>,
    pub tools: Vec<Offer>,
    pub choice: Choice,
    pub format: Option<Format>,
    pub max_output: u32,
}

impl Ask {
    /// The canonical form of the request, by which a replay finds its reply.
    pub fn canonical(&self) -> String {
        canonical_json(self)
    }

    pub fn fingerprint(&self) -> ArtifactId {
        ArtifactId::of(self.canonical().as_bytes())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The arguments as the model wrote them, which may not be JSON.
    pub arguments: String,
    pub id: String,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It finished, or waits for the results of its tool calls.
    Done,
    /// It reached the limit of tokens, so the reply is cut.
    Length,
    Refused,
    /// Another reason, in the provider's words.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub calls: Vec<Called>,
    /// Data that the provider wants back unchanged, such as signatures of reasoning, in the client's own format.
    pub kept: Option<String>,
    pub stop: Stop,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub reply: Reply,
    pub version: String,
    pub tokens: casebook_protocol::Tokens,
    /// The provider did not report all tokens, so that some are our own estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Millionths of the currency of the models file.
    pub cost_micros: u64,
    pub attempts: u32,
}

closed! {
    pub enum Fault {
        Rejected = "rejected",
            "the provider rejects this request (a key, a name, a parameter, a prompt that is too long)";
        Unavailable = "unavailable",
            "all attempts failed (overload, rate limit, network)";
        TimedOut = "timed_out", "no answer in time";
        Unreadable = "unreadable", "the answer cannot be read, or is too large";
        NotRecorded = "not_recorded", "a replay has no answer for this request";
    }
}

impl Reply {
    /// What the model wrote, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.calls.iter().map(|call| call.tool.len() + call.arguments.len()).sum::<usize>()
    }
}

/// The most tokens in this many bytes. Measured on logs: 2.54 bytes a token in syslog, 2.65 in JSON. Prose has more
/// bytes a token.
pub const fn tokens(bytes: usize) -> u64 {
    (bytes as u64 * 2).div_ceil(5)
}

/// A call that failed after all attempts. The message names the model and the cause, and never contains a key or a
/// prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct AskError {
    pub fault: Fault,
    /// What happened and what to do.
    pub message: String,
    pub attempts: u32,
}

/// The models of a models file, real or replayed.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Asks with retries, and gives up after `time`.
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError>;
}

pub struct Observed<F> {
    pub model: Arc<dyn Model>,
    pub observe: F,
}

#[async_trait]
impl<F: Fn(&Ask, &Result<Answered, AskError>, Duration) + Send + Sync + 'static> Model for Observed<F> {
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError> {
        let begun = Instant::now();
        let result = self.model.ask(ask, time).await;
        (self.observe)(ask, &result, begun.elapsed());
        result
    }
}
