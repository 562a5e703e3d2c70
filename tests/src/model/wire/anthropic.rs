//! Anthropic Messages.

use std::collections::BTreeSet;

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::{Fields, Refused, Usage, event, pieces, strict};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Choice, Provider, Request, Tool, Turn};

const WE: Provider = Provider::Anthropic;
/// A request may have so many marks.
const MARKS: usize = 4;

pub(super) fn read(body: &Map<String, Value>) -> Result<Request, Refused> {
    let known = [
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "thinking",
        "output_config",
        "service_tier",
        "cache_control",
    ];
    let body = Fields::of_map(body, WE, "", &known)?;
    let mut prefix = Prefix::new(true);
    let model = body.text("model")?.to_owned();
    let max_output = body.number("max_tokens")?.ok_or_else(|| Refused::bad("", "max_tokens: Field required"))?;
    let format = format(&body)?;
    prefix.part_by(&format.as_ref().map(|(_, schema)| schema.to_string()));
    let tools = tools(&body, &mut prefix)?;
    let choice = choice(&body, &tools)?;
    let system = system(&body, &mut prefix)?;
    prefix.part_by(&format!("{choice:?}"));
    let mut turns = Vec::new();
    for (message, n) in body.list("messages")?.iter().zip(0..) {
        turn(message, n, &mut turns, &mut prefix)?;
    }
    paired(&turns)?;
    if !matches!(turns.last(), Some(Turn::User(_) | Turn::Results(_))) {
        return Err(Refused::bad("", "messages: the conversation must end with a user message"));
    }
    let has_calls = |turn: &Turn| match turn {
        Turn::Assistant { calls, .. } => !calls.is_empty(),
        Turn::Results(_) => true,
        Turn::User(_) => false,
    };
    if tools.is_empty() && turns.iter().any(has_calls) {
        return Err(Refused::bad("", "Requests which include `tool_use` or `tool_result` blocks must define tools."));
    }
    if prefix.marks() > MARKS {
        let found = prefix.marks();
        return Err(Refused::bad(
            "",
            format!("A maximum of {MARKS} blocks with cache_control may be provided. Found {found}."),
        ));
    }
    let stream = body.flag("stream")?;
    Ok(Request {
        provider: WE,
        path: String::new(),
        key: String::new(),
        model,
        system,
        turns,
        tools,
        choice,
        format,
        max_output: Some(max_output),
        stream,
        stream_usage: true,
        bytes: Bytes::new(),
        prefix,
    })
}

fn format(body: &Fields<'_>) -> Result<Option<(String, Value)>, Refused> {
    let Some(config) = body.get("output_config") else { return Ok(None) };
    let config = Fields::of(config, WE, "output_config", &["format", "effort"])?;
    let Some(format) = config.get("format") else { return Ok(None) };
    let format = Fields::of(format, WE, "output_config.format", &["type", "schema"])?;
    if format.text("type")? != "json_schema" {
        return Err(format.wrong("type", "'json_schema'"));
    }
    let schema = format.need("schema")?;
    match strict::fault(schema) {
        Some(fault) => Err(Refused::bad("", format!("output_config.format.schema: {fault}"))),
        None => Ok(Some((String::new(), schema.clone()))),
    }
}

fn tools(body: &Fields<'_>, prefix: &mut Prefix) -> Result<Vec<Tool>, Refused> {
    let known = ["type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"];
    let mut tools: Vec<Tool> = Vec::new();
    for (tool, n) in body.list_or_none("tools")?.iter().zip(0..) {
        let place = format!("tools.{n}");
        let fields = Fields::of(tool, WE, &place, &known)?;
        let name = fields.name("name", 128)?.to_owned();
        let schema = fields.need("input_schema")?.clone();
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(Refused::bad("", format!("{place}.input_schema.type: Input should be 'object'")));
        }
        let strict = fields.flag("strict")?;
        if let Some(fault) = strict.then(|| strict::fault(&schema)).flatten() {
            return Err(Refused::bad("", format!("{place}.input_schema: {fault}")));
        }
        if tools.iter().any(|tool| tool.name == name) {
            return Err(Refused::bad("", "tools: Tool names must be unique."));
        }
        prefix.add(&unmarked(tool), marked(&fields)?);
        tools.push(Tool { name, schema, strict });
    }
    Ok(tools)
}

