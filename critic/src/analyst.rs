//! The built-in analyst as Critic: deterministic, a function of its view and of what its four tools
//! returned. It judges the submitted findings and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::mind::{CallRequest, Done, Thought};
use casebook_agent::worker::{answer, call};
use casebook_protocol::{Answer, CallStatus, CheckedFinding, Citation, Locator, ReviewView, Task, View};
use serde_json::{Value, json};

mod score;
mod story;

/// Findings whose cited result the analyst looks at itself.
const LOOKS: usize = 48;

/// The analyst's next move in a Critic's task.
#[must_use]
pub fn think(task: &Task, done: &[Done], last: bool) -> Thought {
    match &task.view {
        View::Review(view) => {
            let requests = if last { Vec::new() } else { audit(view, done) };
            if requests.is_empty() {
                return answer(Answer::Review(score::review(view, &Seen::of(done))));
            }
            Thought::Call(requests)
        }
        View::Timeline(view) => answer(Answer::Timeline(story::tell(view))),
        other => {
            Thought::GiveUp(format!("a Critic reviews and keeps the Timeline; this is a {} task", other.kind().name()))
        }
    }
}

/// First who had which tools, then how each cited call was made and whether the cited text stands in
/// what it returned.
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
    requests.extend(view.findings.iter().take(LOOKS).filter_map(look));
    requests
}

fn look(finding: &CheckedFinding) -> Option<CallRequest> {
    match finding.finding.draft.citations.first()? {
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

/// What the audit showed: the tool and arguments of each call that was looked up.
#[derive(Debug, Default)]
struct Seen {
    calls: BTreeMap<String, String>,
    missing: BTreeSet<String>,
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
        seen
    }
}
