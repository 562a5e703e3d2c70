//! An investigation as it happens: what each recorded event says to a person at a terminal.

use std::collections::BTreeMap;

pub use agents::AgentLines;
use casebook_protocol::{Event, Finding, JournalEntry, Member, Move, Review, Score, TaskId, Timeline, ToolCall};
use serde_json::Value;
pub use summary::Summary;
use thinking::Thinking;

use crate::screen::{BOLD, CYAN, DIM, RED, YELLOW, of_score, paint, safe};

mod agents;
mod summary;
mod thinking;

pub(crate) use thinking::spent;

/// The widest text of others on one line.
const WIDTH: usize = 160;
/// The longest reason of a failure: a person has to act on it.
const REASON: usize = 1_000;
/// The widest arguments of a call.
const ARGUMENTS: usize = 110;
/// The first calls of a task, which are shown one by one.
const CALLS: u64 = 8;
/// Later calls are shown in groups of this size.
const CALLS_AT_ONCE: u64 = 25;

/// Shows an investigation event by event, each event once.
#[derive(Debug, Default)]
pub struct Teller {
    /// The latest entries of the Journal: questions and decisions stand there word for word.
    journal: Vec<(u32, String)>,
    calls: BTreeMap<TaskId, u64>,
    /// What models did for each task under way.
    thinking: BTreeMap<TaskId, Thinking>,
    /// Show every call, not only the first of a task.
    every_call: bool,
}

impl Teller {
    /// One that tells every tool call; else the first few of a task stand for the rest.
    #[must_use]
    pub fn new(every_call: bool) -> Self {
        Self { every_call, ..Self::default() }
    }

    /// The lines that `event` gives; none where it says nothing to a person.
    pub fn tell(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Journaled { entry } => {
                self.journal.push((entry.seq, entry.entry.text.clone()));
                vec![journal(entry)]
            }
            Event::Asked { question, .. } => {
                let to: Vec<&str> = question.to.iter().map(casebook_protocol::Domain::as_str).collect();
                let to = if to.is_empty() { "all".to_owned() } else { to.join(", ") };
                vec![labelled("director", &format!("asks {to}: {}", self.unless_told(&question.text)))]
            }
            Event::Decided { decision, .. } => {
                let next = match decision.next {
                    Move::Stay => "stays in this phase",
                    Move::Advance => "goes on to the next phase",
                };
                vec![labelled("director", &format!("{next}: {}", self.unless_told(&decision.reason)))]
            }
            Event::CallRecorded { task, call: made } => self.called(task, made),
            Event::ModelCalled { task, call: made } => {
                self.thinking.entry(task.clone()).or_default().add(made);
                thinking::call(made, self.every_call).into_iter().map(|line| labelled("model", &line)).collect()
            }
            Event::TaskAnswered { task, .. } | Event::TaskFailed { task, .. } => {
                let calls = self.calls.remove(task).unwrap_or(0);
                let rest = calls.saturating_sub(CALLS) % CALLS_AT_ONCE;
                let mut out = if rest > 0 && !self.every_call {
                    vec![labelled("", &paint(DIM, format_args!("{task}: {rest} more calls")))]
                } else {
                    Vec::new()
                };
                let thought = self.thinking.remove(task);
                out.extend(thought.map(|all| labelled("model", &paint(DIM, all.sum(task)))));
                out.extend(lines(event));
                out
            }
            Event::RoundStarted { .. } => {
                self.journal.clear();
                lines(event)
            }
            _ => lines(event),
        }
    }

    fn called(&mut self, task: &TaskId, made: &ToolCall) -> Vec<String> {
        let Some(line) = call(made) else { return Vec::new() };
        let calls = self.calls.entry(task.clone()).or_default();
        *calls += 1;
        if self.every_call || *calls <= CALLS {
            return vec![line];
        }
        let more = *calls - CALLS;
        if more.is_multiple_of(CALLS_AT_ONCE) {
            vec![labelled("", &paint(DIM, format_args!("{task}: {CALLS_AT_ONCE} more calls")))]
        } else {
            Vec::new()
        }
    }

    /// A text, or the entry of this round that said it.
    fn unless_told(&self, text: &str) -> String {
        let told = self.journal.iter().find(|(_, said)| said == text);
        told.map_or_else(|| safe(text, 2 * WIDTH), |(seq, _)| format!("as journal #{seq} says"))
    }
}

