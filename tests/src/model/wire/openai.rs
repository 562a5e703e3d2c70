//! What Chat Completions and Responses have in common.

use serde_json::{Value, json};

use super::{Fields, Refused, strict};
use crate::model::Request;
use crate::model::cache::Prefix;
use crate::model::request::{Call, Choice, Provider, Tool, Turn};

/// When every reply was made: the same request gives the same bytes.
pub(super) const CREATED: u64 = 1_767_225_600;

/// A tool from the object that has its name, schema and strictness.
pub(super) fn tool(fields: &Fields<'_>, prefix: &mut Prefix) -> Result<Tool, Refused> {
    let name = fields.name("name", 64)?.to_owned();
    let schema = fields.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let strict = fields.flag("strict")?;
    let fault = if strict {
        strict::fault(&schema)
    } else if schema.get("type").and_then(Value::as_str) == Some("object") {
        None
    } else {
        Some("schema must be a JSON Schema of 'type: \"object\"'".to_owned())
    };
    if let Some(fault) = fault {
        let message = format!("Invalid schema for function '{name}': {fault}");
        return Err(Refused::bad(&fields.at("parameters"), message).code("invalid_function_parameters"));
    }
    prefix.add(&Value::Object(fields.map.clone()).to_string(), false);
    Ok(Tool { name, schema, strict })
}

/// A structured output from the object that has its name, schema and strictness.
pub(super) fn schema(fields: &Fields<'_>, prefix: &mut Prefix) -> Result<(String, Value), Refused> {
    let name = fields.name("name", 64)?.to_owned();
    let schema = fields.need("schema")?.clone();
    if let Some(fault) = fields.flag("strict")?.then(|| strict::fault(&schema)).flatten() {
        let message = format!("Invalid schema for response_format '{name}': {fault}");
        return Err(Refused::bad(&fields.place, message));
    }
    prefix.add(&schema.to_string(), false);
    Ok((name, schema))
}

/// The choice of tools; `named` gives the name from the object form.
pub(super) fn choice(
    body: &Fields<'_>,
    tools: &[Tool],
    named: impl Fn(&Value) -> Result<String, Refused>,
) -> Result<Choice, Refused> {
    let Some(choice) = body.get("tool_choice") else { return Ok(Choice::Auto) };
    if tools.is_empty() {
        let message = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
        return Err(Refused::bad("tool_choice", message));
    }
    match choice.as_str() {
        Some("auto") => Ok(Choice::Auto),
        Some("none") => Ok(Choice::None),
        Some("required") => Ok(Choice::Any),
        Some(_) => Err(body.wrong("tool_choice", "one of 'none', 'auto', 'required' or an object")),
        None => {
            let name = named(choice)?;
            if tools.iter().any(|tool| tool.name == name) {
                Ok(Choice::Only(name))
            } else {
                let message = format!("Tool choice 'function' '{name}' not found in 'tools' parameter.");
                Err(Refused::bad("tool_choice", message))
            }
        }
    }
}

/// The text of a content that is a string or a list of parts of the types `known`.
pub(super) fn content(fields: &Fields<'_>, key: &str, known: &[&str]) -> Result<Vec<String>, Refused> {
    if let Some(Value::String(text)) = fields.get(key) {
        return Ok(vec![text.clone()]);
    }
    let mut parts = Vec::new();
    for (part, n) in fields.list(key)?.iter().zip(0..) {
        let place = format!("{}[{n}]", fields.at(key));
        let allowed = ["type", "text", "refusal", "annotations", "logprobs", "prompt_cache_breakpoint"];
        let part = Fields::of(part, fields.provider, &place, &allowed)?;
        let kind = part.text("type")?;
        if !known.contains(&kind) {
            let message = format!("Invalid value: '{kind}'. Supported values are: '{}'.", known.join("', '"));
            return Err(Refused::bad(&part.at("type"), message).code("invalid_value"));
        }
        parts.push(part.text(if kind == "refusal" { "refusal" } else { "text" })?.to_owned());
    }
    Ok(parts)
}

/// A call without its result, or a result without its call, with the number of its turn.
pub(super) enum Unpaired<'a> {
    /// Calls without a result before the model spoke or was spoken to again.
    Calls(usize, Vec<&'a str>),
    /// A result of no call of the reply before.
    Answer(usize, &'a str),
}

/// Looks for calls without results and results without calls.
pub(super) fn unpaired(turns: &[Turn]) -> Option<Unpaired<'_>> {
    for (n, turn) in turns.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| turns.get(n));
        match turn {
            Turn::User(_) => {}
            Turn::Results(answers) => {
                let calls: &[Call] = if let Some(Turn::Assistant { calls, .. }) = before { calls } else { &[] };
                if let Some(stray) = answers.iter().find(|answer| !calls.iter().any(|call| call.id == answer.id)) {
                    return Some(Unpaired::Answer(n, &stray.id));
                }
            }
            Turn::Assistant { calls, .. } => {
                let answered = |id: &str| match turns.get(n + 1) {
                    Some(Turn::Results(answers)) => answers.iter().any(|answer| answer.id == id),
                    _ => false,
                };
                let open: Vec<&str> = calls.iter().map(|call| call.id.as_str()).filter(|id| !answered(id)).collect();
                if !open.is_empty() {
                    return Some(Unpaired::Calls(n, open));
                }
            }
        }
    }
    None
}

/// The id of the `n`th call of the reply to `request`.
pub(super) fn call_id(request: &Request, n: usize) -> String {
    format!("call_{:016x}{n:02}", request.seed())
}

/// A refusal because the provider does not know the value of a parameter.
pub(super) fn unknown_value(fields: &Fields<'_>, key: &str) -> Refused {
    let at = fields.at(key);
    debug_assert!(fields.provider != Provider::Anthropic, "an error in OpenAI's form");
    Refused::bad(&at, format!("Invalid value for '{at}'.")).code("invalid_value")
}
