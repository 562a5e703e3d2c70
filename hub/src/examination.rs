//! Whether an Expert can examine the evidence, or has. An investigation in which no model answered an Expert has no
//! verdict, and pauses until one does
//! ([decision 38](../../docs/decisions/0038-give-no-verdict-if-no-expert-answered.md)).

use casebook_protocol::{Budget, CallStatus, Member, TaskKind, one_line};

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

/// Why this budget allows no call of an Expert's model in the first round, in which all Experts share it. None if an
/// Expert can be asked, or is played by code.
pub fn too_small(budget: &Budget, roster: &[Member]) -> Option<String> {
    let (usable, sharers) = (budget.before_the_report(), (roster.len() as u64).max(1));
    let mut least: Option<String> = None;
    for member in roster {
        let needs = member.one_call?;
        let tokens = needs.input_tokens.saturating_add(needs.output_tokens);
        let limits = [
            ("model calls", usable.model_calls, 1),
            ("tokens", usable.tokens, tokens),
            ("millionths of cost", usable.cost_micros, needs.cost_micros),
        ];
        let (what, usable, needs) = limits.into_iter().find(|(_, usable, needs)| usable.div_ceil(sharers) < *needs)?;
        // A twentieth is kept for the report, and two calls.
        let enough = (needs.saturating_mul(sharers).saturating_mul(20) / 19).saturating_add(2);
        least.get_or_insert_with(|| {
            format!(
                "one call of the Expert for {} can use {needs} {what}, and each of {sharers} Experts has {} of the \
                 {usable} before the report; a limit of {enough} is enough for one call each",
                member.domain,
                usable.div_ceil(sharers)
            )
        });
    }
    least
}
