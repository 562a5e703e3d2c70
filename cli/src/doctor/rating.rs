//! What the trials of a model say about it, and what to change. Pure.

use std::time::Duration;

use casebook_agent::model::config::{Profile, Way};
use casebook_agent::model::{AskError, Choice, Fault, Reply, Stop};
use casebook_protocol::{CallStatus, Purpose, TaskKind, Usage};

use super::{Heard, Trial};

/// Below this window an investigation's prompts are cut hard, in tokens.
const SMALL_WINDOW: u32 = 32_768;

/// How a model did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It cannot be used.
    Unfit,
    /// It can be used, with trouble.
    Poor,
    /// Everything held.
    Good,
}

/// How often a kind of task was tried, and how that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub kind: TaskKind,
    pub trials: usize,
    /// Answers that held at the first try.
    pub at_once: usize,
    /// Answers that held after the one repair.
    pub repaired: usize,
    pub tool_calls: usize,
    /// Of those, calls that were refused.
    pub refused_calls: usize,
    /// Why the others failed.
    pub failures: Vec<String>,
}

/// What the trials of a model say.
#[derive(Debug, Clone, PartialEq)]
pub struct Rating {
    pub grade: Grade,
    /// The model as its provider names it; none when it never answered.
    pub version: Option<String>,
    pub tasks: Vec<Tally>,
    /// The fastest, the median and the slowest answered call.
    pub latency: Option<[Duration; 3]>,
    pub usage: Usage,
    /// What to change, the most urgent first.
    pub advice: Vec<String>,
}

/// What `trials` say about the model of `profile`.
#[must_use]
pub fn rate(profile: &Profile, trials: &[Trial]) -> Rating {
    let tasks: Vec<Tally> = super::KINDS.into_iter().filter_map(|kind| tally(kind, trials)).collect();
    let heard: Vec<&Heard> = trials.iter().flat_map(|t| &t.heard).collect();
    let version = heard.iter().find_map(|h| h.result.as_ref().ok().map(|a| a.version.clone()));
    let mut usage = Usage::default();
    trials.iter().for_each(|t| usage += t.outcome.usage);
    Rating {
        grade: grade(&tasks, version.is_some()),
        version,
        latency: latency(&heard),
        usage,
        advice: advice(profile, &tasks, &heard, &usage),
        tasks,
    }
}

fn tally(kind: TaskKind, trials: &[Trial]) -> Option<Tally> {
    let trials: Vec<&Trial> = trials.iter().filter(|t| t.kind == kind).collect();
    let repaired = |t: &&&Trial| t.outcome.asked.iter().any(|c| c.purpose == Purpose::Repair);
    let held = || trials.iter().filter(|t| t.outcome.result.is_ok());
    let calls = || trials.iter().flat_map(|t| &t.outcome.calls);
    (!trials.is_empty()).then(|| Tally {
        kind,
        trials: trials.len(),
        at_once: held().filter(|t| !repaired(t)).count(),
        repaired: held().filter(repaired).count(),
        tool_calls: calls().count(),
        refused_calls: calls().filter(|c| c.status == CallStatus::Failed).count(),
        failures: trials.iter().filter_map(|t| t.outcome.result.as_ref().err().cloned()).collect(),
    })
}

fn grade(tasks: &[Tally], answered: bool) -> Grade {
    let never = |t: &Tally| t.at_once + t.repaired == 0;
    if !answered || tasks.iter().any(never) || no_tools(tasks) {
        return Grade::Unfit;
    }
    let whole = tasks.iter().all(|t| t.at_once == t.trials);
    if whole { Grade::Good } else { Grade::Poor }
}

/// An Expert that calls nothing can cite nothing.
fn no_tools(tasks: &[Tally]) -> bool {
    tasks.iter().any(|t| t.kind == TaskKind::Investigate && t.tool_calls == 0)
}

fn latency(heard: &[&Heard]) -> Option<[Duration; 3]> {
    let mut times: Vec<Duration> = heard.iter().filter(|h| h.result.is_ok()).map(|h| h.took).collect();
    times.sort_unstable();
    Some([*times.first()?, *times.get(times.len() / 2)?, *times.last()?])
}

fn advice(profile: &Profile, tasks: &[Tally], heard: &[&Heard], usage: &Usage) -> Vec<String> {
    let failed = |holds: fn(&AskError) -> bool| heard.iter().filter_map(|h| h.result.as_ref().err()).any(holds);
    let answered = heard.iter().any(|h| h.result.is_ok());
    let replied = |holds: fn(&Choice, &Reply) -> bool| {
        heard.iter().any(|h| h.result.as_ref().is_ok_and(|answered| holds(&h.ask.choice, &answered.reply)))
    };
    let refused = tasks.iter().any(|t| t.refused_calls * 4 > t.tool_calls);
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
        (answered && no_tools(tasks), "called no tool when it had to investigate, so that it can cite nothing: take a model that calls tools, and see to it that its server passes them on (vLLM: --enable-auto-tool-choice with a tool call parser)".to_owned()),
        (replied(|_, reply| reply.stop == Stop::Length), format!("replies are cut at max_output = {max_output}: raise it, or lower effort")),
        (replied(|_, reply| reply.stop == Stop::Refused), "refuses to look at an attack: set a fallback, or take another model".to_owned()),
        (refused, "more than a quarter of its tool calls were refused: it does not keep to the schemas of the tools".to_owned()),
        (answered && usage.input_tokens == 0, "its server does not say how many tokens it counted: limits on tokens and cost cannot hold".to_owned()),
        (window < SMALL_WINDOW, format!("a window of {window} tokens leaves little room for evidence: {SMALL_WINDOW} and more serve better")),
        (profile.price.is_none(), "no price is set: its cost counts as zero, and a limit on cost does not hold it".to_owned()),
    ]
    .into_iter()
    .filter_map(|(holds, advice)| holds.then_some(advice))
    .collect()
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
