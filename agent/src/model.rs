//! Language models, free of any provider's form: what is asked, what is replied, and the one seam
//! [`Model`] behind which the providers are. Everything else that touches models is pure.

use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::hash::canonical;
use casebook_protocol::{ArtifactId, ModelCallId, Purpose};
use serde::{Deserialize, Serialize};

pub mod brief;
pub mod client;
pub mod config;
pub mod data;
pub mod dialogue;
pub mod form;
pub mod mind;
pub mod open;
pub mod price;
pub mod prompt;
pub mod replay;
pub mod retry;
pub mod reword;
pub mod schema;
pub mod secret;

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its text.
    pub text: String,
    /// The prompt up to here is likely to come again soon: a provider that caches by marks gets one.
    pub cache: bool,
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
    /// The call by the provider's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The result or the error message.
    pub text: String,
    /// The tool refused or failed.
    pub failed: bool,
}

/// A tool as it is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: schema::Schema,
    /// The schema is in the strict subset that providers can enforce.
    pub strict: bool,
}

/// What the model may do with the tools offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Call some or none.
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
    /// The name of the schema.
    pub name: String,
    /// The schema, in the strict subset.
    pub schema: schema::Schema,
}

/// A request to a model, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The call.
    pub id: ModelCallId,
    /// The model, by its name in the models file.
    pub model: String,
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    /// What it is called for.
    pub purpose: Purpose,
    /// The system prompt: the same for every task of a kind.
    pub system: Vec<Part>,
    /// The conversation so far; the first message is ours.
    pub messages: Vec<Message>,
    /// The tools offered.
    pub tools: Vec<Offer>,
    /// What the model may do with them.
    pub choice: Choice,
    /// The provider's structured output, where the model is set to it.
    pub format: Option<Format>,
    /// Tokens that the reply may have at the most.
    pub max_output: u32,
}

impl Ask {
    /// The request in its canonical form, by which a replay finds its answer.
    #[must_use]
    pub fn canonical(&self) -> String {
        // By hand, with the schemas as they are known: they are a third of it and always the same.
        let part = |out: &mut String, before: &str, value: &str| {
            out.push_str(before);
            out.push_str(value);
        };
        let mut out = String::with_capacity(32 * 1024);
        part(&mut out, "{\"choice\":", &json(&self.choice));
        match &self.format {
            None => out.push_str(",\"format\":null"),
            Some(format) => {
                part(&mut out, ",\"format\":{\"name\":", &json(&format.name));
                part(&mut out, ",\"schema\":", format.schema.canonical());
                out.push('}');
            }
        }
        part(&mut out, ",\"id\":", &json(&self.id));
        part(&mut out, ",\"max_output\":", &self.max_output.to_string());
        part(&mut out, ",\"messages\":", &json(&self.messages));
        part(&mut out, ",\"model\":", &json(&self.model));
        part(&mut out, ",\"prompt\":", &json(&self.prompt));
        part(&mut out, ",\"purpose\":", &json(&self.purpose));
        part(&mut out, ",\"system\":", &json(&self.system));
        out.push_str(",\"tools\":[");
        for (n, tool) in self.tools.iter().enumerate() {
            part(&mut out, if n > 0 { ",{\"description\":" } else { "{\"description\":" }, &json(&tool.description));
            part(&mut out, ",\"name\":", &json(&tool.name));
            part(&mut out, ",\"schema\":", tool.schema.canonical());
            out.push_str(if tool.strict { ",\"strict\":true}" } else { ",\"strict\":false}" });
        }
        out.push_str("]}");
        out
    }

    /// The bytes of [`Ask::canonical`], counted without writing it: the order of keys takes none.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let format = self.format.as_ref().map_or(4, |f| 19 + counted(&f.name) + f.schema.text().len());
        let tool = |t: &Offer| {
            let frame = if t.strict { 48 } else { 49 };
            frame + counted(&t.name) + counted(&t.description) + t.schema.text().len()
        };
        let tools: usize = self.tools.iter().map(tool).sum();
        let texts = counted(&self.messages) + counted(&self.system) + counted(&self.model) + counted(&self.prompt);
        let words = counted(&self.choice) + counted(&self.purpose) + counted(&self.id) + counted(&self.max_output);
        104 + self.tools.len().saturating_sub(1) + format + tools + texts + words
    }

    /// SHA-256 of [`Ask::canonical`].
    #[must_use]
    pub fn fingerprint(&self) -> ArtifactId {
        ArtifactId::of(self.canonical().as_bytes())
    }
}

/// `value` as canonical JSON.
fn json<T: Serialize>(value: &T) -> String {
    canonical(value).unwrap_or_default()
}

/// The bytes of `value` as JSON.
fn counted<T: Serialize>(value: &T) -> usize {
    let mut counted = Counted(0);
    // Nothing fails: this is always JSON, and counting takes everything.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// Counts what is written.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A tool call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments as the model wrote them; they may not be JSON.
    pub arguments: String,
}

/// Why a model stopped.
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

/// What a model replied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// The tool calls that it asks for.
    pub calls: Vec<Called>,
    /// Why it stopped.
    pub stop: Stop,
    /// What the provider wants back unchanged when the conversation goes on (signatures of
    /// thoughts), in the client's own form; no one else reads it.
    pub kept: Option<String>,
}

/// Tokens that the provider says it counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens in, cached ones included.
    pub input: u64,
    /// Of those, read from the provider's cache.
    pub cached: u64,
    /// Of those, written into the provider's cache.
    pub cache_written: u64,
    /// Tokens out, thoughts included.
    pub output: u64,
}

/// A reply with what it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The reply.
    pub reply: Reply,
    /// The model as the provider names it.
    pub version: String,
    /// What it counted.
    pub tokens: Tokens,
    /// What that costs, in millionths of the currency of the models file.
    pub cost_micros: u64,
    /// Attempts that it took, the last one included.
    pub attempts: u32,
}

/// What sort of failure a call ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The provider will not take this request: asking again does not help (a key, a name, a
    /// parameter, a prompt that is too long).
    Rejected,
    /// It did not work, however often it was tried (overload, rate limit, network).
    Unavailable,
    /// There was no answer in time.
    TimedOut,
    /// An answer came that cannot be read, or is too large.
    Unreadable,
    /// A replay has no answer for this request.
    NotRecorded,
}

/// A call that failed for good. The message names the model and the cause and never holds a key or a
/// prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct AskError {
    /// What sort.
    pub fault: Fault,
    /// What happened and what to do.
    pub message: String,
    /// Attempts that were made.
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
