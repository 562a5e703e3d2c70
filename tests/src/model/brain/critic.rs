use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Brain, Step, ask, due, repairing, tools};
use crate::model::Request;
use crate::model::play::Ask;
use crate::model::prompt;

const EVENTS: usize = 40;

fn list(value: &Value, key: &str) -> Vec<Value> {
    value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

pub(super) fn review(brain: &Brain, request: &Request) -> Step {
    let findings = match prompt::json_section(request, "findings") {
        Some(Value::Array(findings)) => findings,
        _ => Vec::new(),
    };
    if !repairing(request) {
        let calls = due(brain, request, planned(brain, request, &findings));
        if !calls.is_empty() {
            return Step::Call(calls);
        }
    }
    let judged: Vec<Value> = findings.iter().map(judged).collect();
    let good = findings.iter().filter(|finding| valid(finding)).count();
    let summary = format!("{good} of {} findings stand on citations that hold.", findings.len());
    Step::Answer(json!({"summary": summary, "findings": judged}))
}

fn valid(finding: &Value) -> bool {
    finding.get("invalid").is_none()
}

fn judged(finding: &Value) -> Value {
    let (score, rationale) = if valid(finding) {
        (0.8, "Every citation holds and the claim says no more than it.")
    } else {
        (0.1, "The mechanical check found faults.")
    };
    json!({"finding": finding.get("id"), "score": score, "rationale": rationale, "corroborated_by": [], "contradicted_by": []})
}

/// Plans to look up the cited calls and their results, finding by finding.
fn planned(brain: &Brain, request: &Request, findings: &[Value]) -> Vec<Ask> {
    let tools = tools(request);
    let tool = |name: &str| tools.iter().find(|tool| tool.name == name);
    let mut asks = Vec::new();
    for finding in findings {
        for citation in list(finding, "citations") {
            let Some(call) = citation.get("call").and_then(Value::as_str) else { continue };
            asks.extend(tool("get_tool_call").map(|tool| ask(tool, &json!({"call": call}))));
            let pointer = citation.get("at").and_then(Value::as_str).filter(|at| at.starts_with('/'));
            let arguments = pointer.map_or_else(
                || json!({"call": call, "offset": 0}),
                |pointer| json!({"call": call, "pointer": pointer}),
            );
            asks.extend(tool("get_tool_result").map(|tool| ask(tool, &arguments)));
        }
    }
    let all = tool("list_toolsets").map(|tool| ask(tool, &json!({})));
    asks.into_iter().chain(all).take(brain.critic_calls).collect()
}

pub(super) fn timeline(request: &Request) -> Step {
    let review = prompt::json_section(request, "review").unwrap_or_default();
    let before = prompt::json_section(request, "timeline").unwrap_or_default();
    let mut events = list(&before, "events");
    for finding in list(&review, "findings") {
        let believed = finding.get("score").and_then(Value::as_f64).is_some_and(|score| score >= 0.5);
        let occurrence = finding.get("time").is_some_and(|time| !time.is_null());
        if believed && occurrence {
            events.push(json!({"description": finding.get("claim"), "time": finding.get("time"), "findings": [finding.get("id")]}));
        }
    }
    let mut seen = BTreeSet::new();
    let place = |event: &Value| format!("{}{}", moment(event), event.get("description").unwrap_or(&Value::Null));
    events.retain(|event| seen.insert(place(event)));
    let events: Vec<Value> = events.into_iter().take(EVENTS).map(flat).collect();
    let gaps = json!([{"kind": "evidential", "description": "Nothing shows who began it."}]);
    Step::Answer(json!({"narrative": "Each event is on record.", "events": events, "gaps": gaps, "score": 0.7}))
}

fn moment(event: &Value) -> String {
    let time = event.get("time").unwrap_or(&Value::Null);
    time.get("at").unwrap_or(time).to_string()
}

/// Copies the parts of the time to the event, for flat forms.
fn flat(mut event: Value) -> Value {
    let time = event.get("time").cloned().unwrap_or_default();
    if let (Some(map), Value::Object(time)) = (event.as_object_mut(), time) {
        for (key, value) in time {
            map.entry(key).or_insert(value);
        }
    }
    event
}
