//! OpenAI Chat Completions.

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::openai::{CREATED, Unpaired, call_id, choice, content, schema, tool, unknown_value, unpaired};
use super::{Fields, Refused, Usage, pieces};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Provider, Request, Turn};

const WE: Provider = Provider::Chat;
const KNOWN: [&str; 25] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "stream",
    "stream_options",
    "seed",
    "user",
    "store",
    "metadata",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "safety_identifier",
];

pub(super) fn read(body: &Map<String, Value>) -> Result<Request, Refused> {
    let body = Fields::of_map(body, WE, "", &KNOWN)?;
    let mut prefix = Prefix::new(false);
    let model = body.text("model")?.to_owned();
    let mut tools = Vec::new();
    if body.get("tools").is_some() && body.list("tools")?.is_empty() {
        return Err(Refused::bad("tools", "[] is too short - 'tools'").code("empty_array"));
    }
    for (one, n) in body.list_or_none("tools")?.iter().zip(0..) {
        let outer = Fields::of(one, WE, &format!("tools[{n}]"), &["type", "function"])?;
        if outer.text("type")? != "function" {
            return Err(unknown_value(&outer, "type"));
        }
        let known = ["name", "description", "parameters", "strict"];
        tools.push(tool(&Fields::of(outer.need("function")?, WE, &outer.at("function"), &known)?, &mut prefix)?);
    }
    let choice = choice(&body, &tools, |value| {
        let outer = Fields::of(value, WE, "tool_choice", &["type", "function"])?;
        Fields::of(outer.need("function")?, WE, "tool_choice.function", &["name"])?.text("name").map(str::to_owned)
    })?;
    let format = format(&body, &mut prefix)?;
    let (mut system, mut turns) = (Vec::new(), Vec::new());
    for (message, n) in body.list("messages")?.iter().zip(0..) {
        turn(message, n, &mut system, &mut turns)?;
        prefix.add(&message.to_string(), false);
    }
    match unpaired(&turns) {
        None => {}
        Some(Unpaired::Calls(n, open)) => {
            let message = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            );
            return Err(Refused::bad(&format!("messages.[{n}].role"), message));
        }
        Some(Unpaired::Answer(n, _)) => {
            let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
            return Err(Refused::bad(&format!("messages.[{n}].role"), message));
        }
    }
    let max_output = match (body.number("max_completion_tokens")?, body.number("max_tokens")?) {
        (Some(_), Some(_)) => {
            let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
            return Err(Refused::bad("max_tokens", message));
        }
        (newer, older) => newer.or(older),
    };
    let stream = body.flag("stream")?;
    let stream_usage = match body.get("stream_options") {
        Some(_) if !stream => {
            let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(Refused::bad("stream_options", message));
        }
        Some(options) => Fields::of(options, WE, "stream_options", &["include_usage"])?.flag("include_usage")?,
        None => false,
    };
    Ok(Request {
        provider: WE,
        path: String::new(),
        key: String::new(),
        model,
        system: system.join("\n\n"),
        turns,
        tools,
        choice,
        format,
        max_output,
        stream,
        stream_usage,
        bytes: Bytes::new(),
        prefix,
    })
}

fn format(body: &Fields<'_>, prefix: &mut Prefix) -> Result<Option<(String, Value)>, Refused> {
    let Some(format) = body.get("response_format") else { return Ok(None) };
    let format = Fields::of(format, WE, "response_format", &["type", "json_schema"])?;
    match format.text("type")? {
        "text" | "json_object" => Ok(None),
        "json_schema" => {
            let known = ["name", "description", "schema", "strict"];
            let inner = Fields::of(format.need("json_schema")?, WE, "response_format.json_schema", &known)?;
            schema(&inner, prefix).map(Some)
        }
        _ => Err(unknown_value(&format, "type")),
    }
}

