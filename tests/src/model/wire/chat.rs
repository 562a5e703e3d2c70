use serde_json::{Value, json};

use super::{CREATED, Usage, list, text, texts};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Choice, Provider, Request, Tool, Turn};

pub(super) fn read(body: &Value) -> Request {
    let mut prefix = Prefix::new(false);
    let tools = list(body, "tools").iter().map(|tool| declared(&tool["function"], &mut prefix)).collect();
    let choice = choice(&body["tool_choice"], "/function/name");
    let format = body.pointer("/response_format/json_schema").map(|format| asked(format, &mut prefix));
    let (mut system, mut turns) = (Vec::new(), Vec::new());
    for message in list(body, "messages") {
        prefix.add(&message.to_string(), false);
        let content = texts(&message["content"]);
        match message["role"].as_str() {
            Some("user") => turns.push(Turn::User(content)),
            Some("tool") => answered(Answer { id: text(message, "tool_call_id"), text: content.concat() }, &mut turns),
            Some("assistant") => {
                let calls = list(message, "tool_calls").iter().map(|call| Call {
                    id: text(call, "id"),
                    name: text(&call["function"], "name"),
                    arguments: text(&call["function"], "arguments"),
                });
                turns.push(Turn::Assistant { text: content.concat(), calls: calls.collect() });
            }
            _ => system.extend(content),
        }
    }
    let max_output = body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64());
    let system = system.join("\n\n");
    Request { system, turns, tools, choice, format, max_output, ..Request::of(Provider::Chat, body, prefix) }
}

/// Parses a tool from the object with its name, schema and strictness.
pub(super) fn declared(tool: &Value, prefix: &mut Prefix) -> Tool {
    prefix.add(&tool.to_string(), false);
    let schema = tool.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    Tool { name: text(tool, "name"), schema, strict: tool["strict"] == true }
}

/// Parses a structured output from the object with its name and schema.
pub(super) fn asked(format: &Value, prefix: &mut Prefix) -> (String, Value) {
    prefix.add(&format["schema"].to_string(), false);
    (text(format, "name"), format["schema"].clone())
}

/// Parses the choice of tools; `name` points to the name of a forced one.
pub(super) fn choice(choice: &Value, name: &str) -> Choice {
    match choice.as_str() {
        Some("none") => Choice::None,
        Some("required") => Choice::Any,
        Some(_) => Choice::Auto,
        None => choice.pointer(name).and_then(Value::as_str).map_or(Choice::Auto, |name| Choice::Only(name.to_owned())),
    }
}

/// Adds a result of a call; consecutive results are one turn.
pub(super) fn answered(answer: Answer, turns: &mut Vec<Turn>) {
    match turns.last_mut() {
        Some(Turn::Results(answers)) => answers.push(answer),
        _ => turns.push(Turn::Results(vec![answer])),
    }
}

pub(super) fn call_id(request: &Request, n: usize) -> String {
    format!("call_{:016x}{n:02}", request.seed())
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    let refused = reply.stop == Stop::Refusal;
    let text = (!reply.text.is_empty() && !refused).then_some(&reply.text);
    let mut message =
        json!({"role": "assistant", "content": text, "refusal": refused.then_some(&reply.text), "annotations": []});
    if let (Some(map), false) = (message.as_object_mut(), reply.calls.is_empty()) {
        let calls = reply.calls.iter().enumerate().map(|(n, call)| {
            json!({"id": call_id(request, n), "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}})
        });
        map.insert("tool_calls".into(), calls.collect());
    }
    let finish = match reply.stop {
        Stop::Length => "length",
        Stop::Done if !reply.calls.is_empty() => "tool_calls",
        Stop::Done | Stop::Refusal => "stop",
    };
    let usage = json!({"prompt_tokens": usage.prompt.input, "completion_tokens": usage.output,
        "total_tokens": usage.prompt.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.prompt.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}});
    json!({"id": format!("chatcmpl-{:016x}", request.seed()), "object": "chat.completion", "created": CREATED,
        "model": request.model, "service_tier": "default", "system_fingerprint": null, "usage": usage,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}]})
}
