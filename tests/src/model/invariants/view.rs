//! Checks what each kind of task may see and use.

use casebook_protocol::TaskKind;
use serde_json::Value;

use super::Add;
use crate::model::prompt;
use crate::model::request::Request;

/// The tool whose arguments are the answer.
pub const SUBMIT: &str = "submit";
const JOURNAL: &str = "journal";
/// Describes what did not fit the prompt.
const LEFT_OUT: &str = "left_out";
const RECORD: [&str; 5] = ["get_tool_call", "get_tool_result", "get_toolset_info", "get_tool_info", "list_toolsets"];

/// Required and optional sections of a prompt.
const fn parts(kind: TaskKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        TaskKind::Plan | TaskKind::Decide | TaskKind::Report => (
            &["alert", JOURNAL, "roster"],
            &[
                "timeline",
                "review",
                "leads",
                "credible",
                "source_notes",
                "coverage",
                "out_of_reach",
                "acts",
                "now",
                "budget",
                LEFT_OUT,
            ],
        ),
        TaskKind::Investigate => (&["alert", "sources", JOURNAL, "question"], &[LEFT_OUT]),
        TaskKind::Review => (
            &["alert", "question", JOURNAL, "toolsets", "findings"],
            &["earlier", "limits", "source_notes", "coverage", "out_of_reach", "acts", LEFT_OUT],
        ),
        TaskKind::Timeline => (&[JOURNAL, "review"], &["timeline", LEFT_OUT]),
    }
}

/// Sections with text; the others contain a JSON document.
const TEXT: [&str; 9] =
    [JOURNAL, "budget", "out_of_reach", "toolsets", "source_notes", "coverage", "credible", "acts", LEFT_OUT];

fn may_use(kind: TaskKind, tool: &str) -> bool {
    match kind {
        TaskKind::Plan | TaskKind::Decide | TaskKind::Report => tool == JOURNAL,
        TaskKind::Review => RECORD.contains(&tool),
        TaskKind::Timeline => false,
        TaskKind::Investigate => tool != JOURNAL && !RECORD.contains(&tool),
    }
}

pub(super) fn check(request: &Request, kind: TaskKind, add: &mut Add<'_>) {
    let sections = prompt::task_sections(request);
    let (must, may) = parts(kind);
    for name in must {
        if !sections.iter().any(|(found, _)| found == name) {
            add("view", format!("{} has no section {name}", kind.name()));
        }
    }
    for (n, (name, content)) in sections.iter().enumerate() {
        if !must.contains(name) && !may.contains(name) {
            add("view", format!("{} may not see a section {name}", kind.name()));
        }
        if sections.iter().take(n).any(|(other, _)| other == name) {
            add("view", format!("section {name} comes twice"));
        }
        if content.contains('<') {
            add("escape", format!("section {name} holds a bare <"));
        }
        if TEXT.contains(name) {
            continue;
        }
        match serde_json::from_str::<Value>(content) {
            Err(error) => add("escape", format!("section {name} is not one JSON document: {error}")),
            Ok(value) => seen(kind, name, &value, add),
        }
    }
    for tool in request.tools.iter().filter(|tool| tool.name != SUBMIT && !may_use(kind, &tool.name)) {
        add("tools", format!("{} may not be offered {}", kind.name(), tool.name));
    }
    for shown in prompt::all_shown(request) {
        if !shown.failed && !may_use(kind, shown.tool) {
            add("view", format!("{} may not see a result of {}", kind.name(), shown.tool));
        }
    }
}

/// Content that a section must not contain.
fn seen(kind: TaskKind, name: &str, value: &Value, add: &mut Add<'_>) {
    let director = matches!(kind, TaskKind::Plan | TaskKind::Decide | TaskKind::Report);
    // The sender of the alert chose its field names.
    if director && name != "alert" {
        for key in ["raw", "quote"] {
            if has_text(value, key) {
                add("view", format!("section {name} shows the Director bytes of evidence under {key:?}"));
            }
        }
    }
    if kind == TaskKind::Review && name == "findings" {
        let ids = value.as_array().into_iter().flatten().filter_map(|finding| finding.get("id")?.as_str());
        let rounds: std::collections::BTreeSet<&str> = ids.filter_map(|id| id.split('-').next()).collect();
        if rounds.len() > 1 {
            add("view", format!("findings of more than one round: {rounds:?}"));
        }
    }
}

/// Whether a text has this key anywhere in the value.
fn has_text(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => {
            map.get(key).is_some_and(Value::is_string) || map.values().any(|inner| has_text(inner, key))
        }
        Value::Array(items) => items.iter().any(|inner| has_text(inner, key)),
        _ => false,
    }
}
