//! The state of an investigation: nothing but the fold of its log (design, section 5).
//!
//! Experts work in parallel and end in any order. Whatever is kept here is kept by what it is (round,
//! domain, number), never by when it came, so that the report does not depend on that order.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::Checked;
use casebook_protocol::{
    Alert, ArtifactId, Budget, CallId, CheckedFinding, Conclusion, Decision, Domain, Event, Finding, FindingId, Guard,
    InvestigationId, JournalEntry, Member, ModelCall, ModelCallId, Phase, Player, Question, Recorded, Review, Reviewed,
    Ruling, SourceInfo, TaskId, TaskKind, Timeline, Timestamp, ToolCall, Usage, between,
};

/// The longest silence between two events that counts as work. A longer one is a process that was not
/// there: the budget of time is counted only while somebody works.
pub const SILENCE: Duration = Duration::from_secs(600);

/// What an investigation is opened with.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub alert: Alert,
    pub budget: Budget,
    pub roster: Vec<Member>,
    /// Where the evidence is; empty when Experts bring their own.
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It was requested, and has not ended.
    Requested,
    Answered,
    /// It ended without one, for this reason.
    Failed(String),
}

/// A task as far as it has come.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    pub kind: TaskKind,
    pub domain: Option<Domain>,
    pub round: u32,
    pub phase: Phase,
    /// Its view, as an artifact.
    pub view: ArtifactId,
    /// How long the investigation had been worked on when it was requested.
    pub requested_after: Duration,
    pub progress: Progress,
    /// Who played it, once it has ended and somebody did.
    pub player: Option<Player>,
    /// What it used, once it has ended.
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub phase: Phase,
    pub question: Option<Question>,
    /// What the Experts found, by domain and number.
    pub findings: BTreeMap<(Domain, usize), CheckedFinding>,
    /// The Critic has reviewed it, or there was nothing to review.
    pub reviewed: bool,
    pub decision: Option<Decision>,
}

/// A call with the task that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Made<C> {
    pub task: TaskId,
    pub call: C,
}

/// A guard with the task whose proposal it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    /// Round, kind and domain of the task: what guards are sorted by.
    pub by: (u32, Option<TaskKind>, Option<Domain>),
    pub guard: Guard,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Its id, once there is an event.
    pub investigation: Option<InvestigationId>,
    /// What it was opened with; none before that.
    pub case: Option<Case>,
    pub opened: Option<Timestamp>,
    pub closed: Option<Timestamp>,
    pub phase: Phase,
    /// The round that it is in, over all phases; 0 before the first.
    pub round: u32,
    pub rounds: BTreeMap<u32, Round>,
    pub tasks: BTreeMap<TaskId, TaskState>,
    pub calls: BTreeMap<CallId, Box<Made<ToolCall>>>,
    pub asked: BTreeMap<ModelCallId, Box<Made<ModelCall>>>,
    /// Domains whose last Expert is gone, with the reason.
    pub gone: BTreeMap<Domain, String>,
    pub journal: Vec<JournalEntry>,
    pub review: Option<Review>,
    /// Every finding reviewed so far, with its latest score.
    pub known: BTreeMap<FindingId, Reviewed>,
    pub timeline: Option<Timeline>,
    /// What the rules did, in the order of the log.
    pub guards: Vec<Guarded>,
    pub usage: Usage,
    /// The limits that the Director was warned of.
    pub warned: BTreeSet<String>,
    /// Why it goes to `conclude` for another reason than the Director's decision.
    pub stop_reason: Option<String>,
    /// How long it had been worked on when that was decided.
    pub stopped_after: Duration,
    /// The conclusion and the ruling on it.
    pub conclusion: Option<(Conclusion, Ruling)>,
    /// Sequence number and hash of the last event.
    pub last: Option<(u64, String)>,
    pub last_at: Option<Timestamp>,
    /// How long it has been worked on, silences over [`SILENCE`] cut to that.
    pub worked: Duration,
    /// The task that ended last: what a guard that follows belongs to.
    ended: Option<TaskId>,
}

impl State {
    /// The state after a whole log.
    #[must_use]
    pub fn replay(log: &[Recorded]) -> Self {
        log.iter().fold(Self::default(), |mut state, entry| {
            state.apply(entry);
            state
        })
    }

