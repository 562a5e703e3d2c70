//! The built-in analyst as Director. It is deterministic: its answer depends on its view. Its memory is the
//! Journal.

use casebook_agent::reasoner::{Action, Done};
use casebook_agent::worker::{JOURNAL_TOOL, answer, call};
use casebook_protocol::{
    Answer, DOMAINS, Decision, DirectorView, EntryDraft, EntryKind, Move, Phase, Priority, Question, Task, View,
};

mod conclude;
mod memory;

use memory::{Memory, Note};

/// The analyst concludes after this many trace rounds. A person must do longer traces.
const TRACE_ROUNDS: u32 = 3;
const FOLLOW: usize = 8;

pub fn think(task: &Task, done: &[Done], last: bool) -> Action {
    let (entries, result) = match &task.view {
        View::Plan(view) => plan(task, view),
        View::Decide(view) => decide(task, view),
        View::Report(view) => conclude::report(view),
        other => {
            return Action::GiveUp(format!(
                "a Director plans, decides and reports; this is a {} task",
                other.kind().name()
            ));
        }
    };
    if done.is_empty() && !last && !entries.is_empty() {
        let calls = entries.iter().filter_map(|e| Some(call(JOURNAL_TOOL, &serde_json::to_value(e).ok()?)));
        return Action::Call(calls.collect());
    }
    answer(result)
}

fn plan(task: &Task, view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    if task.phase == Phase::Discovery {
        return discovery(view);
    }
    let follow = Memory::of(view).open_names(FOLLOW);
    let text = if follow.is_empty() {
        "The findings name nothing new. Is there anything more in your sources on the alerted activity?".to_owned()
    } else {
        let names: Vec<String> = follow.iter().map(|n| format!("`{n}`")).collect();
        format!(
            "What do your sources record of {}? Follow these names; say when each appears, what it does, and what it reaches.",
            names.join(", ")
        )
    };
    let mut entry = EntryDraft::new(EntryKind::Question, Priority::High, text.clone());
    entry.follow_ups.clone_from(&follow);
    (vec![entry], Answer::Plan(Question { text, to: Vec::new(), follow }.into()))
}

fn discovery(view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let text = "Examine your sources for the alerted activity: find its record, what came before it and what followed, who did it and from where, and what speaks for or against an attack. Cite every record.".to_owned();
    let mut entries = vec![EntryDraft::new(
        EntryKind::Observation,
        Priority::High,
        format!("Alert `{}`, severity {:?}.", view.alert.title, view.alert.severity),
    )];
    let there: Vec<&str> = view.roster.iter().filter(|m| m.trouble.is_none()).map(|m| m.domain.as_str()).collect();
    entries.push(EntryDraft::new(
        EntryKind::Decision,
        Priority::Medium,
        format!("Ask every Expert at once: {}.", there.join(", ")),
    ));
    let covers =
        |d: &&str| view.roster.iter().any(|m| m.trouble.is_none() && m.covers.iter().any(|c| c.as_str() == *d));
    let missing: Vec<&str> = DOMAINS.iter().copied().filter(|d| !there.contains(d) && !covers(d)).collect();
    if !missing.is_empty() {
        entries.push(EntryDraft::new(
            EntryKind::Question,
            Priority::Medium,
            format!("No evidence from these domains: {}. What would they show?", missing.join(", ")),
        ));
    }
    (entries, Answer::Plan(Question { text, to: Vec::new(), follow: Vec::new() }.into()))
}

fn decide(task: &Task, view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let mut memory = Memory::of(view);
    let new: Vec<Note> = memory.take_in(view.review.as_ref());
    let mut entries: Vec<EntryDraft> = new.iter().map(Note::entry).collect();
    let trouble: Vec<String> =
        view.roster.iter().filter_map(|m| Some(format!("{}: {}", m.domain, m.trouble.as_ref()?))).collect();
    if !trouble.is_empty() {
        entries.push(EntryDraft::new(
            EntryKind::Observation,
            Priority::High,
            format!("Without an answer: {}.", trouble.join("; ")),
        ));
    }
    let open = memory.open_names(FOLLOW);
    let rounds_of_trace = memory.trace_rounds(task);
    let telling = new.iter().any(|n| n.against || n.about_alert);
    let (next, reason) = match task.phase {
        Phase::Discovery => (
            Move::Advance,
            "Every Expert on the roster answered or failed: question them on what was found.".to_owned(),
        ),
        _ if telling && !open.is_empty() && rounds_of_trace < TRACE_ROUNDS => {
            (Move::Stay, format!("The findings name {}: follow them.", open.join(", ")))
        }
        _ if rounds_of_trace >= TRACE_ROUNDS => {
            (Move::Advance, "Three rounds of tracing are done: conclude, and name what stays open.".to_owned())
        }
        _ => (Move::Advance, "The last round named nothing new to follow: conclude.".to_owned()),
    };
    if let Some(warning) = &view.warning {
        entries.push(EntryDraft::new(EntryKind::Observation, Priority::High, format!("Budget: {warning}.")));
    }
    entries.push(EntryDraft::new(EntryKind::Decision, Priority::High, reason.clone()));
    (entries, Answer::Decide(Decision { next, reason }))
}
