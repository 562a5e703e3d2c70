//! Turns the end of a task into events: its calls, its Journal entries and its answer.

use std::collections::BTreeSet;

use casebook_protocol::{
    Acts, Answer, Checked, CheckedFinding, Conclusion, Domain, EntryDraft, Event, Files, Finding, FindingDraft,
    FindingId, FindingKind, Guard, JournalEntry, MAX_ACTS, MAX_FILES, MAX_NOTES, Outcome, Phase, Plan, Player,
    Question, ReviewDraft, Rule, Ruling, TaskId, TaskKind, TimelineDraft, Timestamp, Usage, Verdict, one_line,
};
use casebook_trust::Exhibits;
use casebook_trust::name::{Things, named};
use casebook_trust::rule::{self, Docket};

use super::{DEFAULT_QUESTION, MAX_FINDINGS, address, visibility};
use crate::lead;
use crate::state::{State, TaskState};

const MAX_LIMITS: usize = 8;

pub(super) fn outcome(
    state: &State,
    task: &TaskState,
    outcome: &Outcome,
    sha256: &str,
    exhibits: &Exhibits,
    now: Timestamp,
) -> Vec<Event> {
    let id = &outcome.task;
    let mut seen = BTreeSet::new();
    // A call with the id of another task's call would block the recording of that call.
    let own = outcome.calls.iter().filter(|call| call.id.is_of(id));
    let fresh = own.filter(|call| !state.calls.contains_key(&call.id) && seen.insert(&call.id));
    let mut events: Vec<Event> =
        fresh.map(|call| Event::CallRecorded { task: id.clone(), call: call.clone() }).collect();
    let own = outcome.asked.iter().filter(|call| call.id.is_of(id));
    let fresh = own.filter(|call| !state.asked.contains_key(&call.id));
    events.extend(fresh.map(|call| Event::ModelCalled { task: id.clone(), call: call.clone() }));
    let failed = |reason: &str| {
        let failure_of = Failure { reason, usage: outcome.usage, by: Some((&outcome.player, sha256)) };
        split(failure(state, task, id, failure_of))
    };
    let (end, follow) = match &outcome.result {
        Ok(answer) if answer.kind() == task.kind => {
            let answered = Event::TaskAnswered {
                task: id.clone(),
                player: outcome.player.clone(),
                usage: outcome.usage,
                outcome: Some(sha256.to_owned()),
                corrected: outcome.corrected,
                // A worker sends them, so their length is checked.
                limits: outcome.limits.iter().take(MAX_LIMITS).map(|limit| one_line(limit, 120)).collect(),
            };
            (answered, accept(state, task, answer, outcome, exhibits))
        }
        // Not a rejection: the outcome is recorded, so the task would stay open.
        Ok(answer) => failed(&format!("expected a {} as the answer, got a {}", task.kind.name(), answer.kind().name())),
        Err(reason) => failed(reason),
    };
    let unanswered = matches!(end, Event::TaskFailed { .. });
    events.push(end);
    if let (TaskKind::Investigate, Some(domain), Some(acts)) = (task.kind, &task.domain, &outcome.acts)
        && !state.listed.values().any(|listed| listed == acts)
    {
        events.push(Event::ActsListed { domain: domain.clone(), acts: bounded(acts) });
    }
    if let (TaskKind::Investigate, Some(domain), Some(files)) = (task.kind, &task.domain, &outcome.files)
        && !state.files.values().any(|listed| listed == files)
    {
        events.push(Event::FilesListed { domain: domain.clone(), files: files_within(files) });
    }
    if let (TaskKind::Investigate, Some(domain), true) = (task.kind, &task.domain, unanswered) {
        events.extend(submit(state, task.round, domain, &fresh_of(state, domain, &outcome.raised, exhibits), exhibits));
    }
    if matches!(task.kind, TaskKind::Plan | TaskKind::Decide | TaskKind::Report) {
        events.extend(journal(state, task, &outcome.journal, now));
    }
    events.extend(follow);
    events
}

/// A worker sends the list, so its length is checked.
fn bounded(acts: &Acts) -> Acts {
    let mut acts = acts.clone();
    acts.more += acts.listed.len().saturating_sub(MAX_ACTS) as u64;
    acts.listed.truncate(MAX_ACTS);
    acts
}

