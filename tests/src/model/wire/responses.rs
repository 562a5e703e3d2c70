//! OpenAI Responses.

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::openai::{CREATED, Unpaired, call_id, choice, content, schema, tool, unknown_value, unpaired};
use super::{Fields, Refused, Usage, event, pieces};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Provider, Request, Turn};

const WE: Provider = Provider::Responses;
const KNOWN: [&str; 23] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "max_output_tokens",
    "max_tool_calls",
    "temperature",
    "top_p",
    "stream",
    "store",
    "metadata",
    "reasoning",
    "include",
    "truncation",
    "user",
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
    for (one, n) in body.list_or_none("tools")?.iter().zip(0..) {
        let known = ["type", "name", "description", "parameters", "strict"];
        let fields = Fields::of(one, WE, &format!("tools[{n}]"), &known)?;
        if fields.text("type")? != "function" {
            return Err(unknown_value(&fields, "type"));
        }
        tools.push(tool(&fields, &mut prefix)?);
    }
    let choice = choice(&body, &tools, |value| {
        Fields::of(value, WE, "tool_choice", &["type", "name"])?.text("name").map(str::to_owned)
    })?;
    let format = format(&body, &mut prefix)?;
    let mut system = Vec::new();
    if body.get("instructions").is_some() {
        system.push(body.text("instructions")?.to_owned());
        prefix.add(body.text("instructions")?, false);
    }
    let turns = input(&body, &mut system, &mut prefix)?;
    match unpaired(&turns) {
        None => {}
        Some(Unpaired::Calls(_, open)) => {
            let call = open.first().copied().unwrap_or_default();
            return Err(Refused::bad("input", format!("No tool output found for function call {call}.")));
        }
        Some(Unpaired::Answer(_, id)) => {
            let message = format!("No tool call found for function call output with call_id {id}.");
            return Err(Refused::bad("input", message));
        }
    }
    let (max_output, stream) = (body.number("max_output_tokens")?, body.flag("stream")?);
    if max_output.is_some_and(|n| n < 16) {
        let message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.";
        return Err(Refused::bad("max_output_tokens", message).code("integer_below_min_value"));
    }
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
        stream_usage: true,
        bytes: Bytes::new(),
        prefix,
    })
}

fn format(body: &Fields<'_>, prefix: &mut Prefix) -> Result<Option<(String, Value)>, Refused> {
    let Some(text) = body.get("text") else { return Ok(None) };
    let text = Fields::of(text, WE, "text", &["format", "verbosity"])?;
    let Some(format) = text.get("format") else { return Ok(None) };
    let format = Fields::of(format, WE, "text.format", &["type", "name", "description", "schema", "strict"])?;
    match format.text("type")? {
        "text" | "json_object" => Ok(None),
        "json_schema" => schema(&format, prefix).map(Some),
        _ => Err(unknown_value(&format, "type")),
    }
}

fn input(body: &Fields<'_>, system: &mut Vec<String>, prefix: &mut Prefix) -> Result<Vec<Turn>, Refused> {
    if let Value::String(text) = body.need("input")? {
        prefix.add(text, false);
        return Ok(vec![Turn::User(vec![text.clone()])]);
    }
    let mut turns = Vec::new();
    for (one, n) in body.list("input")?.iter().zip(0..) {
        item(one, &format!("input[{n}]"), system, &mut turns)?;
        prefix.add(&one.to_string(), false);
    }
    Ok(turns)
}

fn item(item: &Value, place: &str, system: &mut Vec<String>, turns: &mut Vec<Turn>) -> Result<(), Refused> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    let known: &[&str] = match kind {
        "function_call" => &["type", "id", "call_id", "name", "arguments", "status"],
        "function_call_output" => &["type", "id", "call_id", "output", "status"],
        "reasoning" => &["type", "id", "encrypted_content", "summary", "content", "status"],
        _ => &["type", "id", "role", "content", "status"],
    };
    let fields = Fields::of(item, WE, place, known)?;
    match kind {
        "function_call" => {
            let call = Call {
                id: fields.text("call_id")?.to_owned(),
                name: fields.text("name")?.to_owned(),
                arguments: fields.text("arguments")?.to_owned(),
            };
            match turns.last_mut() {
                Some(Turn::Assistant { calls, .. }) => calls.push(call),
                _ => turns.push(Turn::Assistant { text: String::new(), calls: vec![call] }),
            }
        }
        "function_call_output" => {
            let text = content(&fields, "output", &["input_text"])?.concat();
            let answer = Answer { id: fields.text("call_id")?.to_owned(), text };
            match turns.last_mut() {
                Some(Turn::Results(answers)) => answers.push(answer),
                _ => turns.push(Turn::Results(vec![answer])),
            }
        }
        "reasoning" => {}
        "message" => match fields.text("role")? {
            "system" | "developer" => system.push(content(&fields, "content", &["input_text"])?.join("\n\n")),
            "user" => turns.push(Turn::User(content(&fields, "content", &["input_text"])?)),
            "assistant" => {
                let text = content(&fields, "content", &["output_text", "refusal"])?.concat();
                turns.push(Turn::Assistant { text, calls: Vec::new() });
            }
            _ => return Err(unknown_value(&fields, "role")),
        },
        _ => return Err(unknown_value(&fields, "type")),
    }
    Ok(())
}

