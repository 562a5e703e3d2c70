//! Whether anyone has examined the evidence. An investigation in which no model answered an Expert has no verdict, and
//! pauses until one does ([decision 38](../../docs/decisions/0038-give-no-verdict-without-a-mind.md)).

use casebook_protocol::{CallStatus, TaskKind, one_line};

use crate::state::{Progress, State, TaskState};

/// Characters of each reason and of all.
const REASON: usize = 400;

/// Why the Experts of this round, played by models, have examined nothing. None if an Expert has ever answered or made
/// a tool call.
pub fn missing(state: &State) -> Option<String> {
    let asked = || state.tasks.values().filter(|task| task.kind == TaskKind::Investigate);
    let examined = asked().any(|task| task.progress == Progress::Answered)
        || state.calls.values().any(|made| made.call.domain.is_some() && made.call.status == CallStatus::Answered);
    let mut reasons: Vec<String> = asked().filter(|task| task.round == state.round).filter_map(failed).collect();
    reasons.dedup();
    (!examined && !reasons.is_empty()).then(|| one_line(&reasons.join("; "), 2 * REASON))
}

/// Why a model failed in this task.
fn failed(task: &TaskState) -> Option<String> {
    match (&task.progress, &task.player) {
        (Progress::Failed(reason), Some(player)) if !player.built_in => Some(one_line(reason, REASON)),
        _ => None,
    }
}
