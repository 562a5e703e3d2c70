//! Anthropic Messages.

use casebook_protocol::{Purpose, Tokens};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{body, called, count, keep, kept, max_output, object, reply_text, set, stop, text};
use crate::model::config::{Effort, Parameters, Profile};
use crate::model::{Ask, Choice, Message, Offer, Part, Reply, ToolAnswer};

const MAX_MARKS: usize = 4;

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

pub(super) fn encode(profile: &Profile, ask: &Ask) -> Vec<u8> {
    let Parameters { temperature, top_p, .. } = profile.parameters;
    let (thinking, effort) = thinking(profile, ask);
    // The next turn starts with this whole conversation, so its end gets a mark.
    let goes_on = ask.purpose == Purpose::Turn && ask.choice == Choice::Free && !ask.tools.is_empty();
    let mut marks = marks(ask, MAX_MARKS - usize::from(goes_on));
    let system = blocks(&ask.system, &mut marks);
    let mut messages: Vec<Value> = ask
        .messages
        .iter()
        .map(|message| match message {
            Message::User(parts) => json!({"role": "user", "content": blocks(parts, &mut marks)}),
            Message::Assistant(reply) => json!({"role": "assistant",
                "content": kept(profile, reply).unwrap_or_else(|| assistant(reply))}),
            Message::Results(answers) => {
                json!({"role": "user", "content": answers.iter().map(result).collect::<Value>()})
            }
        })
        .collect();
    let last = messages.last_mut().and_then(|message| message.get_mut("content")?.as_array_mut()?.last_mut());
    if let Some(block) = last.filter(|_| goes_on) {
        mark(block);
    }
    let format = ask.format.as_ref().map(|format| json!({"type": "json_schema", "schema": format.schema}));
    let config = [("effort", effort.map(Value::from)), ("format", format)];
    let config: serde_json::Map<_, _> = config.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v?))).collect();
    let rest = json!({
        "model": profile.provider_model,
        "stream": false,
        "system": (!system.is_empty()).then_some(system),
        "tool_choice": match &ask.choice {
            Choice::Nothing if !ask.tools.is_empty() => json!({"type": "none"}),
            Choice::Only(tool) => json!({"type": "tool", "name": tool}),
            Choice::Free | Choice::Nothing => Value::Null,
        },
        "messages": messages,
        "thinking": thinking,
        "output_config": (!config.is_empty()).then_some(config),
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_output(profile, ask),
    });
    body(
        &ask.tools,
        |Offer { name, description, schema, strict }| Tool {
            name,
            description,
            input_schema: schema.raw(),
            strict: *strict,
        },
        rest,
    )
}

/// Whether each part with a text gets a mark. The first wanted mark covers tools and system, and the last ones cover
/// the longest prefixes.
fn marks(ask: &Ask, most: usize) -> impl Iterator<Item = bool> {
    let user = ask.messages.iter().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        Message::Assistant(_) | Message::Results(_) => None,
    });
    let parts = ask.system.iter().chain(user.flatten()).filter(|part| !part.text.is_empty());
    let wanted: Vec<bool> = parts.map(|part| part.cache).collect();
    let all = wanted.iter().filter(|wanted| **wanted).count();
    let mut seen = 0;
    wanted.into_iter().map(move |wanted| {
        seen += usize::from(wanted);
        wanted && (seen == 1 || seen + most > all + 1)
    })
}

fn mark(block: &mut Value) {
    set(block, "cache_control", json!({"type": "ephemeral"}));
}

fn blocks(parts: &[Part], marks: &mut impl Iterator<Item = bool>) -> Vec<Value> {
    let parts = parts.iter().filter(|part| !part.text.is_empty());
    let block = |part: &Part| {
        let mut block = json!({"type": "text", "text": part.text});
        if marks.next() == Some(true) {
            mark(&mut block);
        }
        block
    };
    parts.map(block).collect()
}

