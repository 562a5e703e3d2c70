//! The built-in analyst as Critic. It is deterministic: its answer depends on its view and the results of its
//! four tools. It judges only the submitted findings.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_agent::worker::{answer, call};
use casebook_protocol::{Answer, CallStatus, Citation, Locator, ReviewView, Task, View};
use serde_json::{Value, json};

mod read;
mod score;
mod story;

/// Cited places to check in total.
const LOOKS: usize = 72;
/// Cited places to check for one finding.
const LOOKS_EACH: usize = 4;

pub fn think(task: &Task, done: &[Done], last: bool) -> Action {
    match &task.view {
        View::Review(view) => {
            let requests = if last { Vec::new() } else { audit(view, done) };
            if requests.is_empty() {
                return answer(Answer::Review(score::review(view, &Seen::of(done))));
            }
            Action::Call(requests)
        }
        View::Timeline(view) => answer(Answer::Timeline(story::tell(view))),
        other => {
            Action::GiveUp(format!("a Critic reviews and keeps the Timeline; this is a {} task", other.kind().name()))
        }
    }
}

/// First gets the toolsets, then each cited call and the text at the cited places.
fn audit(view: &ReviewView, done: &[Done]) -> Vec<CallRequest> {
    if done.is_empty() {
        return vec![call("list_toolsets", &json!({}))];
    }
    if done.iter().any(|d| d.call.tool == "get_tool_call") {
        return Vec::new();
    }
    let mut requests = Vec::new();
    let mut asked = BTreeSet::new();
    for finding in &view.findings {
        for citation in finding.finding.draft.citations.iter().take(1) {
            if asked.insert(citation.call().clone()) {
                requests.push(call("get_tool_call", &json!({"call": citation.call()})));
            }
        }
    }
    requests.extend(looks(view));
    requests
}

/// The first place of each finding, followed by other places. Each place occurs once.
fn looks(view: &ReviewView) -> Vec<CallRequest> {
    let mut requests: Vec<CallRequest> = Vec::new();
    for place in 0..LOOKS_EACH {
        for finding in &view.findings {
            // Prefer the last citation to those in the middle: it was added to support the claim.
            let citations = &finding.finding.draft.citations;
            let citation = if place == 1 { citations.iter().skip(1).next_back() } else { citations.get(place) };
            if let Some(request) = citation.and_then(look)
                && !requests.contains(&request)
            {
                requests.push(request);
            }
        }
    }
    requests.truncate(LOOKS);
    requests
}

fn look(citation: &Citation) -> Option<CallRequest> {
    match citation {
        Citation::Literal { call: id, at: Locator::Pointer(pointer), .. } => {
            Some(call("get_tool_result", &json!({"call": id, "pointer": pointer})))
        }
        Citation::Literal { call: id, quote, .. } => {
            Some(call("get_tool_result", &json!({"call": id, "search": quote})))
        }
        Citation::Count { call: id, at: Locator::Pointer(pointer), .. }
        | Citation::Aggregate { call: id, at: Locator::Pointer(pointer), .. }
        | Citation::Absence { call: id, at: Locator::Pointer(pointer), .. } => {
            Some(call("get_tool_result", &json!({"call": id, "pointer": pointer})))
        }
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Seen {
    calls: BTreeMap<String, String>,
    missing: BTreeSet<String>,
    records: read::Records,
}

impl Seen {
    fn of(done: &[Done]) -> Self {
        let mut seen = Self::default();
        for done in done.iter().filter(|d| d.call.tool == "get_tool_call") {
            let asked: Option<String> = serde_json::from_str::<Value>(&done.call.arguments)
                .ok()
                .and_then(|a| Some(a.get("call")?.as_str()?.to_owned()));
            let Some(asked) = asked else { continue };
            let tool = serde_json::from_str::<Value>(&done.result)
                .ok()
                .and_then(|c| Some(c.get("tool")?.as_str()?.to_owned()));
            match tool.filter(|_| done.call.status == CallStatus::Answered) {
                Some(tool) => {
                    seen.calls.insert(asked, tool);
                }
                None => {
                    seen.missing.insert(asked);
                }
            }
        }
        seen.read(done);
        seen
    }

    fn read(&mut self, done: &[Done]) {
        for done in done.iter().filter(|d| d.call.tool == "get_tool_result" && d.call.status == CallStatus::Answered) {
            let asked = serde_json::from_str::<Value>(&done.call.arguments).unwrap_or_default();
            let answer = serde_json::from_str::<Value>(&done.result).unwrap_or_default();
            let text = |key: &str| asked.get(key).and_then(Value::as_str).map(str::to_owned);
            if let (Some(call), Some(pointer)) = (text("call"), text("pointer"))
                && let Some(record) = answer.pointer("/page/value").and_then(read::Record::of)
            {
                self.records.insert((call, pointer), record);
            }
        }
    }
}
