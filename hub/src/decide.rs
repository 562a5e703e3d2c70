//! Applies the rules of the investigation: `decide(&State, &Command)` is pure and returns the events to append
//! or a [`Rejection`]. Most rejections are harmless: a notice that came twice.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::{
    ArtifactId, Decision, Domain, Event, Guard, Headroom, ModelCall, Move, Outcome, Phase, Question, Review, Rule,
    TaskId, TaskKind, Timestamp, ToolCall, Usage,
};
use casebook_trust::Exhibits;

use crate::examination;
use crate::state::{Case, Progress, State, TaskState, limit_name};

mod answer;
pub(crate) mod visibility;

/// How long a task may run after the investigation has to stop. Then it counts as failed, so that a lost worker
/// does not block the report.
pub const GRACE: Duration = Duration::from_secs(900);

/// Further findings in one answer are dropped, because each costs the Critic attention.
pub const MAX_FINDINGS: usize = 200;

/// The discovery question if the Director fails to ask one.
pub const DEFAULT_QUESTION: &str = "What do your sources show of the activity in the alert: what came before it, what it did, what followed, and what would explain it?";

#[derive(Debug, Clone)]
pub enum Command {
    Open(Box<Case>),
    StartRound {
        phase: Phase,
        /// One more than the last round.
        round: u32,
    },
    RequestTask {
        kind: TaskKind,
        /// Set only for `investigate`.
        domain: Option<Domain>,
        view: ArtifactId,
    },
    RecordCall {
        task: TaskId,
        call: ToolCall,
    },
    RecordModelCall {
        task: TaskId,
        call: ModelCall,
    },
    RecordOutcome {
        outcome: Box<Outcome>,
        /// SHA-256 of the outcome as stored.
        sha256: String,
        /// The calls that its citations name, with their results.
        exhibits: Exhibits,
        now: Timestamp,
    },
    FailTask {
        task: TaskId,
        reason: String,
        now: Timestamp,
    },
    /// Record which domains have lost their last Expert. Their open tasks count as failed, and they get no new
    /// ones until an Expert returns.
    Attend {
        /// The reason for each domain without an Expert.
        gone: BTreeMap<Domain, String>,
        now: Timestamp,
    },
    /// Record an empty Review: no Expert found anything in this round, so the Critic is not asked. Without it
    /// the Director would take an earlier Review for this round's.
    ReviewNothing,
    /// Conclude as soon as the running tasks have ended.
    Stop {
        reason: String,
    },
    /// Record that no Expert has examined anything.
    Pause,
    /// Ask the Experts again after that.
    GoOn,
    /// Check the time limits.
    Tick {
        now: Timestamp,
    },
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the investigation is already open")]
    AlreadyOpen,
    #[error("the investigation is not open")]
    NotOpen,
    #[error("the investigation is closed")]
    Closed,
    #[error("the roster has no Expert: give at least one source of evidence")]
    NoExperts,
    #[error("the budget is too small: {0}")]
    BudgetTooSmall(String),
    #[error("the roster names the domain {0} twice")]
    DomainTwice(Domain),
    #[error("unexpected step: {0}")]
    OutOfTurn(String),
    #[error("no Expert for {0} on the roster")]
    NotOnRoster(Domain),
    #[error("task {0} is already requested")]
    AlreadyRequested(TaskId),
    #[error("task {0} was never requested")]
    UnknownTask(TaskId),
    #[error("task {0} has already ended")]
    AlreadyAnswered(TaskId),
    #[error("the call is already recorded")]
    AlreadyRecorded,
    #[error("the investigation is already stopping: {0}")]
    AlreadyStopping(String),
}

