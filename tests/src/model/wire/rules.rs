//! Checks what a JSON Schema cannot express. If the providers differ, the strictest rule applies, so a request
//! that passes is valid for all.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{STRICT, plain};
use crate::model::request::{Choice, Provider, Request, Turn};

/// Maximum number of cache marks that Anthropic accepts.
const MARKS: usize = 4;
/// Deepest nesting of an enforced schema.
const DEEPEST: usize = 10;

pub(super) fn check(request: &Request) -> Result<(), String> {
    tools(request)?;
    turns(&request.turns)?;
    match request.prefix.marks() {
        found if found > MARKS => Err(format!("at most {MARKS} blocks may have cache_control, found {found}")),
        _ => Ok(()),
    }
}

fn tools(request: &Request) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for tool in &request.tools {
        if !names.insert(tool.name.as_str()) {
            return Err(format!("tool {} is declared twice", tool.name));
        }
        if tool.strict {
            strict(&tool.schema)
                .map_err(|fault| format!("the schema of tool {} cannot be strict: {fault}", tool.name))?;
        }
    }
    if let Some((_, schema)) = &request.format {
        strict(schema).map_err(|fault| format!("the schema of the answer cannot be enforced: {fault}"))?;
    }
    match &request.choice {
        Choice::Only(name) if !names.contains(name.as_str()) => Err(format!("tool_choice names {name}, no such tool")),
        Choice::None | Choice::Any if names.is_empty() => Err("tool_choice is only allowed with tools".to_owned()),
        _ => Ok(()),
    }?;
    let called = request.turns.iter().any(|turn| matches!(turn, Turn::Assistant { calls, .. } if !calls.is_empty()));
    if called && names.is_empty() && request.provider == Provider::Anthropic {
        return Err("a conversation with tool_use blocks must define tools".to_owned());
    }
    Ok(())
}

/// The client speaks first and last, the sides take turns, and each call has one result in the next turn.
fn turns(turns: &[Turn]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (n, turn) in turns.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| turns.get(n));
        match (before, turn) {
            (None, Turn::User(_)) | (Some(Turn::Assistant { .. }), _) | (Some(Turn::Results(_)), Turn::User(_)) => {}
            (Some(Turn::User(_) | Turn::Results(_)), Turn::Assistant { .. }) => {}
            _ => return Err(format!("turn {n} cannot come here: the sides take turns, and the client begins")),
        }
        let mut answers = Vec::new();
        if let Turn::Results(results) = turn {
            answers.extend(results.iter().map(|result| result.id.as_str()));
        }
        if let Some(call) = open.iter().find(|call| answers.iter().filter(|id| id == call).count() != 1) {
            return Err(format!("call {call} does not have one result in turn {n}"));
        }
        if let Some(stray) = answers.iter().find(|id| !open.contains(id)) {
            return Err(format!("the result of {stray} in turn {n} has no call before it"));
        }
        open.clear();
        if let Turn::Assistant { calls, .. } = turn {
            open.extend(calls.iter().map(|call| call.id.as_str()));
            if let Some(twice) = open.iter().find(|id| !seen.insert(**id)) {
                return Err(format!("two calls have the id {twice}"));
            }
        }
    }
    match turns.last() {
        Some(Turn::Assistant { .. }) | None => Err("the last turn must be the client's".to_owned()),
        _ => Ok(()),
    }
}

/// An enforced schema must be in the subset that all providers accept. Anthropic also accepts optional fields,
/// and OpenAI's newest models some limits.
fn strict(schema: &Value) -> Result<(), String> {
    STRICT.validate(schema).map_err(|error| plain(&error))?;
    within(schema, 0)
}

fn within(schema: &Value, depth: usize) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("it is nested deeper than {DEEPEST} levels"));
    }
    let fields = |key: &str| schema.get(key).and_then(Value::as_object).into_iter().flatten();
    let listed = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    if let Some((name, _)) = fields("properties").find(|(name, _)| !listed("required").any(|one| one == *name)) {
        return Err(format!("field {name} is not required"));
    }
    let inner = fields("properties").chain(fields("$defs")).chain(fields("definitions")).map(|(_, inner)| inner);
    inner.chain(schema.get("items")).try_for_each(|inner| within(inner, depth + 1))?;
    listed("anyOf").try_for_each(|inner| within(inner, depth))
}
