//! The built-in analyst as Critic. It is deterministic: its answer depends on its view and on the cited records, which it
//! looks up. It judges only the submitted findings.

use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_agent::worker::{answer, call};
use casebook_protocol::{Answer, Citation, Locator, ReviewView, Task, View};
use serde_json::json;

mod read;
mod score;
mod story;

/// Cited records to look up in total.
const LOOKS: usize = 72;
/// Cited records to look up for one finding.
const LOOKS_EACH: usize = 4;

pub fn think(task: &Task, done: &[Done], last: bool) -> Action {
    match &task.view {
        View::Review(view) => {
            let looks = if done.is_empty() && !last { looks(view) } else { Vec::new() };
            if looks.is_empty() {
                return answer(Answer::Review(score::review(view, &read::records(done))));
            }
            Action::Call(looks)
        }
        View::Timeline(view) => answer(Answer::Timeline(story::tell(view))),
        other => {
            Action::GiveUp(format!("a Critic reviews and keeps the Timeline; this is a {} task", other.kind().name()))
        }
    }
}

/// The first record of each finding, followed by other records. Each record occurs once.
fn looks(view: &ReviewView) -> Vec<CallRequest> {
    let mut requests: Vec<CallRequest> = Vec::new();
    for place in 0..LOOKS_EACH {
        for finding in &view.findings {
            // Prefer the last citation to those in the middle: it was added to support the claim.
            let citations = &finding.finding.draft.citations;
            let citation = if place == 1 { citations.iter().skip(1).next_back() } else { citations.get(place) };
            if let Some(Citation::Literal { call: id, at: Locator::Pointer(pointer), .. }) = citation {
                let request = call("get_tool_result", &json!({"call": id, "pointer": pointer}));
                if !requests.contains(&request) {
                    requests.push(request);
                }
            }
        }
    }
    requests.truncate(LOOKS);
    requests
}