/// Returns the events that `command` causes.
pub fn decide(state: &State, command: &Command) -> Result<Vec<Event>, Rejection> {
    match (&state.case, command) {
        (None, Command::Open(case)) => return open(case),
        (Some(_), Command::Open(_)) => return Err(Rejection::AlreadyOpen),
        (None, _) => return Err(Rejection::NotOpen),
        (Some(_), _) if state.closed.is_some() => return Err(Rejection::Closed),
        (Some(_), _) => {}
    }
    match command {
        Command::Open(_) => Err(Rejection::AlreadyOpen),
        Command::StartRound { phase, round } => start_round(state, *phase, *round),
        Command::RequestTask { kind, domain, view } => request(state, *kind, domain.as_ref(), view),
        Command::RecordCall { task, call } => {
            under_way(state, task)?;
            if state.calls.contains_key(&call.id) {
                return Err(Rejection::AlreadyRecorded);
            }
            Ok(vec![Event::CallRecorded { task: task.clone(), call: call.clone() }])
        }
        Command::RecordModelCall { task, call } => {
            under_way(state, task)?;
            if state.asked.contains_key(&call.id) {
                return Err(Rejection::AlreadyRecorded);
            }
            Ok(vec![Event::ModelCalled { task: task.clone(), call: call.clone() }])
        }
        Command::RecordOutcome { outcome, sha256, exhibits, now } => {
            let task = under_way(state, &outcome.task)?;
            let events = answer::outcome(state, task, outcome, sha256, exhibits, *now);
            Ok(ended(state, task, &outcome.task, events, &outcome.usage, *now))
        }
        Command::FailTask { task: id, reason, now } => {
            let task = under_way(state, id)?;
            let usage = state.spent(id);
            let failure = answer::Failure { reason, usage, by: None };
            Ok(ended(state, task, id, answer::failure(state, task, id, failure), &usage, *now))
        }
        Command::Attend { gone, now } => Ok(attend(state, gone, *now)),
        Command::ReviewNothing => review_nothing(state),
        Command::Stop { reason } => match &state.stop_reason {
            Some(reason) => Err(Rejection::AlreadyStopping(reason.clone())),
            None if state.phase == Phase::Conclude => Err(Rejection::AlreadyStopping("it concludes".into())),
            None => Ok(vec![Event::Stopping { reason: reason.clone() }]),
        },
        Command::Pause => match examination::missing(state).filter(|_| state.not_investigated.is_none()) {
            Some(reason) => Ok(vec![Event::NotInvestigated { reason }]),
            None => Err(Rejection::OutOfTurn("a pause".into())),
        },
        Command::GoOn if state.not_investigated.is_some() => start_round(state, state.phase, state.round + 1),
        Command::GoOn => Err(Rejection::OutOfTurn("going on".into())),
        Command::Tick { now } => Ok(tick(state, *now)),
        Command::Close if state.conclusion.is_some() && state.in_flight().next().is_none() => {
            Ok(vec![Event::Closed {}])
        }
        Command::Close => Err(Rejection::OutOfTurn("closing".into())),
    }
}

fn open(case: &Case) -> Result<Vec<Event>, Rejection> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = case.roster.iter().find(|m| !seen.insert(&m.domain)) {
        return Err(Rejection::DomainTwice(twice.domain.clone()));
    }
    if case.roster.is_empty() {
        return Err(Rejection::NoExperts);
    }
    if let Some(why) = examination::too_small(&case.budget, &case.roster) {
        return Err(Rejection::BudgetTooSmall(why));
    }
    let Case { alert, budget, roster, evidence } = case.clone();
    Ok(vec![Event::Opened { alert, budget, roster, evidence }])
}

fn start_round(state: &State, phase: Phase, round: u32) -> Result<Vec<Event>, Rejection> {
    let first = state.round == 0 && phase == Phase::Trace;
    if round != state.round + 1
        || phase < state.phase
        || first
        || state.phase == Phase::Conclude
        || state.in_flight().next().is_some()
    {
        return Err(Rejection::OutOfTurn(format!("round {round} of {}", phase.name())));
    }
    Ok(vec![Event::RoundStarted { phase, round }])
}

fn request(state: &State, kind: TaskKind, domain: Option<&Domain>, view: &ArtifactId) -> Result<Vec<Event>, Rejection> {
    let task = TaskId::of(state.round, kind, domain);
    if state.tasks.contains_key(&task) {
        return Err(Rejection::AlreadyRequested(task));
    }
    if state.round == 0
        || domain.is_some() != (kind == TaskKind::Investigate)
        || (kind == TaskKind::Report) != (state.phase == Phase::Conclude)
    {
        return Err(Rejection::OutOfTurn(format!("task {task}")));
    }
    if let Some(domain) = domain.filter(|d| state.member(d).is_none()) {
        return Err(Rejection::NotOnRoster(domain.clone()));
    }
    Ok(vec![Event::TaskRequested { task, kind, domain: domain.cloned(), view: view.clone() }])
}

fn under_way<'a>(state: &'a State, id: &TaskId) -> Result<&'a TaskState, Rejection> {
    let task = state.tasks.get(id).ok_or_else(|| Rejection::UnknownTask(id.clone()))?;
    match task.progress {
        Progress::Requested => Ok(task),
        Progress::Answered | Progress::Failed(_) => Err(Rejection::AlreadyAnswered(id.clone())),
    }
}

fn review_nothing(state: &State) -> Result<Vec<Event>, Rejection> {
    match state.this_round() {
        Some(round)
            if round.question.is_some()
                && round.findings.is_empty()
                && !round.reviewed
                && state.in_flight().next().is_none() =>
        {
            let summary = "No Expert submitted a finding in this round: there is nothing to review.".to_owned();
            Ok(vec![Event::Reviewed { review: Review { round: state.round, summary, findings: Vec::new() } }])
        }
        _ => Err(Rejection::OutOfTurn("an empty Review".into())),
    }
}

/// Adds the budget events to the end of a task. Usage is checked only when no other task is running, so that
/// the events do not depend on which Expert ends first.
fn ended(
    state: &State,
    task: &TaskState,
    id: &TaskId,
    mut events: Vec<Event>,
    usage: &Usage,
    now: Timestamp,
) -> Vec<Event> {
    let alone = state.in_flight().all(|(other, _)| other == id);
    let advances = |decision: &Decision| task.phase == Phase::Trace && decision.next == Move::Advance;
    let leaves = |e: &Event| {
        matches!(e, Event::Stopping { .. }) || matches!(e, Event::Decided { decision, .. } if advances(decision))
    };
    if !alone || task.phase == Phase::Conclude || state.stop_reason.is_some() || events.iter().any(leaves) {
        return events;
    }
    let mut total = state.usage;
    total += *usage;
    let rounds = if task.kind == TaskKind::Decide { task.round } else { task.round.saturating_sub(1) };
    let rounds = rounds.saturating_sub(u32::try_from(state.idle_rounds.len()).unwrap_or(u32::MAX));
    events.extend(weigh(state, &total, rounds, state.worked_until(now).as_secs()));
    events
}