fn choice(body: &Fields<'_>, tools: &[Tool]) -> Result<Choice, Refused> {
    let Some(choice) = body.get("tool_choice") else { return Ok(Choice::Auto) };
    let fields = Fields::of(choice, WE, "tool_choice", &["type", "name", "disable_parallel_tool_use"])?;
    if tools.is_empty() {
        return Err(Refused::bad("", "tool_choice: tool_choice may only be specified while providing tools"));
    }
    Ok(match fields.text("type")? {
        "auto" => Choice::Auto,
        "any" => Choice::Any,
        "none" => Choice::None,
        "tool" => {
            let name = fields.text("name")?;
            if !tools.iter().any(|tool| tool.name == name) {
                return Err(Refused::bad("", format!("tool_choice: Tool '{name}' not found in provided tools")));
            }
            Choice::Only(name.to_owned())
        }
        _ => return Err(fields.wrong("type", "'auto', 'any', 'tool' or 'none'")),
    })
}

fn system(body: &Fields<'_>, prefix: &mut Prefix) -> Result<String, Refused> {
    match body.get("system") {
        None => Ok(String::new()),
        Some(Value::String(text)) => {
            prefix.add(text, false);
            Ok(text.clone())
        }
        Some(_) => {
            let mut parts = Vec::new();
            for (block, n) in body.list("system")?.iter().zip(0..) {
                let fields = Fields::of(block, WE, &format!("system.{n}"), &["type", "text", "cache_control"])?;
                parts.push(text(&fields)?);
                prefix.add(&unmarked(block), marked(&fields)?);
            }
            Ok(parts.join("\n\n"))
        }
    }
}

fn turn(message: &Value, n: usize, turns: &mut Vec<Turn>, prefix: &mut Prefix) -> Result<(), Refused> {
    let place = format!("messages.{n}");
    let message = Fields::of(message, WE, &place, &["role", "content"])?;
    let role = message.text("role")?;
    if !matches!(role, "user" | "assistant") {
        return Err(message.wrong("role", "'user' or 'assistant'"));
    }
    let (mut parts, mut calls, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    if let Value::String(text) = message.need("content")? {
        prefix.add(&format!("{role} {text}"), false);
        parts.push(text.clone());
    } else {
        for (block, k) in message.list("content")?.iter().zip(0..) {
            let place = format!("{place}.content.{k}");
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            let known: &[&str] = match (role, kind) {
                (_, "text") => &["type", "text", "cache_control"],
                ("assistant", "tool_use") => &["type", "id", "name", "input", "cache_control"],
                ("assistant", "thinking") => &["type", "thinking", "signature"],
                ("user", "tool_result") => &["type", "tool_use_id", "content", "is_error", "cache_control"],
                _ => return Err(Refused::bad("", format!("{place}.type: '{kind}' is not expected for role {role}"))),
            };
            let fields = Fields::of(block, WE, &place, known)?;
            match kind {
                "text" => parts.push(text(&fields)?.to_owned()),
                "tool_use" => calls.push(call(&fields)?),
                "tool_result" if !parts.is_empty() => {
                    return Err(Refused::bad("", format!("{place}: tool_result blocks must come first")));
                }
                "tool_result" => answers.push(answer(&fields)?),
                _ => {}
            }
            prefix.add(&format!("{role} {}", unmarked(block)), marked(&fields)?);
        }
    }
    if parts.is_empty() && calls.is_empty() && answers.is_empty() {
        return Err(Refused::bad("", format!("{place}: all messages must have non-empty content")));
    }
    if role == "assistant" {
        turns.push(Turn::Assistant { text: parts.concat(), calls });
        return Ok(());
    }
    if !answers.is_empty() {
        turns.push(Turn::Results(answers));
    }
    if !parts.is_empty() {
        turns.push(Turn::User(parts));
    }
    Ok(())
}

fn text<'a>(fields: &Fields<'a>) -> Result<&'a str, Refused> {
    match fields.text("text")? {
        "" => Err(Refused::bad("", format!("{}: text content blocks must be non-empty", fields.place))),
        text => Ok(text),
    }
}

fn call(fields: &Fields<'_>) -> Result<Call, Refused> {
    let input = fields.need("input")?;
    if !input.is_object() {
        return Err(fields.wrong("input", "a valid dictionary"));
    }
    let id = fields.name("id", 256)?.to_owned();
    Ok(Call { id, name: fields.name("name", 200)?.to_owned(), arguments: input.to_string() })
}

fn answer(fields: &Fields<'_>) -> Result<Answer, Refused> {
    fields.flag("is_error")?;
    let id = fields.text("tool_use_id")?.to_owned();
    let text = match fields.get("content") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            let mut parts = Vec::new();
            for (block, n) in fields.list("content")?.iter().zip(0..) {
                let place = format!("{}.content.{n}", fields.place);
                parts.push(text_of(block, &place)?);
            }
            parts.concat()
        }
    };
    Ok(Answer { id, text })
}

fn text_of(block: &Value, place: &str) -> Result<String, Refused> {
    text(&Fields::of(block, WE, place, &["type", "text", "cache_control"])?).map(str::to_owned)
}

