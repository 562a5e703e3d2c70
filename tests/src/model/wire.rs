//! The wire formats, as pure functions: bytes to a [`Request`] or the error that the provider would
//! give, and a [`Reply`] to the provider's JSON or its stream of events.
//!
//! Sources: the API references of both providers as of 2026, and error messages as users quote them
//! in public issue trackers.

mod anthropic;
mod chat;
mod openai;
mod responses;
mod strict;

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use crate::model::cache::Counted;
use crate::model::play::Reply;
use crate::model::request::{Provider, Request, hash};

/// What came over HTTP, as far as it matters.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The path.
    pub path: String,
    /// The key: `x-api-key`, or the bearer token.
    pub key: Option<String>,
    /// The header `anthropic-version`.
    pub version: Option<String>,
    /// The body.
    pub bytes: Bytes,
}

/// Why a request is refused, in the provider's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The status.
    pub status: u16,
    /// The provider's type of error.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// The parameter that it is about, for OpenAI.
    pub param: Option<String>,
    /// OpenAI's code.
    pub code: Option<&'static str>,
}

impl Refused {
    /// A request that is wrong at `place`.
    pub(crate) fn bad(place: &str, message: impl Into<String>) -> Self {
        let param = (!place.is_empty()).then(|| place.to_owned());
        Self { status: 400, kind: "invalid_request_error", message: message.into(), param, code: None }
    }

    /// The same with one of OpenAI's codes.
    fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }
}

/// What a provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub prompt: Counted,
    /// Tokens of the reply.
    pub output: u64,
}

/// The provider that a path belongs to.
#[must_use]
pub fn provider(path: &str) -> Option<Provider> {
    Provider::ALL.into_iter().find(|provider| provider.path() == path)
}

/// Reads a request.
///
/// # Errors
/// What the provider would refuse it with.
pub fn read(provider: Provider, incoming: &Incoming) -> Result<Request, Refused> {
    let key = incoming.key.as_deref().filter(|key| !key.is_empty()).ok_or_else(|| no_key(provider))?;
    if provider == Provider::Anthropic && incoming.version.as_deref() != Some("2023-06-01") {
        return Err(Refused::bad("", "anthropic-version: header is required and must be a version that exists"));
    }
    let body: Value = serde_json::from_slice(&incoming.bytes)
        .map_err(|error| Refused::bad("", format!("The request body is not valid JSON: {error}")))?;
    let Value::Object(body) = body else {
        return Err(Refused::bad("", "Input should be an object"));
    };
    let read = match provider {
        Provider::Anthropic => anthropic::read,
        Provider::Chat => chat::read,
        Provider::Responses => responses::read,
    };
    let mut request = read(&body)?;
    request.path.clone_from(&incoming.path);
    request.key = key.to_owned();
    request.bytes = incoming.bytes.clone();
    Ok(request)
}

/// The refusal of a request without a key.
fn no_key(provider: Provider) -> Refused {
    match provider {
        Provider::Anthropic => unauthorised(provider, "x-api-key header is required"),
        _ => unauthorised(provider, "You didn't provide an API key."),
    }
}

/// The refusal of a key that is not known.
#[must_use]
pub fn wrong_key(provider: Provider) -> Refused {
    match provider {
        Provider::Anthropic => unauthorised(provider, "invalid x-api-key"),
        _ => unauthorised(provider, "Incorrect API key provided."),
    }
}

fn unauthorised(provider: Provider, message: &str) -> Refused {
    let (kind, code) = match provider {
        Provider::Anthropic => ("authentication_error", None),
        _ => ("invalid_request_error", Some("invalid_api_key")),
    };
    Refused { status: 401, kind, message: message.to_owned(), param: None, code }
}

/// The refusal of a prompt that is larger than the model's window, in tokens.
#[must_use]
pub fn too_long(provider: Provider, tokens: u64, window: u64) -> Refused {
    match provider {
        Provider::Anthropic => Refused::bad("", format!("prompt is too long: {tokens} tokens > {window} maximum")),
        _ => Refused::bad(
            "messages",
            format!("This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."),
        )
        .code("context_length_exceeded"),
    }
}

/// An error of the provider itself.
#[must_use]
pub fn failure(provider: Provider, status: u16) -> Refused {
    let (kind, message) = match (provider, status) {
        (Provider::Anthropic, 429) => ("rate_limit_error", "This request would exceed your rate limit."),
        (Provider::Anthropic, 529) => ("overloaded_error", "Overloaded"),
        (Provider::Anthropic, _) => ("api_error", "Internal server error"),
        (_, 429) => ("requests", "Rate limit reached. Please try again later."),
        (_, _) => ("server_error", "The server had an error while processing your request."),
    };
    let code = (status == 429 && provider != Provider::Anthropic).then_some("rate_limit_exceeded");
    Refused { status, kind, message: message.to_owned(), param: None, code }
}

