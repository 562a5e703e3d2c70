//! Derives advice about a model from its requests and replies. Pure.

use casebook_agent::model::config::{Profile, Way};
use casebook_agent::model::{AskError, Choice, Fault, Reply, Stop};
use casebook_protocol::{CallStatus, Role, TaskKind};

use super::{Heard, Trial};

/// With a smaller window (in tokens), prompts are shortened a lot.
const SMALL_WINDOW: u32 = 32_768;

pub fn advice(profile: &Profile, trials: &[Trial]) -> Vec<String> {
    let heard: Vec<&Heard> = trials.iter().flat_map(|t| &t.heard).collect();
    let (calls, refused) = trials.iter().fold((0, 0), |(calls, refused), t| {
        let failed = t.outcome.calls.iter().filter(|c| c.status == CallStatus::Failed);
        (calls + t.outcome.calls.len(), refused + failed.count())
    });
    let failed = |holds: fn(&AskError) -> bool| heard.iter().filter_map(|h| h.result.as_ref().err()).any(holds);
    let answered = heard.iter().any(|h| h.result.is_ok());
    let replied = |holds: fn(&Choice, &Reply) -> bool| {
        heard.iter().any(|h| h.result.as_ref().is_ok_and(|answered| holds(&h.ask.choice, &answered.reply)))
    };
    let prose = match profile.way {
        Way::Native => "answers in prose: set answer = \"submit_tool\"",
        Way::SubmitTool => {
            "answers in prose instead of calling the answer tool: set answer = \"native\" if its server supports structured output, or choose a model that calls tools"
        }
    };
    let (window, seconds, max_output) = (profile.window, profile.timeout.as_secs(), profile.max_output);
    [
        (failed(speaks_of_length), format!("the server reports that a prompt is too long: its window is smaller than window = {window} in the models file; lower that value, or raise the server's (Ollama: num_ctx)")),
        (failed(|e| e.fault == Fault::TimedOut), format!("no answer in time: raise timeout_seconds = {seconds}, lower max_output, or choose a faster model")),
        (replied(|_, reply| is_prose(reply)), prose.to_owned()),
        (replied(ignores_choice), "ignores tool_choice: it does not call the required tool; set answer = \"native\" if its server supports structured output".to_owned()),
        (replied(|choice, reply| *choice == Choice::Nothing && !reply.calls.is_empty()), "calls tools when none are allowed: set answer = \"submit_tool\"".to_owned()),
        (answered && !cites(trials), "called no tool during an investigation, so it cannot cite evidence: choose a model that calls tools, and check that its server passes them on (vLLM: --enable-auto-tool-choice with a tool call parser)".to_owned()),
        (replied(|_, reply| reply.stop == Stop::Length), format!("replies are cut at max_output = {max_output}: raise it, or lower effort")),
        (replied(|_, reply| reply.stop == Stop::Refused), "refuses to investigate an attack: set a fallback, or choose another model".to_owned()),
        (refused * 4 > calls, "more than a quarter of its tool calls were refused: it does not follow the schemas of the tools".to_owned()),
        (answered && trials.iter().all(|t| t.outcome.usage.input_tokens == 0), "its server does not report token counts: limits on tokens and cost have no effect".to_owned()),
        (window < SMALL_WINDOW, format!("a window of {window} tokens leaves little room for evidence: {SMALL_WINDOW} or more is better")),
        (profile.price.is_none(), "no price is set: its cost counts as zero, and a limit on cost has no effect".to_owned()),
    ]
    .into_iter()
    .filter_map(|(holds, advice)| holds.then_some(advice))
    .collect()
}

/// The roles whose tasks the model did in most trials, and the others.
pub fn roles(trials: &[Trial]) -> (Vec<Role>, Vec<Role>) {
    let held = |kind: &TaskKind| {
        let of_kind = || trials.iter().filter(|trial| trial.kind == *kind);
        of_kind().filter(|trial| trial.outcome.result.is_ok()).count() * 2 > of_kind().count()
    };
    let plays = |role: &Role| {
        TaskKind::ALL.iter().filter(|kind| kind.role() == *role).all(held) && (*role != Role::Expert || cites(trials))
    };
    [Role::Director, Role::Expert, Role::Critic].into_iter().partition(plays)
}

/// An Expert can cite only results of tool calls.
pub fn cites(trials: &[Trial]) -> bool {
    trials.iter().filter(|t| t.kind == TaskKind::Investigate).all(|t| !t.outcome.calls.is_empty())
}

fn ignores_choice(choice: &Choice, reply: &Reply) -> bool {
    matches!(choice, Choice::Only(tool) if reply.calls.iter().all(|call| call.tool != *tool))
}

/// Whether a reply is text instead of an object.
fn is_prose(reply: &Reply) -> bool {
    let text = reply.text.trim();
    reply.calls.is_empty() && reply.stop == Stop::Done && !text.is_empty() && !text.contains('{')
}

fn speaks_of_length(error: &AskError) -> bool {
    let message = error.message.to_lowercase();
    ["context length", "context window", "context_length", "maximum context", "too long", "too many tokens"]
        .iter()
        .any(|phrase| message.contains(phrase))
}

#[cfg(test)]
mod tests;
