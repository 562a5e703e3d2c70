use serde_json::{Value, json};

use super::chat::{answered, asked, call_id, choice, declared};
use super::{CREATED, Usage, list, text, texts};
use crate::model::cache::Prefix;
use crate::model::play::{Reply, Stop};
use crate::model::request::{Answer, Call, Provider, Request, Turn};

pub(super) fn read(body: &Value) -> Request {
    let mut prefix = Prefix::new(false);
    let tools = list(body, "tools").iter().map(|tool| declared(tool, &mut prefix)).collect();
    let choice = choice(&body["tool_choice"], "/name");
    let format = body.pointer("/text/format").filter(|format| format["type"] == "json_schema");
    let format = format.map(|format| asked(format, &mut prefix));
    let mut system = texts(&body["instructions"]);
    let mut turns = Vec::new();
    prefix.add(&system.concat(), false);
    if let Value::String(text) = &body["input"] {
        prefix.add(text, false);
        turns.push(Turn::User(vec![text.clone()]));
    }
    for one in list(body, "input") {
        prefix.add(&one.to_string(), false);
        item(one, &mut system, &mut turns);
    }
    let (system, max_output) = (system.join("\n\n"), body["max_output_tokens"].as_u64());
    Request { system, turns, tools, choice, format, max_output, ..Request::of(Provider::Responses, body, prefix) }
}

fn item(item: &Value, system: &mut Vec<String>, turns: &mut Vec<Turn>) {
    match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => {
            let (id, name, arguments) = (text(item, "call_id"), text(item, "name"), text(item, "arguments"));
            let call = Call { id, name, arguments };
            match turns.last_mut() {
                Some(Turn::Assistant { calls, .. }) => calls.push(call),
                _ => turns.push(Turn::Assistant { text: String::new(), calls: vec![call] }),
            }
        }
        (Some("function_call_output"), _) => {
            answered(Answer { id: text(item, "call_id"), text: texts(&item["output"]).concat() }, turns);
        }
        (_, Some("user")) => turns.push(Turn::User(texts(&item["content"]))),
        (_, Some("assistant")) => {
            turns.push(Turn::Assistant { text: texts(&item["content"]).concat(), calls: Vec::new() });
        }
        (_, Some(_)) => system.extend(texts(&item["content"])),
        _ => {}
    }
}

pub(super) fn body(request: &Request, reply: &Reply, usage: Usage) -> Value {
    let cut = reply.stop == Stop::Length;
    let status = if cut { "incomplete" } else { "completed" };
    let mut output = Vec::new();
    if !reply.text.is_empty() {
        let part = match reply.stop {
            Stop::Refusal => json!({"type": "refusal", "refusal": reply.text}),
            _ => json!({"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}),
        };
        output.push(json!({"id": format!("msg_{:016x}", request.seed()), "type": "message", "status": status,
            "role": "assistant", "content": [part]}));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        output.push(json!({"id": format!("fc_{:016x}{n:02}", request.seed()), "type": "function_call",
            "status": status, "call_id": call_id(request, n), "name": call.name, "arguments": call.arguments}));
    }
    let usage = json!({"input_tokens": usage.prompt.input, "output_tokens": usage.output,
        "input_tokens_details": {"cached_tokens": usage.prompt.read}, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt.input + usage.output});
    json!({"id": format!("resp_{:016x}", request.seed()), "object": "response", "created_at": CREATED,
        "status": status, "background": false, "error": null,
        "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"})),
        "instructions": null, "max_output_tokens": request.max_output, "model": request.model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "store": false, "temperature": 1.0, "top_p": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "truncation": "disabled",
        "usage": usage, "user": null, "metadata": {}})
}
