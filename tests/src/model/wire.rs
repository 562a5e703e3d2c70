//! The wire formats, as pure functions: parses bytes to a [`Request`] or the provider's error, and writes a
//! [`Reply`] as the provider's JSON.
//!
//! A JSON Schema for each format defines the fields of a body (`wire/*.schema.json`, written from the API
//! references of both providers as of 2026). [`rules`] contains what a schema cannot express.

mod anthropic;
mod chat;
mod responses;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use hyper::body::Bytes;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};

use crate::model::cache::Counted;
use crate::model::play::Reply;
use crate::model::request::{Provider, Request, hash};

/// The creation time of every reply: the same request gives the same bytes.
const CREATED: u64 = 1_767_225_600;

/// The relevant parts of an HTTP request.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// `x-api-key`, or the bearer token.
    pub key: Option<String>,
    pub version: Option<String>,
    pub bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    pub message: String,
}

impl Refused {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: Counted,
    pub output: u64,
}

pub fn provider(path: &str) -> Option<Provider> {
    Provider::ALL.into_iter().find(|provider| provider.path() == path)
}

/// Parses a request, or returns the provider's refusal.
pub fn read(provider: Provider, incoming: &Incoming) -> Result<Request, Refused> {
    let key = incoming.key.as_deref().filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Refused::new(401, "an API key is required"))?;
    if provider == Provider::Anthropic && incoming.version.as_deref() != Some("2023-06-01") {
        return Err(Refused::new(400, "anthropic-version: header is required and must be a version that exists"));
    }
    let body: Value = serde_json::from_slice(&incoming.bytes)
        .map_err(|error| Refused::new(400, format!("The request body is not valid JSON: {error}")))?;
    let (schema, read): (&Validator, fn(&Value) -> Request) = match provider {
        Provider::Anthropic => (&ANTHROPIC, anthropic::read),
        Provider::Chat => (&CHAT, chat::read),
        Provider::Responses => (&RESPONSES, responses::read),
    };
    schema.validate(&body).map_err(|error| Refused::new(400, plain(&error)))?;
    let mut request = read(&body);
    rules::check(&request).map_err(|message| Refused::new(400, message))?;
    request.key = key.to_owned();
    request.bytes = incoming.bytes.clone();
    Ok(request)
}

static ANTHROPIC: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("wire/anthropic.schema.json")));
static CHAT: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("wire/chat.schema.json")));
static RESPONSES: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("wire/responses.schema.json")));
static STRICT: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("wire/strict.schema.json")));

#[allow(clippy::expect_used, reason = "the schemas are part of the program")]
fn compiled(text: &str) -> Validator {
    let schema = serde_json::from_str(text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is a JSON Schema")
}

/// The place and kind of a violation. For `anyOf`, describes the variant whose types and constants match best.
fn plain(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::AnyOf { context } = error.kind() {
        let other = |error: &&ValidationError<'_>| {
            matches!(error.kind(), ValidationErrorKind::Constant { .. } | ValidationErrorKind::Type { .. })
        };
        let meant = context.iter().min_by_key(|errors| errors.iter().filter(other).count());
        if let Some(first) = meant.and_then(|errors| errors.first()) {
            return plain(first);
        }
    }
    format!("{}: {}", error.instance_path(), error.masked())
}

/// The refusal of a prompt that exceeds the model's window, in tokens.
pub fn too_long(provider: Provider, tokens: u64, window: u64) -> Refused {
    let message = match provider {
        Provider::Anthropic => format!("prompt is too long: {tokens} tokens > {window} maximum"),
        _ => format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
        ),
    };
    Refused::new(400, message)
}

pub fn failure(status: u16) -> Refused {
    let message = match status {
        401 => "Incorrect API key provided.",
        429 => "This request would exceed your rate limit.",
        529 => "Overloaded",
        _ => "Internal server error",
    };
    Refused::new(status, message)
}

pub fn error_body(provider: Provider, Refused { status, message }: &Refused) -> Value {
    if provider == Provider::Anthropic {
        let kind = match status {
            401 => "authentication_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            400..500 => "invalid_request_error",
            _ => "api_error",
        };
        let request = format!("req_{:016x}", hash(message));
        return json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request});
    }
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..500 => ("invalid_request_error", None),
        _ => ("server_error", None),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    match request.provider {
        Provider::Anthropic => anthropic::body(request, reply, usage),
        Provider::Chat => chat::body(request, reply, usage),
        Provider::Responses => responses::body(request, reply, usage),
    }
}

pub fn output_tokens(reply: &Reply) -> u64 {
    let calls: usize = reply.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    ((reply.text.len() + calls) as u64).div_ceil(crate::model::cache::BYTES_A_TOKEN)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a content that is a text or a list of parts.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts.iter().map(|part| text(part, "text") + &text(part, "refusal")).collect(),
        _ => Vec::new(),
    }
}
