//! A request as it is kept: its shared parts once by hash, and then only what the call adds to the call before it.

use std::sync::Arc;

use casebook_protocol::hash::canonical_json;
use casebook_protocol::{ArtifactId, KeptRequest, ModelCall, ModelCallId};
use casebook_runtime::store::{Store, StoreError};
use casebook_runtime::stored;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Ask, Choice, Fault, Format, Message, Offer, Part, Reply, ToolAnswer};

/// Shorter texts are kept with the call. As separate artifacts they would take more room.
const LONG: usize = 400;

/// The messages of a call and the reply to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    pub messages: Vec<Message>,
    pub reply: Option<Arc<Reply>>,
}

/// A request in parts, each under its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub kept: KeptRequest,
    pub artifacts: Vec<(ArtifactId, Vec<u8>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeptError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the request of call {0} was not kept; `keep_requests = true` in the models file keeps the next ones")]
    NotKept(ModelCallId),
    #[error("the request of call {call} cannot be read: {reason}")]
    Corrupt { call: ModelCallId, reason: String },
}

/// What the calls of a kind share.
#[derive(Serialize, Deserialize)]
struct Frame {
    format: Option<Format>,
    system: Vec<Part>,
    tools: Vec<Offer>,
}

#[derive(Serialize, Deserialize)]
struct Added {
    choice: Choice,
    max_output: u32,
    messages: Vec<Said>,
    /// How many messages are those of the call before.
    same: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Assistant(Reply),
    /// The reply to the call before, unchanged.
    Reply,
    Results(Vec<SaidAnswer>),
    User(Vec<SaidPart>),
}

#[derive(Serialize, Deserialize)]
struct SaidPart {
    cache: bool,
    text: Text,
}

#[derive(Serialize, Deserialize)]
struct SaidAnswer {
    failed: bool,
    id: String,
    text: Text,
    tool: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    /// The number of a text that is kept as a separate artifact.
    Kept(usize),
    Here(String),
}

/// Takes `ask` apart. `before` is the call of the same task before it.
pub fn split(ask: &Ask, before: &Before) -> Split {
    let same = ask.messages.iter().zip(&before.messages).take_while(|(now, then)| now == then).count();
    let mut artifacts = Vec::new();
    let frame = Frame { format: ask.format.clone(), system: ask.system.clone(), tools: ask.tools.clone() };
    let mut texts = Vec::new();
    let messages = ask.messages.iter().skip(same).map(|message| said(message, before, &mut texts)).collect();
    let added = Added { choice: ask.choice.clone(), max_output: ask.max_output, messages, same };
    let mut store = |bytes: Vec<u8>| {
        let id = ArtifactId::of(&bytes);
        artifacts.push((id.clone(), bytes));
        id
    };
    let kept = KeptRequest {
        frame: store(canonical_json(&frame).into_bytes()),
        added: store(canonical_json(&added).into_bytes()),
        texts: texts.into_iter().map(|text| store(text.into_bytes())).collect(),
    };
    Split { kept, artifacts }
}

fn said(message: &Message, before: &Before, texts: &mut Vec<String>) -> Said {
    let mut text = |text: &String| {
        if text.len() < LONG {
            return Text::Here(text.clone());
        }
        texts.push(text.clone());
        Text::Kept(texts.len() - 1)
    };
    match message {
        Message::User(parts) => {
            Said::User(parts.iter().map(|part| SaidPart { cache: part.cache, text: text(&part.text) }).collect())
        }
        Message::Assistant(reply) if before.reply.as_deref() == Some(reply) => Said::Reply,
        Message::Assistant(reply) => Said::Assistant(reply.clone()),
        Message::Results(all) => {
            let answer = |one: &ToolAnswer| SaidAnswer {
                failed: one.failed,
                id: one.id.clone(),
                text: text(&one.text),
                tool: one.tool.clone(),
            };
            Said::Results(all.iter().map(answer).collect())
        }
    }
}

/// The request of the last of `calls`, which are the calls of its task up to it, in order. Its canonical text has the
/// recorded hash.
pub async fn request(store: &dyn Store, calls: &[&ModelCall]) -> Result<Ask, KeptError> {
    let mut before = Before::default();
    let mut last = None;
    for call in calls {
        let ask = joined(store, call, &before).await?;
        before = Before { messages: ask.messages.clone(), reply: reply(store, call).await?.ok() };
        last = Some(ask);
    }
    last.ok_or_else(|| {
        StoreError::Unavailable { doing: "read a request".into(), reason: "no call was named".into() }.into()
    })
}

