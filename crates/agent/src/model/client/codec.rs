//! The formats of requests and replies. Each format is a file with an `encode` and a `decode`.

use bytes::Bytes;
use casebook_protocol::{Tokens, one_line};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::config::{Profile, Provider};
use crate::model::retry::Failed;
use crate::model::{Ask, Called, Fault, Offer, Part, Reply, Stop, ToolAnswer};

mod anthropic;
mod chat;
mod responses;

#[derive(Debug, Clone, Copy)]
pub(super) enum Codec {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
}

/// A request without its key.
pub(super) struct Draft {
    /// Appended to the base URL.
    pub(super) path: &'static str,
    /// The header of the key, and the text before the key in it.
    pub(super) key: (&'static str, &'static str),
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) body: Bytes,
}

pub(super) struct Decoded {
    pub(super) version: String,
    pub(super) reply: Reply,
    pub(super) tokens: Tokens,
}

impl Codec {
    pub(super) const fn of(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic,
            Provider::Openai | Provider::OpenaiCompatible | Provider::Gemini | Provider::Bedrock => Self::Chat,
            Provider::OpenaiResponses => Self::Responses,
        }
    }

    pub(super) fn encode(self, profile: &Profile, ask: &Ask) -> Draft {
        let bearer = ("authorization", "Bearer ");
        let (path, key, headers, body): (_, _, &[_], _) = match self {
            Self::Anthropic => {
                let version = &[("anthropic-version", "2023-06-01")];
                ("messages", ("x-api-key", ""), version, anthropic::encode(profile, ask))
            }
            Self::Chat => ("chat/completions", bearer, &[], chat::encode(profile, ask)),
            Self::Responses => ("responses", bearer, &[], responses::encode(profile, ask)),
        };
        Draft { path, key, headers, body: body.into() }
    }

    pub(super) fn decode(self, profile: &Profile, json: &Value) -> Result<Decoded, Failed> {
        let read = match self {
            Self::Anthropic => anthropic::decode(profile, json),
            Self::Chat => chat::decode(profile, json),
            Self::Responses => responses::decode(profile, json),
        };
        let unreadable = || Failed::final_(Fault::Unreadable, "the reply does not have this provider's form").general();
        let (reply, tokens) = read.ok_or_else(unreadable)?;
        let version = text(json, "model").unwrap_or(&profile.provider_model);
        Ok(Decoded { version: one_line(version, 128), reply, tokens })
    }
}

/// A request body with the tools and the fields of `rest` that are not null. Schemas of tools make up most of many
/// requests, so they are inserted as text.
fn body<'a, T: Serialize>(offers: &'a [Offer], tool: impl Fn(&'a Offer) -> T, mut rest: Value) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<T> {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<T>,
        #[serde(flatten)]
        rest: Value,
    }
    if let Some(map) = rest.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    let tools = offers.iter().map(tool).collect();
    serde_json::to_vec(&Body { tools, rest }).unwrap_or_default()
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    strict: bool,
}

impl<'a> From<&'a Offer> for Function<'a> {
    fn from(Offer { name, description, schema, strict }: &'a Offer) -> Self {
        Self { name, description, parameters: schema.raw(), strict: *strict }
    }
}

fn max_output(profile: &Profile, ask: &Ask) -> u32 {
    ask.max_output.min(profile.max_output)
}

/// Requests with the same key reach the same cache of OpenAI.
fn cache_key(ask: &Ask) -> String {
    let word: String = ask.prompt.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(48).collect();
    format!("casebook-{word}")
}

fn joined(parts: &[Part]) -> String {
    let mut all = String::with_capacity(parts.iter().map(|part| part.text.len() + 1).sum());
    for part in parts {
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(&part.text);
    }
    all
}

/// The text of a reply when it is sent back. Providers refuse an empty message.
fn reply_text(reply: &Reply) -> Option<&str> {
    let text = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty());
    text.or_else(|| reply.calls.is_empty().then_some("(no answer)"))
}

/// Arguments when they are sent back. Providers accept only an object.
fn object(arguments: &str) -> Value {
    let object = serde_json::from_str(arguments).ok().filter(Value::is_object);
    object.unwrap_or_else(|| json!({"unreadable_arguments": arguments}))
}

/// The text of a result for a format without a flag for failures: the first line reports the failure.
fn with_failure(answer: &ToolAnswer) -> String {
    let reported = answer.text.lines().next().is_some_and(|line| line.contains("failed"));
    if answer.failed && !reported {
        format!("call of {} failed\n{}", answer.tool, answer.text)
    } else {
        answer.text.clone()
    }
}

/// [`Reply::kept`]: what is sent back in place of the reply's text and calls. Only the same provider and model accept
/// it.
#[derive(Serialize, Deserialize)]
struct Kept {
    provider: String,
    model: String,
    content: Value,
}

fn keep(profile: &Profile, content: Value) -> Option<String> {
    let (provider, model) = (profile.provider.name().to_owned(), profile.provider_model.clone());
    serde_json::to_string(&Kept { provider, model, content }).ok()
}

fn kept(profile: &Profile, reply: &Reply) -> Option<Value> {
    let kept: Kept = serde_json::from_str(reply.kept.as_deref()?).ok()?;
    (kept.provider == profile.provider.name() && kept.model == profile.provider_model).then_some(kept.content)
}

fn text<'a>(json: &'a Value, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Value::as_str)
}

fn list<'a>(json: &'a Value, key: &str) -> &'a [Value] {
    json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn set(json: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = json.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

/// A call with `arguments` as the model wrote them. Many servers omit empty arguments.
fn called(id: &str, tool: &str, arguments: Option<&Value>) -> Called {
    let arguments = match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(json) => json.to_string(),
    };
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
    Called { id: id.to_owned(), tool: tool.to_owned(), arguments }
}

/// Why a model stopped. Gemini appends its own reason to OpenAI's ("content_filter: SAFETY"), or gives only its own.
fn stop(reason: Option<&str>) -> Stop {
    let Some(reason) = reason else { return Stop::Done };
    match reason.split(':').next().unwrap_or(reason) {
        "stop" | "end_turn" | "completed" | "tool_calls" | "tool_use" | "function_call" | "stop_sequence" | "STOP" => {
            Stop::Done
        }
        "length" | "max_tokens" | "incomplete" | "model_length" | "model_context_window_exceeded" | "MAX_TOKENS" => {
            Stop::Length
        }
        "content_filter" | "refusal" | "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            Stop::Refused
        }
        _ => Stop::Other(one_line(reason, 64)),
    }
}

/// The most tokens of one kind that a count may report.
const MAX_TOKENS: u64 = 500_000_000;

fn count(json: &Value, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Value::as_u64).unwrap_or_default().min(MAX_TOKENS)
}
