//! What the trials of a model say about it, and what to change. Pure.

use std::time::Duration;

use casebook_agent::model::config::{Profile, Way};
use casebook_agent::model::{Choice, Fault, Reply, Stop};
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
    /// The task.
    pub kind: TaskKind,
    /// Trials.
    pub trials: usize,
    /// Answers that held at the first try.
    pub at_once: usize,
    /// Answers that held after the one repair.
    pub repaired: usize,
    /// Tool calls.
    pub tool_calls: usize,
    /// Of those, calls that were refused.
    pub refused_calls: usize,
    /// Why the others failed.
    pub failures: Vec<String>,
}

/// What the trials of a model say.
#[derive(Debug, Clone, PartialEq)]
pub struct Rating {
    /// How it did.
    pub grade: Grade,
    /// The model as its provider names it; none when it never answered.
    pub version: Option<String>,
    /// By task.
    pub tasks: Vec<Tally>,
    /// The fastest, the median and the slowest answered call.
    pub latency: Option<[Duration; 3]>,
    /// All of it.
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
    let mut advice = Vec::new();
    let errors: Vec<_> = heard.iter().filter_map(|h| h.result.as_ref().err()).collect();
    let replies: Vec<(&Heard, &Reply)> =
        heard.iter().filter_map(|h| Some((*h, &h.result.as_ref().ok()?.reply))).collect();
    let count = |holds: &dyn Fn(&Heard, &Reply) -> bool| replies.iter().filter(|(h, r)| holds(h, r)).count();
    if errors.iter().any(|e| speaks_of_length(&e.message)) {
        advice.push(format!(
            "the server says that a prompt is too long: its window is smaller than window = {} in the models file; lower that, or raise the server's (Ollama: num_ctx)",
            profile.window
        ));
    }
    if errors.iter().any(|e| matches!(e.fault, Fault::TimedOut)) {
        advice.push(format!(
            "no answer in time: raise timeout_seconds = {}, lower max_output, or take a faster model",
            profile.timeout.as_secs()
        ));
    }
    if count(&|_, r| is_prose(r)) > 0 {
        advice.push(match profile.way {
            Way::Native => "answers in prose: set answer = \"submit_tool\"".to_owned(),
            Way::SubmitTool => "answers in prose instead of calling the tool that takes its answer: set answer = \"native\" if its server has structured output, or take a model that calls tools".to_owned(),
        });
    }
    if count(&|h, r| matches!(&h.ask.choice, Choice::Only(tool) if r.calls.iter().all(|c| c.tool != *tool))) > 0 {
        advice.push("ignores tool_choice: it does not call the one tool that it must; set answer = \"native\" if its server has structured output".to_owned());
    }
    if count(&|h, r| h.ask.choice == Choice::Nothing && !r.calls.is_empty()) > 0 {
        advice.push("calls tools when it is told that none can be called: set answer = \"submit_tool\"".to_owned());
    }
    if !replies.is_empty() && no_tools(tasks) {
        advice.push("called no tool when it had to investigate, so that it can cite nothing: take a model that calls tools, and see to it that its server passes them on (vLLM: --enable-auto-tool-choice with a tool call parser)".to_owned());
    }
    if count(&|_, r| r.stop == Stop::Length) > 0 {
        advice.push(format!("replies are cut at max_output = {}: raise it, or lower effort", profile.max_output));
    }
    if count(&|_, r| r.stop == Stop::Refused) > 0 {
        advice.push("refuses to look at an attack: set a fallback, or take another model".to_owned());
    }
    if tasks.iter().any(|t| t.refused_calls * 4 > t.tool_calls) {
        advice.push(
            "more than a quarter of its tool calls were refused: it does not keep to the schemas of the tools"
                .to_owned(),
        );
    }
    if !replies.is_empty() && usage.input_tokens == 0 {
        advice.push(
            "its server does not say how many tokens it counted: limits on tokens and cost cannot hold".to_owned(),
        );
    }
    if profile.window < SMALL_WINDOW {
        advice.push(format!(
            "a window of {} tokens leaves little room for evidence: {SMALL_WINDOW} and more serve better",
            profile.window
        ));
    }
    if profile.price.is_none() {
        advice.push("no price is set: its cost counts as zero, and a limit on cost does not hold it".to_owned());
    }
    advice
}

/// Text where an object should be.
fn is_prose(reply: &Reply) -> bool {
    let text = reply.text.trim();
    reply.calls.is_empty() && reply.stop == Stop::Done && !text.is_empty() && !text.contains('{')
}

fn speaks_of_length(message: &str) -> bool {
    let message = message.to_lowercase();
    ["context length", "context window", "context_length", "maximum context", "too long", "too many tokens"]
        .iter()
        .any(|phrase| message.contains(phrase))
}

#[cfg(test)]
mod tests;