fn files_within(files: &Files) -> Files {
    let mut files = files.clone();
    files.more += files.listed.len().saturating_sub(MAX_FILES) as u64;
    files.listed.truncate(MAX_FILES);
    files.notes.truncate(MAX_NOTES);
    files.notes.iter_mut().for_each(|note| note.note = one_line(&note.note, 240));
    files
}

fn split(failure: Vec<Event>) -> (Event, Vec<Event>) {
    let mut events = failure.into_iter();
    let first = events.next().unwrap_or(Event::Stopping { reason: "a task failed".into() });
    (first, events.collect())
}

pub(super) struct Failure<'a> {
    pub(super) reason: &'a str,
    pub(super) usage: Usage,
    /// The player and the hash of the outcome, if the failure is an outcome.
    pub(super) by: Option<(&'a Player, &'a str)>,
}

/// The events of a failure, chosen so that the flow can continue.
pub(super) fn failure(state: &State, task: &TaskState, id: &TaskId, failure: Failure<'_>) -> Vec<Event> {
    let Failure { reason, usage, by } = failure;
    let (player, outcome) = by.map(|(player, outcome)| (player.clone(), outcome.to_owned())).unzip();
    let mut events = vec![Event::TaskFailed { task: id.clone(), reason: reason.to_owned(), usage, player, outcome }];
    let stop =
        |what: &str| Event::Stopping { reason: format!("the Director {what} in round {}: {reason}", task.round) };
    match task.kind {
        TaskKind::Plan if task.phase == Phase::Discovery => {
            let question = Question { text: DEFAULT_QUESTION.into(), to: Vec::new(), follow: Vec::new() };
            events.push(Event::Asked { round: task.round, question, takes_up: Vec::new() });
        }
        TaskKind::Plan if state.stop_reason.is_none() => events.push(stop("asked nothing")),
        TaskKind::Decide if state.stop_reason.is_none() => events.push(stop("did not decide")),
        TaskKind::Report => events.push(no_conclusion(reason)),
        TaskKind::Plan | TaskKind::Decide | TaskKind::Investigate | TaskKind::Review | TaskKind::Timeline => {}
    }
    events
}

/// Concludes inconclusive: a false all-clear is worse than a loud error.
fn no_conclusion(reason: &str) -> Event {
    let conclusion = Conclusion {
        verdict: Verdict::Inconclusive,
        summary: format!(
            "The Director gave no conclusion ({reason}). The findings and the Timeline stand as they were recorded; what they mean is for a person to judge."
        ),
        root_cause: "not determined".into(),
        actions: vec!["Have a person read the findings and judge the alert.".into()],
        open_questions: vec!["What do the findings amount to?".into()],
        findings: Vec::new(),
    };
    let missing = vec![format!("a conclusion of the Director: {reason}")];
    Event::Concluded {
        conclusion,
        ruling: Ruling {
            verdict: Verdict::Inconclusive,
            proposed: Verdict::Inconclusive,
            grounds: Vec::new(),
            missing,
            accounting: None,
        },
    }
}

fn guard(rule: Rule, subject: impl Into<String>, effect: impl Into<String>) -> Event {
    Event::Guarded { guard: Guard { rule, subject: subject.into(), effect: effect.into() } }
}

/// Numbers the Director's entries and drops references to unknown entries and findings.
fn journal(state: &State, task: &TaskState, drafts: &[EntryDraft], now: Timestamp) -> Vec<Event> {
    let known: BTreeSet<&FindingId> = state.findings().map(|f| &f.finding.id).collect();
    let mut events = Vec::new();
    for (draft, seq) in drafts.iter().zip(u32::try_from(state.journal.len()).unwrap_or(u32::MAX).saturating_add(1)..) {
        let mut entry = draft.clone();
        let subject = format!("Journal #{seq}");
        for old in draft.supersedes.iter().filter(|old| **old == 0 || **old >= seq) {
            events.push(guard(
                Rule::UnknownEntry,
                subject.as_str(),
                format!("no earlier entry has the number #{old}: reference dropped"),
            ));
        }
        entry.supersedes.retain(|old| (1..seq).contains(old));
        for id in draft.citations.iter().filter(|id| !known.contains(id)) {
            events.push(guard(
                Rule::UnknownFinding,
                subject.as_str(),
                format!("no finding has the id {id}: reference dropped"),
            ));
        }
        entry.citations.retain(|id| known.contains(id));
        events.push(Event::Journaled {
            entry: JournalEntry { seq, phase: task.phase, round: task.round, at: now, entry },
        });
    }
    events
}

