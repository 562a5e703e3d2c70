//! OpenAI Responses. The provider stores nothing, so encrypted reasoning is sent back with the conversation.

use casebook_protocol::Tokens;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Function, body, cache_key, called, count, joined, keep, kept, list, max_output, object, reply_text, stop, text,
    with_failure,
};
use crate::model::config::{Effort, Parameters, Profile};
use crate::model::{Ask, Choice, Message, Reply, Stop};

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    function: Function<'a>,
}

pub(super) fn encode(profile: &Profile, ask: &Ask) -> Vec<u8> {
    let Parameters { temperature, top_p, effort, .. } = profile.parameters;
    let thinks = effort.is_some_and(|effort| effort != Effort::None);
    let format = ask.format.as_ref().map(|format| {
        json!({"format":
            {"type": "json_schema", "name": format.name, "strict": true, "schema": format.schema}})
    });
    let rest = json!({
        "model": profile.provider_model,
        "stream": false,
        "store": false,
        "reasoning": effort.map(|effort| json!({"effort": effort})),
        "include": thinks.then_some(["reasoning.encrypted_content"]),
        "tool_choice": match &ask.choice {
            Choice::Nothing if !ask.tools.is_empty() => json!("none"),
            Choice::Only(tool) => json!({"type": "function", "name": tool}),
            Choice::Free | Choice::Nothing => Value::Null,
        },
        "input": input(profile, ask),
        "text": format,
        "temperature": temperature,
        "top_p": top_p,
        "max_output_tokens": max_output(profile, ask),
        "prompt_cache_key": cache_key(ask),
    });
    body(&ask.tools, |offer| Tool { r#type: "function", function: offer.into() }, rest)
}

fn input(profile: &Profile, ask: &Ask) -> Vec<Value> {
    let mut all = Vec::new();
    if !ask.system.is_empty() {
        all.push(json!({"role": "system", "content": joined(&ask.system)}));
    }
    for message in &ask.messages {
        match message {
            Message::User(parts) => all.push(json!({"role": "user", "content": joined(parts)})),
            Message::Assistant(reply) => match kept(profile, reply) {
                Some(Value::Array(items)) => all.extend(items),
                _ => {
                    all.extend(reply_text(reply).map(message_item));
                    all.extend(reply.calls.iter().map(|call| call_item(&call.id, &call.tool, &call.arguments)));
                }
            },
            Message::Results(answers) => all.extend(answers.iter().map(
                |answer| json!({"type": "function_call_output", "call_id": answer.id, "output": with_failure(answer)}),
            )),
        }
    }
    all
}

fn message_item(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn call_item(id: &str, tool: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": tool, "arguments": object(arguments).to_string()})
}

pub(super) fn decode(profile: &Profile, json: &Value) -> Option<(Reply, Tokens)> {
    let mut reply = Reply { text: String::new(), calls: Vec::new(), stop: stop(text(json, "status")), kept: None };
    if json.pointer("/incomplete_details/reason").is_some_and(|reason| reason == "content_filter") {
        reply.stop = Stop::Refused;
    }
    // The items to send back, without ids, since the provider stores nothing.
    let (mut items, mut sealed) = (Vec::new(), false);
    for item in json.get("output")?.as_array()? {
        match text(item, "type") {
            Some("message") => {
                let mut text_of_parts = String::new();
                for part in list(item, "content") {
                    text_of_parts.extend(text(part, "text").or_else(|| text(part, "refusal")));
                    if text(part, "type") == Some("refusal") {
                        reply.stop = Stop::Refused;
                    }
                }
                items.push(message_item(&text_of_parts));
                reply.text.push_str(&text_of_parts);
            }
            Some("function_call") => {
                let call = called(text(item, "call_id")?, text(item, "name")?, item.get("arguments"));
                items.push(call_item(&call.id, &call.tool, &call.arguments));
                reply.calls.push(call);
            }
            Some("reasoning") => {
                if let Some(thoughts) = text(item, "encrypted_content").filter(|thoughts| !thoughts.is_empty()) {
                    items.push(json!({"type": "reasoning", "encrypted_content": thoughts, "summary": []}));
                    sealed = true;
                }
            }
            _ => {}
        }
    }
    if sealed {
        reply.kept = keep(profile, Value::Array(items));
    }
    let tokens = Tokens {
        input: count(json, "/usage/input_tokens"),
        cached: count(json, "/usage/input_tokens_details/cached_tokens"),
        cache_written: 0,
        output: count(json, "/usage/output_tokens"),
    };
    Some((reply, tokens))
}
