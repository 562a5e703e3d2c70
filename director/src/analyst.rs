//! The built-in analyst as Director. It is deterministic: its answer depends on its view.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{Action, Done};
use casebook_agent::worker::{JOURNAL_TOOL, answer, call};
use casebook_protocol::{
    Answer, DOMAINS, Decision, DirectorView, EntryDraft, EntryKind, Move, Phase, Priority, Question, Task, View,
};

mod conclude;
mod memory;

/// The analyst concludes after this many trace rounds. A person must do longer traces.
const TRACE_ROUNDS: usize = 3;

pub fn think(task: &Task, done: &[Done], last: bool) -> Action {
    let (entries, result) = match &task.view {
        View::Plan(view) if task.phase == Phase::Discovery => discovery(view),
        View::Plan(view) => plan(view),
        View::Decide(view) => decide(task, view),
        View::Report(view) => conclude::report(view),
        other => {
            let kind = other.kind().name();
            return Action::GiveUp(format!("a Director plans, decides and reports; this is a {kind} task"));
        }
    };
    if done.is_empty() && !last && !entries.is_empty() {
        let calls = entries.iter().filter_map(|e| Some(call(JOURNAL_TOOL, &serde_json::to_value(e).ok()?)));
        return Action::Call(calls.collect());
    }
    answer(result)
}

fn plan(view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let follow = memory::open_names(view);
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
    let alert = format!("Alert `{}`, severity {:?}.", view.alert.title, view.alert.severity);
    let there: Vec<_> = view.roster.iter().filter(|m| m.trouble.is_none()).collect();
    let domains: Vec<&str> = there.iter().map(|m| m.domain.as_str()).collect();
    let asked = format!("Ask every Expert at once: {}.", domains.join(", "));
    let mut entries = vec![
        EntryDraft::new(EntryKind::Observation, Priority::High, alert),
        EntryDraft::new(EntryKind::Decision, Priority::Medium, asked),
    ];
    let covered = |d: &str| domains.contains(&d) || there.iter().any(|m| m.covers.iter().any(|c| c.as_str() == d));
    let missing: Vec<&str> = DOMAINS.iter().copied().filter(|d| !covered(d)).collect();
    if !missing.is_empty() {
        let text = format!("No evidence from these domains: {}. What would they show?", missing.join(", "));
        entries.push(EntryDraft::new(EntryKind::Question, Priority::Medium, text));
    }
    (entries, Answer::Plan(Question { text, to: Vec::new(), follow: Vec::new() }.into()))
}

fn decide(task: &Task, view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let known: BTreeSet<&str> = view.journal.iter().map(|e| e.entry.text.as_str()).collect();
    let telling = view.review.iter().flat_map(|review| memory::telling(&review.findings));
    let noted = telling.map(|finding| (finding, memory::entry(finding)));
    let new: Vec<_> = noted.filter(|(_, entry)| !known.contains(entry.text.as_str())).collect();
    let grave = new.iter().any(|(f, _)| memory::points_to_an_attack(f) || f.draft.about_alert);
    let mut entries: Vec<EntryDraft> = new.into_iter().map(|(_, entry)| entry).collect();
    let mut note = |kind, text| entries.push(EntryDraft::new(kind, Priority::High, text));
    let trouble: Vec<String> =
        view.roster.iter().filter_map(|m| Some(format!("{}: {}", m.domain, m.trouble.as_ref()?))).collect();
    if !trouble.is_empty() {
        note(EntryKind::Observation, format!("Without an answer: {}.", trouble.join("; ")));
    }
    let open = memory::open_names(view);
    let earlier = view.journal.iter().filter(|e| e.phase == Phase::Trace).map(|e| e.round);
    let traced = earlier.chain([task.round]).collect::<BTreeSet<u32>>().len();
    let (next, reason) = match task.phase {
        Phase::Discovery => (
            Move::Advance,
            "Every Expert on the roster answered or failed: question them on what was found.".to_owned(),
        ),
        _ if traced >= TRACE_ROUNDS => {
            (Move::Advance, "Three rounds of tracing are done: conclude, and name what stays open.".to_owned())
        }
        _ if grave && !open.is_empty() => (Move::Stay, format!("The findings name {}: follow them.", open.join(", "))),
        _ => (Move::Advance, "The last round named nothing new to follow: conclude.".to_owned()),
    };
    if let Some(warning) = &view.warning {
        note(EntryKind::Observation, format!("Budget: {warning}."));
    }
    note(EntryKind::Decision, reason.clone());
    (entries, Answer::Decide(Decision { next, reason }))
}
