//! What to change about a model, read from what it was asked and what came. Pure.

use casebook_agent::model::config::{Profile, Way};
use casebook_agent::model::{AskError, Choice, Fault, Reply, Stop};
use casebook_protocol::{CallStatus, TaskKind};

use super::{Heard, Trial};

/// Below this window an investigation's prompts are cut hard, in tokens.
const SMALL_WINDOW: u32 = 32_768;

/// What to change about the model of `profile` after `trials`, the most urgent first.
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
            "answers in prose instead of calling the tool that takes its answer: set answer = \"native\" if its server has structured output, or take a model that calls tools"
        }
    };
    let (window, seconds, max_output) = (profile.window, profile.timeout.as_secs(), profile.max_output);
    [
        (failed(speaks_of_length), format!("the server says that a prompt is too long: its window is smaller than window = {window} in the models file; lower that, or raise the server's (Ollama: num_ctx)")),
        (failed(|e| e.fault == Fault::TimedOut), format!("no answer in time: raise timeout_seconds = {seconds}, lower max_output, or take a faster model")),
        (replied(|_, reply| is_prose(reply)), prose.to_owned()),
        (replied(ignores_choice), "ignores tool_choice: it does not call the one tool that it must; set answer = \"native\" if its server has structured output".to_owned()),
        (replied(|choice, reply| *choice == Choice::Nothing && !reply.calls.is_empty()), "calls tools when it is told that none can be called: set answer = \"submit_tool\"".to_owned()),
        (answered && !cites(trials), "called no tool when it had to investigate, so that it can cite nothing: take a model that calls tools, and see to it that its server passes them on (vLLM: --enable-auto-tool-choice with a tool call parser)".to_owned()),
        (replied(|_, reply| reply.stop == Stop::Length), format!("replies are cut at max_output = {max_output}: raise it, or lower effort")),
        (replied(|_, reply| reply.stop == Stop::Refused), "refuses to look at an attack: set a fallback, or take another model".to_owned()),
        (refused * 4 > calls, "more than a quarter of its tool calls were refused: it does not keep to the schemas of the tools".to_owned()),
        (answered && trials.iter().all(|t| t.outcome.usage.input_tokens == 0), "its server does not say how many tokens it counted: limits on tokens and cost cannot hold".to_owned()),
        (window < SMALL_WINDOW, format!("a window of {window} tokens leaves little room for evidence: {SMALL_WINDOW} and more serve better")),
        (profile.price.is_none(), "no price is set: its cost counts as zero, and a limit on cost does not hold it".to_owned()),
    ]
    .into_iter()
    .filter_map(|(holds, advice)| holds.then_some(advice))
    .collect()
}

/// An Expert that calls nothing can cite nothing.
pub fn cites(trials: &[Trial]) -> bool {
    trials.iter().filter(|t| t.kind == TaskKind::Investigate).all(|t| !t.outcome.calls.is_empty())
}

fn ignores_choice(choice: &Choice, reply: &Reply) -> bool {
    matches!(choice, Choice::Only(tool) if reply.calls.iter().all(|call| call.tool != *tool))
}

/// Text where an object should be.
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