/// An error in the provider's form.
#[must_use]
pub fn error_body(provider: Provider, refused: &Refused) -> Value {
    let Refused { kind, message, param, code, .. } = refused;
    match provider {
        Provider::Anthropic => {
            let request = format!("req_{:016x}", hash(&message));
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request})
        }
        _ => json!({"error": {"message": message, "type": kind, "param": param, "code": code}}),
    }
}

/// The reply as one JSON document.
#[must_use]
pub fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    match request.provider {
        Provider::Anthropic => anthropic::body(request, reply, usage),
        Provider::Chat => chat::body(request, reply, usage),
        Provider::Responses => responses::body(request, reply, usage),
    }
}

/// The reply as the text of a stream of server-sent events, event by event.
#[must_use]
pub fn events(request: &Request, reply: &Reply, usage: Usage) -> Vec<String> {
    match request.provider {
        Provider::Anthropic => anthropic::events(request, reply, usage),
        Provider::Chat => chat::events(request, reply, usage),
        Provider::Responses => responses::events(request, reply, usage),
    }
}

/// Tokens of a reply.
#[must_use]
pub fn output_tokens(reply: &Reply) -> u64 {
    let calls: usize = reply.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    ((reply.text.len() + calls) as u64).div_ceil(crate::model::cache::BYTES_A_TOKEN)
}

/// One named event of a stream.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// The text in pieces as a stream brings it.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut at = rest.len().min(512);
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, left) = rest.split_at(at);
        pieces.push(piece);
        rest = left;
    }
    pieces
}

/// An object of a request while it is read: no field may go unread.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    place: String,
    provider: Provider,
}

impl<'a> Fields<'a> {
    /// The object at `place`, which may have only the fields `known`.
    fn of(value: &'a Value, provider: Provider, place: &str, known: &[&str]) -> Result<Self, Refused> {
        let map =
            value.as_object().ok_or_else(|| Refused::bad(place, format!("{place}: Input should be an object")))?;
        Self::of_map(map, provider, place, known)
    }

    fn of_map(map: &'a Map<String, Value>, provider: Provider, place: &str, known: &[&str]) -> Result<Self, Refused> {
        let fields = Self { map, place: place.to_owned(), provider };
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            Some(key) => {
                let at = fields.at(key);
                Err(match provider {
                    Provider::Anthropic => Refused::bad(&at, format!("{at}: Extra inputs are not permitted")),
                    _ => Refused::bad(&at, format!("Unknown parameter: '{at}'.")).code("unknown_parameter"),
                })
            }
        }
    }

    /// The place of a field.
    fn at(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn need(&self, key: &str) -> Result<&'a Value, Refused> {
        self.get(key).ok_or_else(|| {
            let at = self.at(key);
            match self.provider {
                Provider::Anthropic => Refused::bad(&at, format!("{at}: Field required")),
                _ => {
                    Refused::bad(&at, format!("Missing required parameter: '{at}'.")).code("missing_required_parameter")
                }
            }
        })
    }

    fn wrong(&self, key: &str, wanted: &str) -> Refused {
        let at = self.at(key);
        match self.provider {
            Provider::Anthropic => Refused::bad(&at, format!("{at}: Input should be {wanted}")),
            _ => Refused::bad(&at, format!("Invalid type for '{at}': expected {wanted}.")).code("invalid_type"),
        }
    }

    fn text(&self, key: &str) -> Result<&'a str, Refused> {
        self.need(key)?.as_str().ok_or_else(|| self.wrong(key, "a valid string"))
    }

    fn list(&self, key: &str) -> Result<&'a [Value], Refused> {
        self.need(key)?.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong(key, "a valid array"))
    }

    fn list_or_none(&self, key: &str) -> Result<&'a [Value], Refused> {
        if self.get(key).is_some() { self.list(key) } else { Ok(&[]) }
    }

    fn flag(&self, key: &str) -> Result<bool, Refused> {
        let read = |value: &Value| value.as_bool().ok_or_else(|| self.wrong(key, "a valid boolean"));
        self.get(key).map_or(Ok(false), read)
    }

    /// A whole number from 1.
    fn number(&self, key: &str) -> Result<Option<u64>, Refused> {
        let read = |value: &Value| {
            value.as_u64().filter(|n| *n > 0).ok_or_else(|| self.wrong(key, "an integer greater than or equal to 1"))
        };
        self.get(key).map(read).transpose()
    }

    /// A name of a tool or schema: letters, digits, `_` and `-`.
    fn name(&self, key: &str, longest: usize) -> Result<&'a str, Refused> {
        let name = self.text(key)?;
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > longest || !name.chars().all(fine) {
            let at = self.at(key);
            let rule = format!("'^[a-zA-Z0-9_-]{{1,{longest}}}$'");
            return Err(Refused::bad(&at, format!("{at}: String should match pattern {rule}")));
        }
        Ok(name)
    }
}