fn lines(event: &Event) -> Vec<String> {
    match event {
        Event::Opened { alert, roster, .. } => opened(&alert.title, roster),
        Event::RoundStarted { phase, round } => {
            vec![String::new(), paint(BOLD, format_args!("Round {round}, {}", phase.name()))]
        }
        Event::FindingSubmitted { finding: found } => vec![finding(found)],
        Event::FindingChecked { finding, checked, .. } => faults(finding.as_str(), checked),
        Event::Guarded { guard } => vec![labelled(
            "rule",
            &paint(
                DIM,
                format_args!("{} on {}: {}", guard.rule.name(), safe(&guard.subject, 60), safe(&guard.effect, WIDTH)),
            ),
        )],
        Event::Reviewed { review: all } => review(all),
        Event::LeadsGiven { leads, .. } => {
            leads.iter().map(|lead| labelled("lead", &safe(&lead.draft.what, 2 * WIDTH))).collect()
        }
        Event::TimelineRewritten { timeline: story } => timeline(story),
        Event::TaskFailed { task, reason, .. } => {
            vec![labelled("hub", &paint(RED, format_args!("{task} failed: {}", safe(reason, REASON))))]
        }
        _ => trouble(event),
    }
}

/// What an operator should know, whichever way an investigation is shown.
fn trouble(event: &Event) -> Vec<String> {
    match event {
        Event::Attendance { domain, gone } => {
            let text = match gone {
                Some(reason) => format!("{domain}: {}", safe(reason, WIDTH)),
                None => format!("{domain}: an Expert is there again"),
            };
            vec![labelled("hub", &paint(YELLOW, text))]
        }
        Event::BudgetNear { limit } => {
            vec![labelled("hub", &paint(YELLOW, format_args!("a limit is near: {}", safe(limit, WIDTH))))]
        }
        Event::NotInvestigated { reason } => {
            vec![labelled("hub", &paint(RED, format_args!("not investigated: {}", safe(reason, REASON))))]
        }
        Event::Stopping { reason } => {
            vec![labelled("hub", &paint(YELLOW, format_args!("goes on to conclude: {}", safe(reason, WIDTH))))]
        }
        _ => Vec::new(),
    }
}

fn labelled(who: &str, what: &str) -> String {
    format!("  {} {what}", paint(CYAN, format_args!("{:<13}", safe(who, 13))))
}

fn opened(title: &str, roster: &[Member]) -> Vec<String> {
    let mut out = vec![format!("{} {}", paint(BOLD, "Alert"), safe(title, WIDTH))];
    for member in roster {
        let sources: Vec<String> = member.sources.iter().map(|s| safe(&s.source, 40)).collect();
        out.push(labelled(
            member.domain.as_str(),
            &paint(DIM, format_args!("sees {}", safe(&sources.join(", "), WIDTH))),
        ));
    }
    out
}

/// What a tool was asked. The journaling tool's calls show as the entries that they become.
fn call(call: &ToolCall) -> Option<String> {
    if call.domain.is_none() && call.tool == casebook_agent::worker::JOURNAL_TOOL {
        return None;
    }
    let who = call.domain.as_ref().map_or("critic", casebook_protocol::Domain::as_str);
    let failed = match call.status {
        casebook_protocol::CallStatus::Answered => String::new(),
        casebook_protocol::CallStatus::Failed => paint(RED, "  refused"),
    };
    Some(labelled(
        who,
        &format!("{}{failed}", paint(DIM, format_args!("{} {}", safe(&call.tool, 40), arguments(&call.arguments)))),
    ))
}

/// Arguments as `key=value`, short: what is looked for first, then where and when, then how much;
/// switches are left out. As they are where they are no JSON object.
fn arguments(json: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str(json) else {
        return safe(json, ARGUMENTS);
    };
    let mut words: Vec<(u8, String)> = map
        .iter()
        .filter_map(|(key, value)| Some((rank(key, value)?, format!("{key}={}", safe(&plain(value), 70)))))
        .collect();
    words.sort_by_key(|(rank, _)| *rank);
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    safe(&words.join(" "), ARGUMENTS)
}