async fn joined(store: &dyn Store, call: &ModelCall, before: &Before) -> Result<Ask, KeptError> {
    let kept = call.kept.as_ref().ok_or_else(|| KeptError::NotKept(call.id.clone()))?;
    let corrupt = |reason: String| KeptError::Corrupt { call: call.id.clone(), reason };
    let frame: Frame = parsed(store, call, &kept.frame).await?;
    let added: Added = parsed(store, call, &kept.added).await?;
    let mut texts = Vec::new();
    for id in &kept.texts {
        texts.push(String::from_utf8(bytes(store, call, id).await?).map_err(|e| corrupt(e.to_string()))?);
    }
    let mut messages: Vec<Message> = before.messages.iter().take(added.same).cloned().collect();
    if messages.len() < added.same {
        return Err(corrupt(format!("it continues {} messages of the call before, which are missing", added.same)));
    }
    for said in added.messages {
        messages.push(heard(said, before, &texts).ok_or_else(|| corrupt("a text of it is missing".into()))?);
    }
    let ask = Ask {
        id: call.id.clone(),
        model: call.model.clone(),
        prompt: call.prompt.clone(),
        purpose: call.purpose,
        system: frame.system,
        messages,
        tools: frame.tools,
        choice: added.choice,
        format: frame.format,
        max_output: added.max_output,
    };
    let found = ask.fingerprint();
    if found != call.request {
        return Err(corrupt(format!("it has the hash {found}, {} is recorded", call.request)));
    }
    Ok(ask)
}

fn heard(said: Said, before: &Before, texts: &[String]) -> Option<Message> {
    let text = |text: Text| match text {
        Text::Kept(number) => texts.get(number).cloned(),
        Text::Here(text) => Some(text),
    };
    Some(match said {
        Said::User(parts) => {
            let parts = parts.into_iter().map(|part| Some(Part { cache: part.cache, text: text(part.text)? }));
            Message::User(parts.collect::<Option<_>>()?)
        }
        Said::Assistant(reply) => Message::Assistant(reply),
        Said::Reply => Message::Assistant(before.reply.as_deref()?.clone()),
        Said::Results(all) => {
            let answer = |SaidAnswer { failed, id, text: shown, tool }| {
                Some(ToolAnswer { failed, id, text: text(shown)?, tool })
            };
            Message::Results(all.into_iter().map(answer).collect::<Option<_>>()?)
        }
    })
}

async fn parsed<T: DeserializeOwned>(store: &dyn Store, call: &ModelCall, id: &ArtifactId) -> Result<T, KeptError> {
    let bytes = bytes(store, call, id).await?;
    serde_json::from_slice(&bytes)
        .map_err(|e| KeptError::Corrupt { call: call.id.clone(), reason: format!("artifact {id}: {e}") })
}

async fn bytes(store: &dyn Store, call: &ModelCall, id: &ArtifactId) -> Result<Vec<u8>, KeptError> {
    let missing = || KeptError::Corrupt { call: call.id.clone(), reason: format!("artifact {id} is not in the store") };
    store.get(id).await?.ok_or_else(missing)
}

/// The stored result of a model call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredReply {
    Reply(Reply),
    Fault(Fault),
}

impl StoredReply {
    pub(crate) fn into_result(self) -> Result<Arc<Reply>, Fault> {
        match self {
            Self::Reply(reply) => Ok(Arc::new(reply)),
            Self::Fault(fault) => Err(fault),
        }
    }
}

/// The recorded reply to a call, or why there is none.
pub async fn reply(store: &dyn Store, call: &ModelCall) -> Result<Result<Arc<Reply>, Fault>, KeptError> {
    let corrupt = |reason: String| KeptError::Corrupt { call: call.id.clone(), reason };
    let id = call.reply.as_ref().ok_or_else(|| corrupt("it has no reply".into()))?;
    let stored: StoredReply = stored::read(&bytes(store, call, id).await?).map_err(corrupt)?;
    Ok(stored.into_result())
}
