//! Language models, free of any provider's form: what is asked, what is replied, and the one seam
//! [`Model`] behind which the providers are. Everything else that touches models is pure.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use casebook_protocol::hash::canonical_json;
use casebook_protocol::{ArtifactId, ModelCallId, Purpose, closed};
use serde::{Deserialize, Serialize};

pub mod brief;
pub mod client;
pub mod config;
pub mod data;
pub mod dialogue;
pub mod form;
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
    /// The prompt up to here is likely to come again soon: a provider that caches by marks gets one.
    pub cache: bool,
    pub text: String,
}

/// One message of the conversation of a task. None of it survives the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// What we say.
    User(Vec<Part>),
    /// What the model replied, as it came.
    Assistant(Reply),
    /// The results of the tool calls of the reply before, one for each.
    Results(Vec<ToolAnswer>),
}

/// The result of one tool call, for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// The tool refused or failed.
    pub failed: bool,
    pub id: String,
    /// The result or the error message.
    pub text: String,
    pub tool: String,
}

/// A tool as it is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub name: String,
    pub description: String,
    pub schema: schema::Schema,
    /// The schema is in the strict subset that providers can enforce.
    pub strict: bool,
}

/// What the model may do with the tools offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Free,
    /// Call none: the tools are listed for the provider's cache, and for the calls that stand in the
    /// conversation.
    Nothing,
    /// Call this one.
    Only(String),
}

/// The form of the answer as the provider's own structured output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    pub name: String,
    /// The schema, in the strict subset.
    pub schema: schema::Schema,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: ModelCallId,
    /// The model, by its name in the models file.
    pub model: String,
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    pub purpose: Purpose,
    /// The system prompt: the same for every task of a kind.
    pub system: Vec<Part>,
    /// The conversation so far; the first message is ours.
    pub messages: Vec<Message>,
    pub tools: Vec<Offer>,
    pub choice: Choice,
    /// The provider's structured output, where the model is set to it.
    pub format: Option<Format>,
    /// Tokens that the reply may have at the most.
    pub max_output: u32,
}

impl Ask {
    /// The request in its canonical form, by which a replay finds its answer.
    pub fn canonical(&self) -> String {
        canonical_json(self)
    }

    pub fn fingerprint(&self) -> ArtifactId {
        ArtifactId::of(self.canonical().as_bytes())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Its arguments as the model wrote them; they may not be JSON.
    pub arguments: String,
    /// The provider's id of the call.
    pub id: String,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done, or wants its tool calls made.
    Done,
    /// It reached the limit of tokens: the reply is cut.
    Length,
    /// It, or its provider, refused.
    Refused,
    /// Something else, as the provider calls it.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub calls: Vec<Called>,
    /// What the provider wants back unchanged when the conversation goes on (signatures of
    /// thoughts), in the client's own form; no one else reads it.
    pub kept: Option<String>,
    pub stop: Stop,
    pub text: String,
}

/// A reply with what it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub reply: Reply,
    pub version: String,
    pub tokens: casebook_protocol::Tokens,
    /// What that costs, in millionths of the currency of the models file.
    pub cost_micros: u64,
    /// Attempts that it took, the last one included.
    pub attempts: u32,
}

closed! {
    pub enum Fault {
        Rejected = "rejected",
            "the provider does not take this request (a key, a name, a parameter, a prompt that is too long)";
        Unavailable = "unavailable",
            "it did not work, however often it was tried (overload, rate limit, network)";
        TimedOut = "timed_out", "there was no answer in time";
        Unreadable = "unreadable", "an answer came that cannot be read, or is too large";
        NotRecorded = "not_recorded", "a replay has no answer for this request";
    }
}

/// A call that failed for good. The message names the model and the cause and never holds a key or a
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
    /// Asks once, retries of what may pass included, and gives up after `time`.
    ///
    /// # Errors
    /// [`AskError`] when there is no reply for good.
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError>;
}

/// Models whose exchanges something else sees: the request, what came back, and how long that took.
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
