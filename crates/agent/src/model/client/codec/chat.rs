//! OpenAI Chat Completions: OpenAI, compatible servers, Gemini and Bedrock.

use casebook_protocol::Tokens;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Function, body, cache_key, called, count, joined, keep, kept, list, max_output, object, reply_text, set, stop,
    text, with_failure,
};
use crate::model::config::{Effort, Parameters, Profile, Provider};
use crate::model::{Ask, Choice, Message, Reply, Stop, ToolAnswer};

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

pub(super) fn encode(profile: &Profile, ask: &Ask) -> Vec<u8> {
    let Parameters { temperature, top_p, effort, seed } = profile.parameters;
    let limit = max_output(profile, ask);
    // Newer models of OpenAI refuse the old name of the limit. Other servers may know only that one.
    let newer = matches!(profile.provider, Provider::Openai | Provider::Bedrock);
    let format = ask.format.as_ref().map(|format| {
        json!({"type": "json_schema",
            "json_schema": {"name": format.name, "strict": true, "schema": format.schema}})
    });
    let rest = json!({
        "model": profile.provider_model,
        "stream": false,
        "reasoning_effort": match effort {
            Some(Effort::Xhigh | Effort::Max) if profile.provider == Provider::Gemini => Some(Effort::High),
            effort => effort,
        },
        "tool_choice": match &ask.choice {
            Choice::Nothing if !ask.tools.is_empty() => json!("none"),
            Choice::Only(tool) => json!({"type": "function", "function": {"name": tool}}),
            Choice::Free | Choice::Nothing => Value::Null,
        },
        "messages": messages(profile, ask),
        "response_format": format,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "max_completion_tokens": newer.then_some(limit),
        "max_tokens": (!newer).then_some(limit),
        "prompt_cache_key": (profile.provider == Provider::Openai).then(|| cache_key(ask)),
    });
    body(&ask.tools, |offer| Tool { r#type: "function", function: offer.into() }, rest)
}

fn messages(profile: &Profile, ask: &Ask) -> Vec<Value> {
    let mut all = Vec::with_capacity(ask.messages.len() + 1);
    if !ask.system.is_empty() {
        all.push(json!({"role": "system", "content": joined(&ask.system)}));
    }
    for message in &ask.messages {
        match message {
            Message::User(parts) => all.push(json!({"role": "user", "content": joined(parts)})),
            Message::Assistant(reply) => all.push(kept(profile, reply).unwrap_or_else(|| assistant(reply))),
            Message::Results(answers) => all.extend(answers.iter().map(|answer| result(profile, answer))),
        }
    }
    all
}

fn assistant(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply_text(reply).unwrap_or_default()});
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().map(|call| {
            let arguments = object(&call.arguments).to_string();
            json!({"type": "function", "id": call.id, "function": {"name": call.tool, "arguments": arguments}})
        });
        set(&mut message, "tool_calls", calls.collect::<Value>());
    }
    message
}

fn result(profile: &Profile, answer: &ToolAnswer) -> Value {
    let mut message = json!({"role": "tool", "tool_call_id": answer.id, "content": with_failure(answer)});
    // Gemini refuses a result without the tool's name, and OpenAI one with it.
    if profile.provider == Provider::Gemini {
        set(&mut message, "name", answer.tool.as_str());
    }
    message
}

pub(super) fn decode(profile: &Profile, json: &Value) -> Option<(Reply, Tokens)> {
    let choice = json.pointer("/choices/0")?;
    let mut stop = stop(text(choice, "finish_reason"));
    let message = match choice.get("message") {
        Some(message) if message.is_object() => message,
        // Gemini omits the message of a blocked reply.
        None if stop == Stop::Refused => &Value::Null,
        _ => return None,
    };
    let refusal = text(message, "refusal").filter(|refusal| !refusal.is_empty());
    if refusal.is_some() {
        stop = Stop::Refused;
    }
    let mut calls = Vec::new();
    for (n, call) in list(message, "tool_calls").iter().enumerate() {
        let id = text(call, "id").filter(|id| !id.is_empty()).map_or_else(|| format!("call_{n}"), str::to_owned);
        let function = call.get("function")?;
        calls.push(called(&id, text(function, "name")?, function.get("arguments")));
    }
    let text = refusal.map_or_else(|| content(message), str::to_owned);
    let mut reply = Reply { text, calls, stop, kept: None };
    reply.kept = with_thoughts(profile, message, &reply).and_then(|message| keep(profile, message));
    let (input, all) = (count(json, "/usage/prompt_tokens"), count(json, "/usage/total_tokens"));
    let tokens = Tokens {
        input,
        cached: count(json, "/usage/prompt_tokens_details/cached_tokens"),
        cache_written: count(json, "/usage/prompt_tokens_details/cache_creation_tokens"),
        // Gemini counts reasoning only in the total.
        output: count(json, "/usage/completion_tokens").max(all.saturating_sub(input)),
    };
    Some((reply, tokens))
}

fn content(message: &Value) -> String {
    let parts = list(message, "content").iter().filter_map(|part| text(part, "text"));
    text(message, "content").into_iter().chain(parts).collect()
}

/// The reply as a message with its reasoning, if it has calls and the server wants it back. Gemini refuses calls
/// without the signatures in `extra_content`. Other models answer better with their reasoning.
fn with_thoughts(profile: &Profile, message: &Value, reply: &Reply) -> Option<Value> {
    const FIELDS: [&str; 4] = ["extra_content", "reasoning", "reasoning_content", "reasoning_details"];
    if reply.calls.is_empty() || !matches!(profile.provider, Provider::OpenaiCompatible | Provider::Gemini) {
        return None;
    }
    let plain = assistant(reply);
    let mut back = plain.clone();
    copy(message, &mut back, &FIELDS);
    let calls = back.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
    for (from, to) in list(message, "tool_calls").iter().zip(calls) {
        copy(from, to, &FIELDS);
    }
    (back != plain).then_some(back)
}

fn copy(from: &Value, to: &mut Value, fields: &[&str]) {
    for field in fields {
        if let Some(value) = from.get(field).filter(|value| !value.is_null() && *value != "") {
            set(to, field, value.clone());
        }
    }
}
