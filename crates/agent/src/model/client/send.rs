//! One attempt over HTTP, with limits on time and size.

use std::time::Duration;

use casebook_protocol::one_line;
use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::model::Fault;
use crate::model::client::codec::Draft;
use crate::model::config::Profile;
use crate::model::retry::{self, Failed};
use crate::model::secret;

/// The largest accepted reply, in bytes. The longest outputs of current models, 128,000 tokens, have about half a
/// megabyte.
pub(super) const MAX_REPLY: usize = 8 * 1024 * 1024;

const MAX_ERROR: usize = 64 * 1024;

const MAX_MESSAGE: usize = 300;

/// The client for all providers. It does not follow redirects, which would get the key in the headers. It accepts no
/// compression, so that the size limit counts all bytes.
pub(super) fn http() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .user_agent(concat!("casebook/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_gzip()
        .connect_timeout(Duration::from_secs(10))
        .build()
}

pub(super) async fn once(
    http: &reqwest::Client,
    key: Option<&SecretString>,
    profile: &Profile,
    draft: &Draft,
) -> Result<Value, Failed> {
    match tokio::time::timeout(profile.timeout, exchange(http, key, profile, draft)).await {
        Ok(result) => result,
        Err(_) => {
            let message = format!("no answer within {} s (timeout_seconds)", profile.timeout.as_secs());
            Err(Failed::passing(Fault::TimedOut, message))
        }
    }
}

async fn exchange(
    http: &reqwest::Client,
    key: Option<&SecretString>,
    profile: &Profile,
    draft: &Draft,
) -> Result<Value, Failed> {
    let url = format!("{}{}", profile.base_url, draft.path);
    let request = http.post(url).headers(headers(draft, key)?).body(draft.body.clone());
    let mut response = request.send().await.map_err(|error| network(&error))?;
    let status = response.status();
    if status.is_success() {
        let unreadable = |message: String| Failed::final_(Fault::Unreadable, message).general();
        let too_large =
            || unreadable(format!("the reply is larger than {MAX_REPLY} bytes and was not read to its end"));
        let body = read(&mut response, MAX_REPLY).await.map_err(|error| network(&error))?.ok_or_else(too_large)?;
        let json: Value =
            serde_json::from_slice(&body).map_err(|_| unreadable("the reply is not JSON; check base_url".into()))?;
        return error_within(&json, key, draft).map_or(Ok(json), Err);
    }
    let wait = wait(response.headers());
    // The status alone is enough if the body cannot be read.
    let body = read(&mut response, MAX_ERROR).await.ok().flatten().unwrap_or_default();
    Err(refused(status, wait, &body, key, draft))
}

fn headers(draft: &Draft, key: Option<&SecretString>) -> Result<HeaderMap, Failed> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in draft.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let (name, before) = draft.key;
        let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret()))
            .map_err(|_| Failed::final_(Fault::Rejected, "the key cannot be sent in an HTTP header"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

async fn read(response: &mut Response, max: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let announced = response.content_length().unwrap_or_default();
    if announced > u64::try_from(max).unwrap_or(u64::MAX) {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Our own description of the error, since its text contains the address, which may be secret.
fn network(error: &reqwest::Error) -> Failed {
    if error.is_builder() {
        return Failed::final_(Fault::Rejected, "the request cannot be sent; check base_url");
    }
    let what = if error.is_connect() {
        "no connection to the server; check base_url and that it runs"
    } else if error.is_body() || error.is_decode() {
        "the connection broke within the reply"
    } else {
        "the connection broke before the reply"
    };
    Failed::passing(Fault::Unavailable, what)
}

fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = text("retry-after-ms").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
    millis.or_else(|| retry::retry_after(text(RETRY_AFTER.as_str())?, Timestamp::now()))
}

fn refused(
    status: StatusCode,
    wait: Option<Duration>,
    body: &[u8],
    key: Option<&SecretString>,
    draft: &Draft,
) -> Failed {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = message(&json).map(|text| format!(": {}", harmless(text, key, draft))).unwrap_or_default();
    let hint = match status.as_u16() {
        300..=399 => " (redirects are not followed; write the final address as base_url)",
        401 | 403 => " (check the key and what it may use)",
        404 => " (check model and base_url)",
        _ => "",
    };
    let delay = wait.map(|wait| format!(" (retry after {} s)", wait.as_secs_f64())).unwrap_or_default();
    let message = format!("HTTP {}{detail}{hint}{delay}", status.as_u16());
    // An empty account is reported as 429, but waiting does not help.
    let spent = json.pointer("/error/code").and_then(Value::as_str) == Some("insufficient_quota");
    if retry::passes(status.as_u16()) && !spent {
        Failed { wait, ..Failed::passing(Fault::Unavailable, message) }
    } else if spent || matches!(status.as_u16(), 401..=403) {
        Failed::final_(Fault::Rejected, message).general()
    } else {
        Failed::final_(Fault::Rejected, message)
    }
}

/// The error that some servers put into a reply with status 200.
fn error_within(json: &Value, key: Option<&SecretString>, draft: &Draft) -> Option<Failed> {
    let error = json.get("error").filter(|error| !error.is_null())?;
    let detail = message(json).map(|text| format!(": {}", harmless(text, key, draft))).unwrap_or_default();
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let text = format!("an error within the reply{detail}");
    Some(if retry::passes(status) {
        Failed::passing(Fault::Unavailable, text)
    } else {
        Failed::final_(Fault::Rejected, text)
    })
}

/// The provider's error message. Gemini sends a list with one error.
fn message(json: &Value) -> Option<&str> {
    ["/error/message", "/0/error/message", "/message", "/error", "/detail"]
        .into_iter()
        .find_map(|at| json.pointer(at)?.as_str())
}

/// The longest match between a message and a request that counts as chance, in characters.
const SHARED: usize = 32;

/// `text` on one short line without the key, or a note if it quotes the request.
fn harmless(text: &str, key: Option<&SecretString>, draft: &Draft) -> String {
    let text = one_line(&secret::redact(text, key), MAX_MESSAGE);
    let request = String::from_utf8_lossy(&draft.body);
    let chars: Vec<char> = text.chars().collect();
    let quotes = chars.windows(SHARED).step_by(4).any(|part| request.contains(&part.iter().collect::<String>()));
    if quotes { "(its message quotes the request and is left out)".into() } else { text }
}
