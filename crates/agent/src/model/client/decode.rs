//! What a provider answered, in our terms.

use casebook_protocol::one_line;
use genai::chat::{ChatResponse, ContentPart, StopReason, Usage};
use serde_json::{Value, json};

use crate::model::client::encode;
use crate::model::config::{Profile, Provider};
use crate::model::retry::Failed;
use crate::model::{Called, Fault, Reply, Stop};
use casebook_protocol::Tokens;

/// The body of a good reply, made such that the library reads all of it: arguments that are not JSON
/// would cost the whole reply otherwise, and a refusal would be no text at all.
pub(super) fn fit(provider: Provider, body: Vec<u8>) -> Result<Vec<u8>, Failed> {
    let unreadable = |what: &str| Failed::final_(Fault::Unreadable, what);
    let mut json: Value =
        serde_json::from_slice(&body).map_err(|_| unreadable("the reply is not JSON: check base_url"))?;
    let there = match provider {
        Provider::Anthropic => json.get("content").is_some_and(Value::is_array),
        Provider::Openai | Provider::OpenaiCompatible => {
            let choice = json.pointer_mut("/choices/0");
            choice.filter(|choice| choice.get("message").is_some_and(Value::is_object)).map(chat).is_some()
        }
        Provider::OpenaiResponses => json.get("output").is_some_and(Value::is_array) && responses(&mut json).is_some(),
        Provider::Gemini => gemini(&mut json).is_some(),
        Provider::Bedrock => json.pointer("/output/message").is_some(),
    };
    if !there {
        return Err(unreadable("the reply does not have this provider's form"));
    }
    for usage in ["usage", "usageMetadata"] {
        bound(json.get_mut(usage));
    }
    serde_json::to_vec(&json).map_err(|_| unreadable("the reply cannot be written again"))
}

/// Tokens that one call is believed to have counted of a kind: the library adds them up in 32 bits.
pub(super) const MAX_TOKENS: u32 = 500_000_000;

fn bound(usage: Option<&mut Value>) {
    for count in usage.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        if count.as_f64().is_some_and(|n| n > f64::from(MAX_TOKENS)) {
            *count = json!(MAX_TOKENS);
        }
    }
}

/// Sets a field, where there is an object to have it. Indexing would panic where there is none.
fn set(json: &mut Value, key: &str, value: Value) {
    if let Some(map) = json.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// Takes a field away; null where there is none.
fn take(json: &mut Value, key: &str) -> Value {
    json.get_mut(key).map(Value::take).unwrap_or_default()
}

fn text_at<'a>(json: &'a Value, pointer: &str) -> Option<&'a str> {
    json.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// One choice of OpenAI Chat.
fn chat(choice: &mut Value) {
    let calls = choice.pointer_mut("/message/tool_calls").and_then(Value::as_array_mut);
    for (n, call) in calls.into_iter().flatten().enumerate() {
        if text_at(call, "/id").is_none() {
            set(call, "id", json!(format!("call_{n}")));
        }
        set(call, "type", json!("function"));
        if let Some(function) = call.get_mut("function") {
            let arguments = parsable(take(function, "arguments"));
            set(function, "arguments", arguments);
        }
    }
    if let Some(refusal) = text_at(choice, "/message/refusal").map(str::to_owned) {
        if let Some(message) = choice.get_mut("message") {
            set(message, "content", Value::String(refusal));
        }
        set(choice, "finish_reason", json!("content_filter"));
    }
}

/// OpenAI Responses.
fn responses(json: &mut Value) -> Option<()> {
    let mut refused = text_at(json, "/incomplete_details/reason") == Some("content_filter");
    for item in json.get_mut("output")?.as_array_mut()? {
        if text_at(item, "/type") == Some("function_call") {
            let arguments = parsable(take(item, "arguments"));
            set(item, "arguments", arguments);
        }
        for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            if text_at(part, "/type") == Some("refusal") {
                refused = true;
                *part = json!({"type": "output_text", "text": take(part, "refusal")});
            }
        }
    }
    if refused {
        set(json, "status", json!("content_filter"));
    }
    Some(())
}