fn accept(state: &State, task: &TaskState, answer: &Answer, outcome: &Outcome, exhibits: &Exhibits) -> Vec<Event> {
    match answer {
        Answer::Plan(Plan { question, takes_up }) => {
            let (question, guards) = address(state, task, question.clone());
            let mut events: Vec<Event> = guards.into_iter().map(|guard| Event::Guarded { guard }).collect();
            let mut takes_up = takes_up.clone();
            takes_up.retain(|id| state.leads.iter().any(|lead| lead.id == *id));
            events.extend(lead::left(state, &takes_up, &outcome.journal));
            events.push(Event::Asked { round: task.round, question, takes_up });
            events
        }
        Answer::Investigate(findings) => match &task.domain {
            // Findings raised by code come first, so that the limit does not drop them.
            Some(domain) => {
                let mut raised = fresh_of(state, domain, &outcome.raised, exhibits);
                raised.retain(|raised| !findings.iter().any(|own| says(state, domain, own, raised, exhibits)));
                submit(state, task.round, domain, &[raised.as_slice(), findings].concat(), exhibits)
            }
            None => Vec::new(),
        },
        Answer::Review(draft) => {
            let mut events = review(state, task, draft);
            events.extend(lead::given(state, task.round, &draft.leads, exhibits));
            events
        }
        Answer::Timeline(draft) => timeline(state, task, draft, outcome.player.built_in),
        Answer::Decide(decision) => vec![Event::Decided { round: task.round, decision: decision.clone() }],
        Answer::Report(conclusion) => conclude(state, conclusion),
    }
}

/// The findings raised by code that no earlier round has for the same records.
fn fresh_of(state: &State, domain: &Domain, raised: &[FindingDraft], exhibits: &Exhibits) -> Vec<FindingDraft> {
    let earlier: Vec<&CheckedFinding> = state.findings().filter(|f| f.finding.domain == *domain).collect();
    let is_new = |draft: &&FindingDraft| {
        let records = visibility::check(state, domain, draft, exhibits).records();
        let same = |f: &&CheckedFinding| f.finding.draft.claim == draft.claim && f.checked.records() == records;
        !earlier.iter().any(same)
    };
    raised.iter().filter(is_new).cloned().collect()
}

/// Whether an Expert's own finding says what code raised: it is valid, cites the same records, and is no weaker.
fn says(state: &State, domain: &Domain, own: &FindingDraft, raised: &FindingDraft, exhibits: &Exhibits) -> bool {
    let instruction = |draft: &FindingDraft| draft.kind == FindingKind::Instruction;
    if own.bearing != raised.bearing || own.weight < raised.weight || instruction(own) != instruction(raised) {
        return false;
    }
    let [own, raised] = [own, raised].map(|draft| visibility::check(state, domain, draft, exhibits));
    let (cited, records) = (own.records(), raised.records());
    own.valid() && !records.is_empty() && records.iter().all(|record| cited.contains(record))
}

fn submit(state: &State, round: u32, domain: &Domain, findings: &[FindingDraft], exhibits: &Exhibits) -> Vec<Event> {
    let mut events = Vec::new();
    if findings.len() > MAX_FINDINGS {
        events.push(guard(
            Rule::TooManyFindings,
            domain.as_str(),
            format!("{} submitted, the first {MAX_FINDINGS} kept", findings.len()),
        ));
    }
    for (draft, n) in findings.iter().take(MAX_FINDINGS).zip(1..) {
        let id = FindingId::of(round, domain, n);
        let (draft, checked, dropped) = visibility::settled(state, domain, draft, exhibits);
        let rows = if checked.valid() { visibility::rows(state, domain, &draft, exhibits) } else { Vec::new() };
        let hashes = exhibits.hashes(&draft, &checked, &rows);
        let why = |why| guard(Rule::TimeNotInEvidence, id.as_str(), format!("{why}: the finding loses its time"));
        events.extend(dropped.map(why));
        let finding = Finding { id: id.clone(), domain: domain.clone(), round, draft };
        let checked = Event::FindingChecked { finding: id, checked, rows, hashes };
        events.extend([Event::FindingSubmitted { finding }, checked]);
    }
    events
}

