use serde_json::{Value, json};

use super::{Usage, list, text, texts};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Choice, Provider, Request, Tool, Turn};

pub(super) fn read(body: &Value) -> Request {
    let mut prefix = Prefix::new(true);
    let format = body.pointer("/output_config/format/schema").map(|schema| (String::new(), schema.clone()));
    prefix.part_by(&format.as_ref().map(|(_, schema)| schema.to_string()));
    let mut tools = Vec::new();
    for tool in list(body, "tools") {
        add(&mut prefix, "", tool);
        let schema = tool["input_schema"].clone();
        tools.push(Tool { name: text(tool, "name"), schema, strict: tool["strict"] == true });
    }
    for block in blocks(&body["system"]) {
        add(&mut prefix, "", block);
    }
    let choice = match text(&body["tool_choice"], "type").as_str() {
        "any" => Choice::Any,
        "none" => Choice::None,
        "tool" => Choice::Only(text(&body["tool_choice"], "name")),
        _ => Choice::Auto,
    };
    prefix.part_by(&format!("{choice:?}"));
    let mut turns = Vec::new();
    for message in list(body, "messages") {
        turn(message, &mut turns, &mut prefix);
    }
    let system = texts(&body["system"]).join("\n\n");
    let max_output = body["max_tokens"].as_u64();
    Request { system, turns, tools, choice, format, max_output, ..Request::of(Provider::Anthropic, body, prefix) }
}

fn turn(message: &Value, turns: &mut Vec<Turn>, prefix: &mut Prefix) {
    let role = text(message, "role");
    let (mut parts, mut calls, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks(&message["content"]) {
        add(prefix, &role, block);
        match block["type"].as_str() {
            None => parts.extend(texts(block)),
            Some("text") => parts.push(text(block, "text")),
            Some("tool_use") => {
                let arguments = block["input"].to_string();
                calls.push(Call { id: text(block, "id"), name: text(block, "name"), arguments });
            }
            Some("tool_result") => {
                // Results must come first: a text before them is a separate turn.
                turns.extend((!parts.is_empty()).then(|| Turn::User(std::mem::take(&mut parts))));
                answers.push(Answer { id: text(block, "tool_use_id"), text: texts(&block["content"]).concat() });
            }
            Some(_) => {}
        }
    }
    if role == "assistant" {
        turns.push(Turn::Assistant { text: parts.concat(), calls });
        return;
    }
    if !answers.is_empty() {
        turns.push(Turn::Results(answers));
    }
    if !parts.is_empty() {
        turns.push(Turn::User(parts));
    }
}

/// The blocks of a content; a single text is one block.
fn blocks(content: &Value) -> &[Value] {
    match content {
        Value::Array(blocks) => blocks,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// Adds a block without its mark, because the cache ignores marks.
fn add(prefix: &mut Prefix, role: &str, block: &Value) {
    let mut plain = block.clone();
    let mark = plain.as_object_mut().and_then(|map| map.remove("cache_control"));
    prefix.add(&format!("{role} {plain}"), mark.is_some());
}

const fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Done if reply.calls.is_empty() => "end_turn",
        Stop::Done => "tool_use",
    }
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    let mut content = Vec::new();
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        // Invalid JSON cannot be an object; it is sent as a string.
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        let id = format!("toolu_{:016x}{n:02}", request.seed());
        content.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
    }
    let plain = usage.prompt.input.saturating_sub(usage.prompt.read + usage.prompt.written);
    let usage = json!({"input_tokens": plain, "cache_creation_input_tokens": usage.prompt.written,
        "cache_read_input_tokens": usage.prompt.read, "output_tokens": usage.output});
    json!({"id": format!("msg_{:016x}", request.seed()), "type": "message", "role": "assistant",
        "model": request.model, "content": content, "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": usage})
}