fn turn(message: &Value, n: usize, system: &mut Vec<String>, turns: &mut Vec<Turn>) -> Result<(), Refused> {
    let place = format!("messages[{n}]");
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let known: &[&str] = match role {
        "assistant" => &["role", "content", "name", "tool_calls", "refusal"],
        "tool" => &["role", "content", "tool_call_id"],
        _ => &["role", "content", "name"],
    };
    let fields = Fields::of(message, WE, &place, known)?;
    match role {
        "system" | "developer" => system.push(content(&fields, "content", &["text"])?.join("\n\n")),
        "user" => turns.push(Turn::User(content(&fields, "content", &["text"])?)),
        "tool" => {
            let text = content(&fields, "content", &["text"])?.concat();
            let answer = Answer { id: fields.text("tool_call_id")?.to_owned(), text };
            match turns.last_mut() {
                Some(Turn::Results(answers)) => answers.push(answer),
                _ => turns.push(Turn::Results(vec![answer])),
            }
        }
        "assistant" => {
            let mut calls = Vec::new();
            for (one, k) in fields.list_or_none("tool_calls")?.iter().zip(0..) {
                calls.push(call(one, &format!("{place}.tool_calls[{k}]"))?);
            }
            let text = match fields.get("content") {
                None if !calls.is_empty() || fields.get("refusal").is_some() => String::new(),
                _ => content(&fields, "content", &["text", "refusal"])?.concat(),
            };
            turns.push(Turn::Assistant { text, calls });
        }
        _ => return Err(unknown_value(&fields, "role")),
    }
    Ok(())
}

fn call(call: &Value, place: &str) -> Result<Call, Refused> {
    let outer = Fields::of(call, WE, place, &["id", "type", "function"])?;
    if outer.text("type")? != "function" {
        return Err(unknown_value(&outer, "type"));
    }
    let inner = Fields::of(outer.need("function")?, WE, &outer.at("function"), &["name", "arguments"])?;
    let id = outer.text("id")?.to_owned();
    Ok(Call { id, name: inner.text("name")?.to_owned(), arguments: inner.text("arguments")?.to_owned() })
}

const fn finish(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Length => "length",
        Stop::Done if !reply.calls.is_empty() => "tool_calls",
        Stop::Done | Stop::Refusal => "stop",
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({"prompt_tokens": usage.prompt.input, "completion_tokens": usage.output,
        "total_tokens": usage.prompt.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.prompt.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}})
}

fn call_of(request: &Request, n: usize, name: &str, arguments: &str) -> Value {
    json!({"id": call_id(request, n), "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    let refused = reply.stop == Stop::Refusal;
    let text = (!reply.text.is_empty() && !refused).then_some(&reply.text);
    let mut message =
        json!({"role": "assistant", "content": text, "refusal": refused.then_some(&reply.text), "annotations": []});
    if let (Some(map), false) = (message.as_object_mut(), reply.calls.is_empty()) {
        let calls = reply.calls.iter().enumerate().map(|(n, call)| call_of(request, n, &call.name, &call.arguments));
        map.insert("tool_calls".into(), calls.collect());
    }
    json!({"id": format!("chatcmpl-{:016x}", request.seed()), "object": "chat.completion", "created": CREATED,
        "model": request.model, "service_tier": "default", "system_fingerprint": null, "usage": usage_of(usage),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply)}]})
}

pub(super) fn events(request: &Request, reply: &Reply, usage: Usage) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let data = json!({"id": format!("chatcmpl-{:016x}", request.seed()), "object": "chat.completion.chunk",
            "created": CREATED, "model": request.model, "system_fingerprint": null,
            "choices": choices, "usage": usage});
        format!("data: {data}\n\n")
    };
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), Value::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": "", "refusal": null}), None)];
    let key = if reply.stop == Stop::Refusal { "refusal" } else { "content" };
    events.extend(pieces(&reply.text).into_iter().map(|piece| delta(json!({key: piece}), None)));
    for (n, call) in reply.calls.iter().enumerate() {
        let mut first = call_of(request, n, &call.name, "");
        if let Some(map) = first.as_object_mut() {
            map.insert("index".into(), json!(n));
        }
        events.push(delta(json!({"tool_calls": [first]}), None));
        let more = |piece| json!({"tool_calls": [{"index": n, "function": {"arguments": piece}}]});
        events.extend(pieces(&call.arguments).into_iter().map(|piece| delta(more(piece), None)));
    }
    events.push(delta(json!({}), Some(finish(reply))));
    if request.stream_usage {
        events.push(chunk(json!([]), usage_of(usage)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
