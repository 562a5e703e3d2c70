use serde_json::{Value, json};

use super::director::names;
use super::{Brain, Step, ask, due, repairing, tools};
use crate::model::Request;
use crate::model::play::Ask;
use crate::model::prompt::{self, Shown};
use crate::model::request::hash;

const QUOTE: usize = 80;

pub(super) fn investigate(brain: &Brain, request: &Request) -> Step {
    if !repairing(request) {
        let calls = due(brain, request, planned(brain, request));
        if !calls.is_empty() {
            return Step::Call(calls);
        }
    }
    Step::Answer(json!({"findings": findings(brain, request)}))
}

/// The names to search: those that the Director follows, then those of the alert.
fn wanted(request: &Request) -> Vec<String> {
    let question = prompt::json_section(request, "question").unwrap_or_default();
    let follow = question.get("follow").and_then(Value::as_array).into_iter().flatten();
    let mut all: Vec<String> = follow.filter_map(Value::as_str).map(str::to_owned).collect();
    all.extend(names(&prompt::json_section(request, "alert").unwrap_or_default()));
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

/// All tool calls of this task, in order.
fn planned(brain: &Brain, request: &Request) -> Vec<Ask> {
    let wanted = wanted(request);
    let name = |n: usize| wanted.get(n % wanted.len().max(1)).cloned().unwrap_or_else(|| "root".to_owned());
    let absent = format!("absent-{:012x}", hash(&wanted) >> 16);
    let mut plan = vec![
        ("search", json!({"terms": [name(0)], "limit": 5})),
        ("count_by", json!({"field": "$source", "terms": [name(1)]})),
        ("search", json!({"terms": [absent], "limit": 0})),
        ("list_sources", json!({})),
    ];
    for n in 1..brain.expert_calls {
        plan.push(("search", json!({"terms": [name(n)], "limit": 5})));
    }
    let tools = tools(request);
    let known = plan
        .iter()
        .filter_map(|(name, arguments)| tools.iter().find(|tool| tool.name == *name).map(|tool| ask(tool, arguments)));
    // Other tools are called with the minimum that their schema accepts.
    let ours = |name: &str| plan.iter().any(|(known, _)| *known == name);
    let others = tools.iter().filter(|tool| !tools.iter().any(|one| ours(&one.name)) && !ours(&tool.name));
    let others = others.map(|tool| ask(tool, &Value::Null));
    known.chain(others).take(brain.expert_calls).collect()
}

fn findings(brain: &Brain, request: &Request) -> Vec<Value> {
    let shown = prompt::all_shown(request);
    let good: Vec<&Shown<'_>> = shown.iter().filter(|one| !one.failed).collect();
    let sum = good.iter().filter_map(|one| absence(one)).next().or_else(|| good.iter().find_map(|one| count(one)));
    let room = brain.findings.saturating_sub(usize::from(sum.is_some()));
    let mut seen = std::collections::BTreeSet::new();
    let records = good.iter().flat_map(|one| occurrences(one));
    let mut findings: Vec<Value> =
        records.filter(|(place, _)| seen.insert(place.clone())).map(|(_, finding)| finding).take(room).collect();
    findings.extend(sum.filter(|_| brain.findings > 0));
    findings
}

fn finding(kind: &str, claim: String, time: Value, citation: Value) -> Value {
    json!({"kind": kind, "claim": claim, "time": time, "entities": [], "bearing": "incriminating",
        "weight": "moderate", "about_alert": true, "technique": null, "confidence": 0.8,
        "citations": [citation], "look_next": null})
}

fn citation(kind: &str, call: &str, at: &str, quote: Option<&str>, value: Option<String>) -> Value {
    json!({"kind": kind, "call": call, "at": at, "quote": quote, "value": value, "from": null, "to": null})
}

/// The records of a result that have a time, each with its place, as findings.
fn occurrences(shown: &Shown<'_>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (n, record) in records(shown).iter().enumerate() {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let (raw, file, time) = (text("raw"), text("file"), text("time"));
        let quote: String = raw.trim_start().chars().take(QUOTE).collect();
        if time.is_empty() || file.is_empty() || file.contains('`') || quote.trim().chars().count() < 3 {
            continue;
        }
        let citation = citation("literal", shown.call, &format!("/records/{n}/raw"), Some(&quote), None);
        let claim = format!("A record in `{file}` shows the activity of the alert.");
        let place = format!("{file}:{}:{}", record.get("line").unwrap_or(&Value::Null), text("nth"));
        let mut finding = finding("occurrence", claim, time.into(), citation);
        // An accusation needs a thing that it shares with the alert.
        let host = serde_json::from_str::<Value>(raw).ok().and_then(|raw| Some(raw.get("host")?.as_str()?.to_owned()));
        if let (Some(host), Some(entities)) = (host, finding.get_mut("entities")) {
            *entities = json!([{"kind": "host", "value": host}]);
        }
        found.push((place, finding));
    }
    found
}

/// The records of a result, which may be truncated; null for one that is left out.
fn records(shown: &Shown<'_>) -> Vec<Value> {
    let json = shown.json().unwrap_or_default();
    json.get("records").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn total(shown: &Shown<'_>) -> Option<u64> {
    let result = shown.json()?;
    let exact = result.get("total_is_exact").and_then(Value::as_bool).unwrap_or(true);
    let searched = result.get("searched").and_then(Value::as_array).is_none_or(|sources| !sources.is_empty());
    result.get("total").filter(|_| exact && searched)?.as_u64()
}

fn absence(shown: &Shown<'_>) -> Option<Value> {
    let citation = citation("absence", shown.call, "/total", None, None);
    let claim = "What was searched for does not occur in these sources.".to_owned();
    (total(shown)? == 0).then(|| finding("absence", claim, Value::Null, citation))
}

fn count(shown: &Shown<'_>) -> Option<Value> {
    let total = total(shown)?;
    let citation = citation("count", shown.call, "/total", None, Some(total.to_string()));
    Some(finding("aggregate", format!("The query selects {total} records."), Value::Null, citation))
}