/// `BudgetNear` once for each limit, or `Stopping` if a limit is reached.
fn weigh(state: &State, usage: &Usage, rounds: u32, seconds: u64) -> Vec<Event> {
    let Some(mut budget) = state.case.as_ref().map(|case| case.budget) else { return Vec::new() };
    let mut events = Vec::new();
    if let Headroom::Spent(limit) = budget.headroom(usage, rounds, seconds) {
        return vec![Event::Stopping { reason: format!("the budget is spent: {limit}") }];
    }
    // `headroom` reports only the nearest limit, so a limit that was reported is lifted.
    let mut named = state.warned.clone();
    loop {
        for name in &named {
            match name.as_str() {
                "model calls" => budget.model_calls = u64::MAX,
                "tool calls" => budget.tool_calls = u64::MAX,
                "tokens" => budget.tokens = u64::MAX,
                "cost" => budget.cost_micros = u64::MAX,
                "rounds" => budget.rounds = u32::MAX,
                _ => budget.seconds = u64::MAX,
            }
        }
        let Headroom::Near(limit) = budget.headroom(usage, rounds, seconds) else { return events };
        if !named.insert(limit_name(&limit).to_owned()) {
            return events;
        }
        events.push(Event::BudgetNear { limit });
    }
}

/// Records which Experts left or came back, and fails the tasks of those who left.
fn attend(state: &State, gone: &BTreeMap<Domain, String>, now: Timestamp) -> Vec<Event> {
    let mut events = Vec::new();
    let changed =
        state.roster().iter().map(|m| &m.domain).filter(|d| state.gone.contains_key(*d) != gone.contains_key(*d));
    for domain in changed {
        let reason = gone.get(domain);
        events.push(Event::Attendance { domain: domain.clone(), gone: reason.cloned() });
        let Some(reason) = reason else { continue };
        for (id, task) in state.in_flight().filter(|(_, task)| task.domain.as_ref() == Some(domain)) {
            let usage = state.spent(id);
            let failure = answer::Failure { reason, usage, by: None };
            events.extend(ended(state, task, id, answer::failure(state, task, id, failure), &usage, now));
        }
    }
    events
}

/// Checks the time budget, and fails tasks that exceed [`GRACE`].
fn tick(state: &State, now: Timestamp) -> Vec<Event> {
    let worked = state.worked_until(now);
    let limit = state.case.as_ref().map_or(u64::MAX, |case| case.budget.seconds);
    let spent = worked.as_secs() >= limit;
    if spent && state.stop_reason.is_none() && state.phase != Phase::Conclude {
        return vec![Event::Stopping { reason: format!("the budget is spent: time: {} of {limit}", worked.as_secs()) }];
    }
    if !spent && state.stop_reason.is_none() {
        return Vec::new();
    }
    let overdue = state
        .in_flight()
        .filter(|(_, task)| worked.saturating_sub(task.requested_after.max(state.stopped_after)) >= GRACE);
    let reason = format!("it had not ended {} s after the investigation had to stop", GRACE.as_secs());
    overdue
        .flat_map(|(id, task)| {
            let failure = answer::Failure { reason: &reason, usage: state.spent(id), by: None };
            answer::failure(state, task, id, failure)
        })
        .collect()
}

/// Resolves the recipients: every Expert in discovery, those on the roster in trace.
fn address(state: &State, task: &TaskState, mut question: Question) -> (Question, Vec<Guard>) {
    let mut guards = Vec::new();
    let mut seen = BTreeSet::new();
    let asked = std::mem::take(&mut question.to);
    let named = !asked.is_empty();
    for domain in asked {
        if state.member(&domain).is_none() {
            let effect = format!("no Expert for {domain} on the roster: the question does not go to it");
            guards.push(Guard { rule: Rule::NotOnRoster, subject: domain.to_string(), effect });
        } else if seen.insert(domain.clone()) {
            question.to.push(domain);
        }
    }
    if task.phase == Phase::Discovery && named {
        question.to.clear();
        if seen.len() < state.roster().len() {
            let effect = "in discovery every Expert examines its sources: the question goes to everyone".to_owned();
            guards.push(Guard { rule: Rule::DiscoveryAsksAll, subject: "question".into(), effect });
        }
    } else if named && question.to.is_empty() {
        let effect = "none of the Experts named is on the roster: the question goes to everyone".to_owned();
        guards.push(Guard { rule: Rule::NotOnRoster, subject: "question".into(), effect });
    }
    (question, guards)
}

#[cfg(test)]
mod tests;