fn rank(key: &str, value: &Value) -> Option<u8> {
    match (key, value) {
        ("mode" | "order", _) | (_, Value::Bool(_) | Value::Null) => None,
        (_, Value::Array(_) | Value::Object(_)) => Some(0),
        (_, Value::String(_)) => Some(1),
        (_, Value::Number(_)) => Some(2),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn journal(entry: &JournalEntry) -> String {
    let draft = &entry.entry;
    labelled("journal", &format!("#{} {}: {}", entry.seq, draft.kind.name(), safe(&draft.text, 2 * WIDTH)))
}

fn finding(finding: &Finding) -> String {
    labelled(
        finding.domain.as_str(),
        &format!("{} {}", paint(BOLD, &finding.id), safe(&finding.draft.claim, 2 * WIDTH)),
    )
}

fn faults(id: &str, checked: &casebook_protocol::Checked) -> Vec<String> {
    let notes = checked.citations.iter().filter(|c| !c.holds).map(|c| &c.note).chain(&checked.faults);
    notes.map(|note| labelled("check", &paint(YELLOW, format_args!("{id}: {}", safe(note, WIDTH))))).collect()
}

fn scored(score: Score, label: &str) -> String {
    paint(of_score(score), format_args!("{score} {label:<16}"))
}

fn review(review: &Review) -> Vec<String> {
    let mut out = vec![labelled("critic", &safe(&review.summary, 2 * WIDTH))];
    out.extend(
        review.findings.iter().map(|f| labelled("", &format!("{} {}", scored(f.score, f.label.name()), f.finding.id))),
    );
    out
}

fn timeline(timeline: &Timeline) -> Vec<String> {
    let count = timeline.events.len();
    let plural = if count == 1 { "event" } else { "events" };
    let mut out = vec![labelled(
        "timeline",
        &format!("{} {count} {plural}", scored(timeline.score, timeline.label.name()).trim_end()),
    )];
    for event in &timeline.events {
        let time = event.time.at.strftime("%Y-%m-%d %H:%M:%S%.fZ");
        out.push(labelled(
            "",
            &format!("{time} {} {}", paint(of_score(event.score), event.score), safe(&event.description, WIDTH)),
        ));
    }
    for gap in &timeline.gaps {
        out.push(labelled(
            "",
            &paint(YELLOW, format_args!("{} gap: {}", gap.kind.name(), safe(&gap.description, WIDTH))),
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{CallId, Domain, EntryDraft, EntryKind, Phase, Priority, TaskId, Timestamp};

    use super::*;

    /// The lines as a terminal without colours shows them.
    fn shown(event: &Event) -> String {
        let colours = Teller::default().tell(event).join("\n");
        anstream::adapter::strip_str(&colours).to_string()
    }

    fn call() -> Event {
        let id = CallId::new("r1.investigate.endpoint.t1.0").unwrap();
        let arguments = r#"{"text":"modprobe \u001b[2J","limit":5,"fields":true}"#;
        let domain = Some(Domain::new("endpoint").unwrap());
        let call = ToolCall { domain, ..ToolCall::answered(id, "search", arguments, b"") };
        Event::CallRecorded { task: TaskId::new("r1.investigate.endpoint").unwrap(), call }
    }

    #[test]
    fn a_call_says_who_asks_what() {
        assert_eq!(shown(&call()), "  endpoint      search text=modprobe ⟨U+001B⟩[2J limit=5");
    }

    #[test]
    fn many_calls_are_told_together() {
        let mut teller = Teller::default();
        let told: usize = (0..CALLS + CALLS_AT_ONCE).map(|_| teller.tell(&call()).len()).sum();
        assert_eq!(told as u64, CALLS + 1);
        let mut all = Teller::new(true);
        assert!((0..100).all(|_| all.tell(&call()).len() == 1));
    }

    #[test]
    fn hostile_text_never_reaches_the_terminal_raw() {
        let entry = EntryDraft::new(
            EntryKind::Observation,
            Priority::High,
            "see \u{1b}]8;;http://evil\u{7}this\u{202e}\nforged line",
        );
        let entry = JournalEntry { seq: 3, phase: Phase::Trace, round: 2, at: Timestamp::UNIX_EPOCH, entry };
        assert_eq!(
            shown(&Event::Journaled { entry }),
            "  journal       #3 observation: see ⟨U+001B⟩]8;;http://evil⟨U+0007⟩this⟨U+202E⟩ forged line"
        );
    }
}
