//! Checks rules for every request to a model, above all which role may see what. The server itself checks the
//! order of turns and the results of calls (`wire::rules`).

mod view;
pub use view::SUBMIT;

use std::collections::HashMap;

use casebook_protocol::TaskKind;

use crate::model::capture::Captured;
use crate::model::prompt;
use crate::model::request::{Provider, Request, Turn};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub number: u64,
    pub rule: &'static str,
    /// The place in the request, and what was found.
    pub detail: String,
}

/// Checks all requests of a run. No request may contain one of the `secrets`, such as planted keys or names of
/// other investigations.
pub fn check(captured: &[Captured], secrets: &[String]) -> Vec<Violation> {
    let mut found = Vec::new();
    for one in captured {
        let request = &one.request;
        let mut add = |rule: &'static str, detail: String| found.push(Violation { number: one.number, rule, detail });
        hold_no_secret(request, secrets, &mut add);
        match prompt::kind(&request.system) {
            None => add("kind", "the system prompt does not begin with the kind of task".to_owned()),
            Some(kind) => {
                view::check(request, kind, &mut add);
                conversation(request, kind, &mut add);
            }
        }
    }
    foreign_calls(captured, &mut found);
    one_system(captured, &mut found);
    found.sort();
    found
}

type Add<'a> = dyn FnMut(&'static str, String) + 'a;

fn hold_no_secret(request: &Request, secrets: &[String], add: &mut Add<'_>) {
    let raw = String::from_utf8_lossy(&request.bytes);
    for (n, secret) in secrets.iter().enumerate() {
        let escaped = serde_json::Value::String(secret.clone()).to_string();
        if raw.contains(secret) || raw.contains(escaped.trim_matches('"')) {
            add("secret", format!("planted secret {n} is in the body"));
        }
    }
}

/// The conversation must belong to one task, without content of other invocations.
fn conversation(request: &Request, kind: TaskKind, add: &mut Add<'_>) {
    for (n, part) in request.task_parts().iter().enumerate() {
        let line = part.lines().find(|line| line.starts_with("result of call ") || line.starts_with("<data-"));
        if let Some(line) = line {
            add("history", format!("part {n} of the prompt holds a tool result: {line}"));
        }
    }
    let shown = prompt::all_shown(request);
    let first = shown.first().map(prompt::Shown::task);
    for result in &shown {
        if Some(result.task()) != first {
            add("history", format!("results of {} and of {} in one task", first.unwrap_or_default(), result.task()));
        }
    }
    if let Some(task) = first
        && task.split('.').nth(1) != Some(kind.name())
    {
        add("history", format!("results of task {task} in a task of kind {}", kind.name()));
    }
    for (n, turn) in request.turns.iter().enumerate().skip(1) {
        if let Turn::User(parts) = turn
            && parts.iter().any(|part| !prompt::sections(part).is_empty())
        {
            add("history", format!("turn {n} holds another prompt"));
        }
    }
}

/// The id of a call must not occur in two conversations.
fn foreign_calls(captured: &[Captured], found: &mut Vec<Violation>) {
    let mut owner: HashMap<&str, (u64, u64)> = HashMap::new();
    for one in captured {
        for turn in &one.request.turns {
            let Turn::Assistant { calls, .. } = turn else { continue };
            for call in calls {
                let (first, number) = *owner.entry(call.id.as_str()).or_insert((one.place.0, one.number));
                if first != one.place.0 {
                    let detail = format!("call {} belongs to the conversation of request {number}", call.id);
                    found.push(Violation { number: one.number, rule: "history", detail });
                }
            }
        }
    }
}

/// The system prompt must be identical in all requests of one kind to one model.
fn one_system(captured: &[Captured], found: &mut Vec<Violation>) {
    // An Expert's system prompt ends with instructions for its domain.
    let mut first: HashMap<(Provider, &str, TaskKind, String), (&str, u64)> = HashMap::new();
    for one in captured {
        let Some(kind) = one.kind else { continue };
        let question = prompt::json_section(&one.request, "question").unwrap_or_default();
        let domain = question.get("domain").map(ToString::to_string).unwrap_or_default();
        let key = (one.request.provider, one.request.model.as_str(), kind, domain);
        let (system, number) = *first.entry(key).or_insert((&one.request.system, one.number));
        if system != one.request.system {
            let detail = format!("the system prompt is not that of request {number}, of the same kind and model");
            found.push(Violation { number: one.number, rule: "system", detail });
        }
    }
}

#[cfg(test)]
mod tests;