    /// Takes in the next event of the log.
    pub fn apply(&mut self, entry: &Recorded) {
        self.worked = self.worked_until(entry.at);
        self.investigation.get_or_insert_with(|| entry.investigation.clone());
        self.last = Some((entry.seq, entry.hash.clone()));
        self.last_at = Some(entry.at);
        match &entry.event {
            Event::Opened { alert, budget, roster, evidence } => {
                let (alert, roster, evidence) = (alert.clone(), roster.clone(), evidence.clone());
                self.case = Some(Case { alert, budget: *budget, roster, evidence });
                self.opened = Some(entry.at);
            }
            Event::RoundStarted { phase, round } => self.started(*phase, *round),
            Event::TaskRequested { task, kind, domain, view } => self.requested(task, *kind, domain.as_ref(), view),
            Event::CallRecorded { task, call } => made(&mut self.calls, &call.id, task, call),
            Event::ModelCalled { task, call } => made(&mut self.asked, &call.id, task, call),
            Event::TaskAnswered { task, player, usage } => self.ended(task, Progress::Answered, Some(player), usage),
            Event::TaskFailed { task, reason, usage, player } => {
                self.ended(task, Progress::Failed(reason.clone()), player.as_ref(), usage)
            }
            Event::Journaled { entry } => self.journal.push(entry.clone()),
            Event::Asked { round, question } => self.in_round(*round, |r| r.question = Some(question.clone())),
            Event::FindingSubmitted { finding } => self.submitted(finding),
            Event::FindingChecked { finding, checked } => self.checked(finding, checked),
            Event::Guarded { guard } => self.guarded(guard),
            Event::Reviewed { review } => {
                self.in_round(review.round, |r| r.reviewed = true);
                self.known.extend(review.findings.iter().map(|f| (f.finding.id.clone(), f.clone())));
                self.review = Some(review.clone());
            }
            Event::TimelineRewritten { timeline } => self.timeline = Some(timeline.clone()),
            Event::Decided { round, decision } => self.in_round(*round, |r| r.decision = Some(decision.clone())),
            Event::BudgetNear { limit } => drop(self.warned.insert(limit_name(limit).to_owned())),
            Event::Attendance { domain, gone: Some(reason) } => drop(self.gone.insert(domain.clone(), reason.clone())),
            Event::Attendance { domain, gone: None } => drop(self.gone.remove(domain)),
            Event::Stopping { reason } => {
                self.stop_reason.get_or_insert_with(|| reason.clone());
                self.stopped_after = self.worked;
            }
            Event::Concluded { conclusion, ruling } => self.conclusion = Some((conclusion.clone(), ruling.clone())),
            Event::Closed {} => self.closed = Some(entry.at),
        }
    }

    fn started(&mut self, phase: Phase, round: u32) {
        (self.phase, self.round) = (phase, round);
        let fresh = Round { phase, question: None, findings: BTreeMap::new(), reviewed: false, decision: None };
        self.rounds.insert(round, fresh);
    }

    fn in_round(&mut self, round: u32, change: impl FnOnce(&mut Round)) {
        if let Some(round) = self.rounds.get_mut(&round) {
            change(round);
        }
    }

    fn requested(&mut self, task: &TaskId, kind: TaskKind, domain: Option<&Domain>, view: &ArtifactId) {
        let fresh = TaskState {
            kind,
            domain: domain.cloned(),
            round: self.round,
            phase: self.phase,
            view: view.clone(),
            requested_after: self.worked,
            progress: Progress::Requested,
            player: None,
            usage: Usage::default(),
        };
        self.tasks.insert(task.clone(), fresh);
    }

    fn ended(&mut self, task: &TaskId, progress: Progress, player: Option<&Player>, usage: &Usage) {
        if let Some(state) = self.tasks.get_mut(task) {
            state.progress = progress;
            state.player = player.cloned();
            state.usage = *usage;
        }
        self.usage += *usage;
        self.ended = Some(task.clone());
    }

    fn submitted(&mut self, finding: &Finding) {
        let place = (finding.domain.clone(), number(&finding.id));
        let unchecked = Checked { citations: Vec::new(), faults: Vec::new() };
        self.in_round(finding.round, |r| {
            r.findings.insert(place, CheckedFinding { finding: finding.clone(), checked: unchecked });
        });
    }