fn review(state: &State, task: &TaskState, draft: &ReviewDraft) -> Vec<Event> {
    let findings = state.rounds.get(&task.round).map(|r| &r.findings);
    let submitted: Vec<(Finding, Checked)> =
        findings.into_iter().flat_map(|f| f.values()).map(|f| (f.finding.clone(), f.checked.clone())).collect();
    let (review, guards) = rule::review(task.round, draft.clone(), &submitted, &state.known, &state.sources());
    let guards = guards.into_iter().map(|guard| Event::Guarded { guard });
    guards.chain([Event::Reviewed { review }]).collect()
}

/// The built-in analyst makes its narrative of shortened descriptions, which are checked.
fn timeline(state: &State, task: &TaskState, draft: &TimelineDraft, by_code: bool) -> Vec<Event> {
    let version = state.timeline.as_ref().map_or(1, |t| t.version.saturating_add(1));
    let acts = state.acts();
    let alert = state.case.as_ref().map_or_else(String::new, |case| case.alert.body.to_lowercase());
    let ties = rule::Ties { acts: acts.as_ref(), alert: &alert };
    let (mut timeline, mut guards) = rule::timeline(task.round, version, draft.clone(), &state.known, &ties);
    if !by_code {
        guards.extend(rule::narrative(&mut timeline, &state.known));
    }
    let guards = guards.into_iter().map(|guard| Event::Guarded { guard });
    guards.chain([Event::TimelineRewritten { timeline }]).collect()
}

fn conclude(state: &State, proposed: &Conclusion) -> Vec<Event> {
    let mut conclusion = proposed.clone();
    let mut events = Vec::new();
    let mut seen = BTreeSet::new();
    conclusion.findings.retain(|id| match state.known.get(id) {
        Some(finding) if rule::credible(finding) => seen.insert(id.clone()),
        Some(finding) => {
            events.push(guard(
                Rule::UnknownFinding,
                id.as_str(),
                format!("it scores {} or lacks valid evidence: the conclusion cannot rest on it", finding.score),
            ));
            false
        }
        None => {
            events.push(guard(
                Rule::UnknownFinding,
                id.as_str(),
                "no reviewed finding has this id: the conclusion cannot rest on it",
            ));
            false
        }
    });
    let submitted: Vec<&CheckedFinding> = state.findings().collect();
    let (acts, failed) = (state.acts(), failed_tasks(state));
    let docket = Docket {
        known: &state.known,
        submitted: &submitted,
        sources: &state.sources(),
        alert: state.case.as_ref().map_or("", |case| case.alert.body.as_str()),
        acts: acts.as_ref(),
        rows: &state.rows,
        failed: &failed,
        by_code: &by_code(state),
    };
    let (ruling, guards) = rule::verdict(conclusion.verdict, &docket);
    events.extend(guards.into_iter().map(|guard| Event::Guarded { guard }));
    rule::not_accepted(&mut conclusion, &ruling);
    if let Some(case) = &state.case {
        let things = Things::of(&case.alert, conclusion.findings.iter().filter_map(|id| state.known.get(id)));
        conclusion.actions.iter_mut().for_each(|action| *action = named(action, &things));
    }
    events.push(Event::Concluded { conclusion, ruling });
    events
}

/// The tasks that failed: what they would have found is not known.
fn failed_tasks(state: &State) -> Vec<String> {
    let weighs = |kind: TaskKind| matches!(kind, TaskKind::Investigate | TaskKind::Review);
    state.failures().filter(|(_, task, _)| weighs(task.kind)).map(|(id, ..)| id.to_string()).collect()
}

/// The findings of tasks that the built-in analyst played.
fn by_code(state: &State) -> BTreeSet<FindingId> {
    let played = |finding: &Finding| {
        let id = TaskId::of(finding.round, TaskKind::Investigate, Some(&finding.domain));
        state.tasks.get(&id).and_then(|t| t.player.as_ref()).is_some_and(|p| p.built_in)
    };
    state.findings().filter(|f| played(&f.finding)).map(|f| f.finding.id.clone()).collect()
}