fn marked(fields: &Fields<'_>) -> Result<bool, Refused> {
    let Some(mark) = fields.get("cache_control") else { return Ok(false) };
    let mark = Fields::of(mark, WE, &fields.at("cache_control"), &["type", "ttl"])?;
    match (mark.text("type")?, mark.get("ttl").map(Value::as_str)) {
        ("ephemeral", None | Some(Some("5m" | "1h"))) => Ok(true),
        _ => Err(mark.wrong("type", "'ephemeral' with ttl '5m' or '1h'")),
    }
}

/// A block as the cache compares it: marks may move.
fn unmarked(block: &Value) -> String {
    match block {
        Value::Object(map) if map.contains_key("cache_control") => {
            let mut map = map.clone();
            map.remove("cache_control");
            Value::Object(map).to_string()
        }
        other => other.to_string(),
    }
}

/// Every call has its result in the very next message, and the reverse.
fn paired(turns: &[Turn]) -> Result<(), Refused> {
    let mut seen = BTreeSet::new();
    for (n, turn) in turns.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| turns.get(n));
        if let Turn::Results(answers) = turn {
            let calls: &[Call] = if let Some(Turn::Assistant { calls, .. }) = before { calls } else { &[] };
            if let Some(stray) = answers.iter().find(|answer| !calls.iter().any(|call| call.id == answer.id)) {
                return Err(Refused::bad(
                    "",
                    format!(
                        "messages.{n}.content: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
                        stray.id
                    ),
                ));
            }
        }
        let Turn::Assistant { calls, .. } = turn else { continue };
        let empty = Vec::new();
        let answers = if let Some(Turn::Results(answers)) = turns.get(n + 1) { answers } else { &empty };
        let open: Vec<&str> = calls
            .iter()
            .map(|call| call.id.as_str())
            .filter(|id| answers.iter().filter(|answer| answer.id == *id).count() != 1)
            .collect();
        if !open.is_empty() {
            return Err(Refused::bad(
                "",
                format!(
                    "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                    open.join(", ")
                ),
            ));
        }
        if !calls.iter().all(|call| seen.insert(call.id.clone())) {
            return Err(Refused::bad("", format!("messages.{n}: `tool_use` ids must be unique")));
        }
    }
    Ok(())
}

fn usage_of(usage: Usage, output: u64) -> Value {
    let plain = usage.prompt.input.saturating_sub(usage.prompt.read + usage.prompt.written);
    json!({"input_tokens": plain, "cache_creation_input_tokens": usage.prompt.written,
        "cache_read_input_tokens": usage.prompt.read, "output_tokens": output})
}

const fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Done if reply.calls.is_empty() => "end_turn",
        Stop::Done => "tool_use",
    }
}

fn head(request: &Request, content: &[Value], stop: Option<&str>, usage: &Value) -> Value {
    json!({"id": format!("msg_{:016x}", request.seed()), "type": "message", "role": "assistant",
        "model": request.model, "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage})
}

fn call_id(request: &Request, n: usize) -> String {
    format!("toolu_{:016x}{n:02}", request.seed())
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    let mut content = Vec::new();
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        // What is no JSON cannot stand here as an object: it comes as the text that the model wrote.
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        content.push(json!({"type": "tool_use", "id": call_id(request, n), "name": call.name, "input": input}));
    }
    head(request, &content, Some(stop_reason(reply)), &usage_of(usage, usage.output))
}

pub(super) fn events(request: &Request, reply: &Reply, usage: Usage) -> Vec<String> {
    let start = head(request, &[], None, &usage_of(usage, 1));
    let mut events = vec![event("message_start", &json!({"type": "message_start", "message": start}))];
    let mut blocks: Vec<(Value, Vec<Value>)> = Vec::new();
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text).into_iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
        blocks.push((json!({"type": "text", "text": ""}), deltas));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        let start = json!({"type": "tool_use", "id": call_id(request, n), "name": call.name, "input": {}});
        let delta = |p| json!({"type": "input_json_delta", "partial_json": p});
        blocks.push((start, pieces(&call.arguments).into_iter().map(delta).collect()));
    }
    for (n, (start, deltas)) in blocks.into_iter().enumerate() {
        let begin = json!({"type": "content_block_start", "index": n, "content_block": start});
        events.push(event("content_block_start", &begin));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": n, "delta": delta});
            events.push(event("content_block_delta", &delta));
        }
        events.push(event("content_block_stop", &json!({"type": "content_block_stop", "index": n})));
    }
    let stop = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let usage = json!({"output_tokens": usage.output});
    events.push(event("message_delta", &json!({"type": "message_delta", "delta": stop, "usage": usage})));
    events.push(event("message_stop", &json!({"type": "message_stop"})));
    events
}