/// Gemini: a prompt that it blocks has no candidate at all.
fn gemini(json: &mut Value) -> Option<()> {
    if json.pointer("/candidates/0").is_none() {
        json.pointer("/promptFeedback/blockReason")?;
        set(json, "candidates", json!([{"content": {"parts": []}, "finishReason": "PROHIBITED_CONTENT"}]));
    }
    Some(())
}

/// `arguments` as a text that is JSON: as it is, or else as a JSON string of what it was.
fn parsable(arguments: Value) -> Value {
    let text = match arguments {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    // Many servers write nothing when there is nothing to say.
    if text.trim().is_empty() {
        return json!("{}");
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if !value.is_string() => Value::String(text),
        _ => Value::String(Value::String(text).to_string()),
    }
}

/// What the library read: the model as its provider names it, the reply, and what was counted.
pub(super) fn response(profile: &Profile, response: ChatResponse) -> Result<(String, Reply, Tokens), Failed> {
    let ChatResponse { content, reasoning_content, provider_model_iden, stop_reason, usage, .. } = response;
    let parts = content.into_parts();
    let text = parts.iter().filter_map(ContentPart::as_text).collect::<Vec<_>>().concat();
    let calls: Vec<Called> = parts.iter().filter_map(ContentPart::as_tool_call).map(called).collect();
    let reported = provider_model_iden.model_name.as_str();
    // The library's own name for it means that the provider gave none.
    let version = if reported.ends_with("-exact") { profile.provider_model.as_str() } else { reported };
    let kept = kept(profile, parts, reasoning_content, !calls.is_empty());
    Ok((one_line(version, 128), Reply { text, calls, stop: stop(stop_reason), kept }, tokens(&usage)))
}

fn called(call: &genai::chat::ToolCall) -> Called {
    let arguments = arguments(&call.fn_arguments);
    Called { id: call.call_id.clone(), tool: call.fn_name.clone(), arguments }
}

/// Arguments as a text: what was no JSON stands in a string.
pub(super) fn arguments(json: &Value) -> String {
    match json {
        Value::String(raw) => raw.clone(),
        Value::Null => "{}".into(),
        json => json.to_string(),
    }
}

pub(super) fn stop(reason: Option<StopReason>) -> Stop {
    match reason {
        None | Some(StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_)) => Stop::Done,
        Some(StopReason::MaxTokens(_)) => Stop::Length,
        Some(StopReason::ContentFilter(_)) => Stop::Refused,
        Some(StopReason::Other(other)) => Stop::Other(one_line(&other, 64)),
    }
}

/// What is to go back: thoughts that the provider signed or sealed, and those that some compatible
/// servers want with the calls that followed from them.
pub(super) fn kept(
    profile: &Profile,
    mut parts: Vec<ContentPart>,
    thoughts: Option<String>,
    calls: bool,
) -> Option<String> {
    if profile.provider == Provider::OpenaiCompatible && calls {
        parts.extend(thoughts.filter(|text| !text.is_empty()).map(ContentPart::ReasoningContent));
    }
    let plain = |part: &ContentPart| match part {
        ContentPart::Text(_) => true,
        ContentPart::ToolCall(call) => call.thought_signatures.is_none(),
        _ => false,
    };
    if parts.iter().all(plain) {
        return None;
    }
    for part in &mut parts {
        if let ContentPart::Custom(custom) = part {
            custom.model_iden = None;
        }
    }
    encode::keep(profile, parts)
}

fn tokens(usage: &Usage) -> Tokens {
    let count = |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
    let details = usage.prompt_tokens_details.as_ref();
    Tokens {
        input: count(usage.prompt_tokens),
        cached: count(details.and_then(|d| d.cached_tokens)),
        cache_written: count(details.and_then(|d| d.cache_creation_tokens)),
        output: count(usage.completion_tokens),
    }
}