/// The items of the reply, each with its finished content.
fn items(request: &Request, reply: &Reply) -> Vec<Value> {
    let status = if reply.stop == Stop::Length { "incomplete" } else { "completed" };
    let mut items = Vec::new();
    if !reply.text.is_empty() {
        let part = match reply.stop {
            Stop::Refusal => json!({"type": "refusal", "refusal": reply.text}),
            _ => json!({"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}),
        };
        items.push(json!({"id": format!("msg_{:016x}", request.seed()), "type": "message", "status": status,
            "role": "assistant", "content": [part]}));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        items.push(json!({"id": format!("fc_{:016x}{n:02}", request.seed()), "type": "function_call",
            "status": status, "call_id": call_id(request, n), "name": call.name, "arguments": call.arguments}));
    }
    items
}

fn whole(request: &Request, status: &str, output: &[Value], usage: Option<Usage>) -> Value {
    let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
    let usage = usage.map(|usage| {
        json!({"input_tokens": usage.prompt.input, "input_tokens_details": {"cached_tokens": usage.prompt.read},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.prompt.input + usage.output})
    });
    json!({"id": format!("resp_{:016x}", request.seed()), "object": "response", "created_at": CREATED,
        "status": status, "background": false, "error": null, "incomplete_details": incomplete,
        "instructions": null, "max_output_tokens": request.max_output, "model": request.model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "store": false, "temperature": 1.0, "top_p": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "truncation": "disabled",
        "usage": usage, "user": null, "metadata": {}})
}

const fn status(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Length => "incomplete",
        Stop::Done | Stop::Refusal => "completed",
    }
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    whole(request, status(reply), &items(request, reply), Some(usage))
}

pub(super) fn events(request: &Request, reply: &Reply, usage: Usage) -> Vec<String> {
    let mut events: Vec<(&str, Value)> = Vec::new();
    let begun = json!({"response": whole(request, "in_progress", &[], None)});
    events.push(("response.created", begun.clone()));
    events.push(("response.in_progress", begun));
    let items = items(request, reply);
    for (n, item) in items.iter().enumerate() {
        if item.get("type").and_then(Value::as_str) == Some("message") {
            message(n, item, reply, &mut events);
        } else {
            function(n, item, &mut events);
        }
    }
    let last = if reply.stop == Stop::Length { "response.incomplete" } else { "response.completed" };
    events.push((last, json!({"response": whole(request, status(reply), &items, Some(usage))})));
    let numbered = events.into_iter().enumerate().map(|(n, (name, mut data))| {
        if let Some(map) = data.as_object_mut() {
            map.insert("type".into(), json!(name));
            map.insert("sequence_number".into(), json!(n));
        }
        event(name, &data)
    });
    numbered.collect()
}

/// The item as it is when it begins: without content.
fn begun(item: &Value, empty: &str, value: Value) -> Value {
    let mut item = item.clone();
    if let Some(map) = item.as_object_mut() {
        map.insert("status".into(), json!("in_progress"));
        map.insert(empty.into(), value);
    }
    item
}

fn message(n: usize, item: &Value, reply: &Reply, events: &mut Vec<(&'static str, Value)>) {
    let id = item.get("id");
    let part = item.pointer("/content/0");
    let refused = reply.stop == Stop::Refusal;
    let empty = if refused {
        json!({"type": "refusal", "refusal": ""})
    } else {
        json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []})
    };
    let at = |more: Value| {
        let mut at = json!({"item_id": id, "output_index": n, "content_index": 0});
        if let (Some(map), Value::Object(more)) = (at.as_object_mut(), more) {
            map.extend(more);
        }
        at
    };
    events.push(("response.output_item.added", json!({"output_index": n, "item": begun(item, "content", json!([]))})));
    events.push(("response.content_part.added", at(json!({"part": empty}))));
    let (delta, done, key) = if refused {
        ("response.refusal.delta", "response.refusal.done", "refusal")
    } else {
        ("response.output_text.delta", "response.output_text.done", "text")
    };
    events.extend(pieces(&reply.text).into_iter().map(|piece| (delta, at(json!({"delta": piece})))));
    events.push((done, at(json!({key: reply.text}))));
    events.push(("response.content_part.done", at(json!({"part": part}))));
    events.push(("response.output_item.done", json!({"output_index": n, "item": item})));
}

fn function(n: usize, item: &Value, events: &mut Vec<(&'static str, Value)>) {
    let id = item.get("id");
    let arguments = item.get("arguments").and_then(Value::as_str).unwrap_or_default();
    events
        .push(("response.output_item.added", json!({"output_index": n, "item": begun(item, "arguments", json!(""))})));
    for piece in pieces(arguments) {
        let delta = json!({"item_id": id, "output_index": n, "delta": piece});
        events.push(("response.function_call_arguments.delta", delta));
    }
    let done = json!({"item_id": id, "output_index": n, "arguments": arguments});
    events.push(("response.function_call_arguments.done", done));
    events.push(("response.output_item.done", json!({"output_index": n, "item": item})));
}