    fn checked(&mut self, id: &FindingId, checked: &Checked) {
        let mut latest_first = self.rounds.values_mut().rev().flat_map(|r| r.findings.values_mut());
        if let Some(found) = latest_first.find(|f| f.finding.id == *id) {
            found.checked = checked.clone();
        }
    }

    fn guarded(&mut self, guard: &Guard) {
        let task = self.ended.as_ref().and_then(|id| self.tasks.get(id));
        let by = task.map_or((self.round, None, None), |t| (t.round, Some(t.kind), t.domain.clone()));
        self.guards.push(Guarded { by, guard: guard.clone() });
    }

    /// How long it will have been worked on at `now`, if it is worked on now.
    pub fn worked_until(&self, now: Timestamp) -> Duration {
        let silence = self.last_at.map_or(Duration::ZERO, |last| between(last, now));
        self.worked + silence.min(SILENCE)
    }

    pub fn this_round(&self) -> Option<&Round> {
        self.rounds.get(&self.round)
    }

    /// The Review of the round that it is in.
    pub fn this_review(&self) -> Option<&Review> {
        self.review.as_ref().filter(|review| review.round == self.round)
    }

    /// The tasks that were requested and have not ended, in order of id.
    pub fn in_flight(&self) -> impl Iterator<Item = (&TaskId, &TaskState)> {
        self.tasks.iter().filter(|(_, task)| task.progress == Progress::Requested)
    }

    /// The task of a kind in this round, as far as it has come.
    pub fn task(&self, kind: TaskKind, domain: Option<&Domain>) -> Option<&TaskState> {
        self.tasks.get(&TaskId::of(self.round, kind, domain))
    }

    /// The tasks in the order of the investigation: round, kind, domain.
    pub fn tasks_in_order(&self) -> Vec<(&TaskId, &TaskState)> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(_, t)| (t.round, t.kind, t.domain.clone()));
        tasks
    }

    /// Every finding in order of round, domain and number.
    pub fn findings(&self) -> impl Iterator<Item = &CheckedFinding> {
        self.rounds.values().flat_map(|r| r.findings.values())
    }

    /// The Experts; none before it is opened.
    pub fn roster(&self) -> &[Member] {
        self.case.as_ref().map_or(&[], |case| &case.roster)
    }

    pub fn member(&self, domain: &Domain) -> Option<&Member> {
        self.roster().iter().find(|m| m.domain == *domain)
    }

    /// Every source on the roster, by its id in tool results.
    pub fn sources(&self) -> BTreeMap<String, SourceInfo> {
        let all = self.roster().iter().flat_map(|m| &m.sources);
        all.map(|source| (source.source.clone(), source.clone())).collect()
    }

    /// The same call of this tool on unchanged evidence gives the same answer.
    pub fn repeatable(&self, domain: Option<&Domain>, tool: &str) -> bool {
        let member = domain.and_then(|d| self.member(d));
        member.is_some_and(|m| m.toolset.tools.iter().any(|t| t.name == tool && t.repeatable))
    }

    /// What a task that goes on has used, as far as its steps are on record.
    pub fn spent(&self, task: &TaskId) -> Usage {
        let mut usage = Usage::default();
        for made in self.calls.values().filter(|made| made.task == *task) {
            usage += Usage { tool_calls: 1, result_bytes: made.call.bytes, ..Usage::default() };
        }
        self.asked.values().filter(|made| made.task == *task).for_each(|made| usage += made.call.usage);
        usage
    }

    /// Sequence number of the last event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.last.as_ref().map_or(0, |(seq, _)| *seq)
    }
}

/// Notes a call of `task`, if it is not known.
fn made<I: Ord + Clone, C: Clone>(calls: &mut BTreeMap<I, Box<Made<C>>>, id: &I, task: &TaskId, call: &C) {
    calls.entry(id.clone()).or_insert_with(|| Box::new(Made { task: task.clone(), call: call.clone() }));
}

/// The number of a finding within its task, from 1: ids end in it.
fn number(id: &FindingId) -> usize {
    id.as_str().rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The limit that a warning such as `tokens: 8 of 10` is about.
pub fn limit_name(warning: &str) -> &str {
    warning.split(':').next().unwrap_or(warning)
}