fn assistant(reply: &Reply) -> Value {
    let text = reply_text(reply).map(|text| json!({"type": "text", "text": text}));
    let calls = reply
        .calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": object(&call.arguments)}));
    text.into_iter().chain(calls).collect()
}

fn result(answer: &ToolAnswer) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": answer.id, "content": answer.text});
    if answer.failed {
        set(&mut block, "is_error", true);
    }
    block
}

/// `thinking`, and `effort` of `output_config`. Models up to 4.5 take a budget of tokens, newer ones an effort, and
/// Opus 4.5 takes an effort alone. Models from version 5 on think unless it is disabled, which a forced tool call
/// requires. Fable and Mythos cannot disable it.
fn thinking(profile: &Profile, ask: &Ask) -> (Option<Value>, Option<&'static str>) {
    let forced = matches!(ask.choice, Choice::Only(_)).then_some(Effort::None);
    let Some(effort) = forced.or(profile.parameters.effort) else { return (None, None) };
    let name = profile.provider_model.as_str();
    let always = name.contains("fable") || name.contains("mythos");
    let version = if always { (5, 0) } else { version(name) };
    let (budget, level) = match effort {
        Effort::None => return ((version >= (5, 0) && !always).then(|| json!({"type": "disabled"})), None),
        Effort::Minimal | Effort::Low => (1024, "low"),
        Effort::Medium => (8000, "medium"),
        Effort::Xhigh if version >= (4, 7) => (24_000, "xhigh"),
        Effort::Max if version >= (4, 6) => (24_000, "max"),
        Effort::High | Effort::Xhigh | Effort::Max => (24_000, "high"),
    };
    if version >= (4, 6) {
        (Some(json!({"type": "adaptive"})), Some(level))
    } else if version == (4, 5) && name.contains("opus") {
        (None, Some(level))
    } else {
        // Thinking counts as output, so half of the limit is left for the answer.
        let budget = max_output(profile, ask).div_ceil(2).min(budget);
        (Some(json!({"type": "enabled", "budget_tokens": budget})), None)
    }
}

/// The version in a name such as `claude-opus-4-6`; (0, 0) if there is none, as in `claude-3-7-sonnet`. A number of
/// more than two digits is a date.
fn version(name: &str) -> (u32, u32) {
    let mut parts = name.split_once("claude-").map_or("", |(_, rest)| rest).split(['-', '.']);
    let mut number = || parts.next().filter(|part| part.len() <= 2).and_then(|part| part.parse().ok());
    match (number(), number(), number()) {
        (None, Some(major), minor) => (major, minor.unwrap_or(0)),
        _ => (0, 0),
    }
}

pub(super) fn decode(profile: &Profile, json: &Value) -> Option<(Reply, Tokens)> {
    let stop = stop(text(json, "stop_reason"));
    let mut reply = Reply { text: String::new(), calls: Vec::new(), stop, kept: None };
    // The blocks to send back. Thinking is signed, so it must stay unchanged.
    let (mut back, mut thoughts) = (Vec::new(), false);
    for block in json.get("content")?.as_array()? {
        let mut block = block.clone();
        match text(&block, "type")? {
            "text" => reply.text.push_str(text(&block, "text")?),
            "tool_use" => {
                let call = called(text(&block, "id")?, text(&block, "name")?, block.get("input"));
                if !block.get("input").is_some_and(Value::is_object) {
                    set(&mut block, "input", object(&call.arguments));
                }
                reply.calls.push(call);
            }
            _ => thoughts = true,
        }
        back.push(block);
    }
    if thoughts {
        reply.kept = keep(profile, Value::Array(back));
    }
    let cached = count(json, "/usage/cache_read_input_tokens");
    let cache_written = count(json, "/usage/cache_creation_input_tokens");
    let input = count(json, "/usage/input_tokens") + cached + cache_written;
    Some((reply, Tokens { input, cached, cache_written, output: count(json, "/usage/output_tokens") }))
}
