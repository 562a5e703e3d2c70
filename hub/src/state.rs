//! The state of an investigation: the fold of its log.
//!
//! Experts end in any order. Everything here is keyed by round, domain and number, so that the report does not
//! depend on the order of arrival.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::{
    Accounting, Acts, Alert, ArtifactId, Budget, CallId, Checked, CheckedFinding, Conclusion, Decision, Domain, Event,
    Files, FindingId, Guard, InvestigationId, JournalEntry, Lead, LeadId, Member, ModelCall, ModelCallId, Phase,
    Player, Question, RecordHash, RecordRef, Recorded, Review, Reviewed, Ruling, Snapshot, SourceCoverage, SourceInfo,
    SourceNote, TaskId, TaskKind, Timeline, Timestamp, ToolCall, Usage, between,
};

/// The longest pause between two events that counts as working time. In a longer pause no process was running,
/// and the time budget does not count it.
pub const SILENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub alert: Alert,
    pub budget: Budget,
    pub roster: Vec<Member>,
    /// Where the evidence is; empty if the Experts have their own.
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Requested,
    Answered,
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    pub kind: TaskKind,
    pub domain: Option<Domain>,
    pub round: u32,
    pub phase: Phase,
    pub view: ArtifactId,
    /// The working time of the investigation at the request.
    pub requested_after: Duration,
    pub progress: Progress,
    /// Set at the end of the task, if it had a player.
    pub player: Option<Player>,
    /// The findings that its Expert corrected after code returned them.
    pub corrected: u32,
    pub usage: Usage,
    /// The limits that an Expert reached.
    pub limits: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    pub phase: Phase,
    pub question: Option<Question>,
    /// The leads that the question takes up.
    pub takes_up: Vec<LeadId>,
    pub findings: BTreeMap<(Domain, usize), CheckedFinding>,
    /// Also true for an empty Review.
    pub reviewed: bool,
    pub decision: Option<Decision>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Made<C> {
    pub task: TaskId,
    pub call: C,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    /// Round, kind and domain of the task, as the sort key.
    pub by: (u32, Option<TaskKind>, Option<Domain>),
    pub guard: Guard,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// `None` before the first event.
    pub investigation: Option<InvestigationId>,
    /// `None` before the opening.
    pub case: Option<Case>,
    pub opened: Option<Timestamp>,
    pub closed: Option<Timestamp>,
    pub phase: Phase,
    /// Counts over all phases; 0 before the first.
    pub round: u32,
    pub rounds: BTreeMap<u32, Round>,
    pub tasks: BTreeMap<TaskId, TaskState>,
    pub calls: BTreeMap<CallId, Box<Made<ToolCall>>>,
    pub asked: BTreeMap<ModelCallId, Box<Made<ModelCall>>>,
    /// The reason for each domain without an Expert.
    pub gone: BTreeMap<Domain, String>,
    pub journal: Vec<JournalEntry>,
    pub review: Option<Review>,
    /// The acts that the evidence of each Expert shows.
    pub listed: BTreeMap<Domain, Acts>,
    /// The records of the queries whose number a finding cites.
    pub rows: BTreeMap<FindingId, Vec<RecordRef>>,
    /// The records that each finding cites.
    pub hashes: BTreeMap<FindingId, Vec<RecordHash>>,
    /// The evidence files that each Expert read.
    pub files: BTreeMap<Domain, Files>,
    pub snapshots: BTreeSet<Snapshot>,
    /// Every reviewed finding with its latest score.
    pub known: BTreeMap<FindingId, Reviewed>,
    /// In order of round.
    pub leads: Vec<Lead>,
    pub timeline: Option<Timeline>,
    pub guards: Vec<Guarded>,
    pub usage: Usage,
    pub warned: BTreeSet<String>,
    /// Why no Expert could examine anything. It pauses until the next round.
    pub not_investigated: Option<String>,
    /// The rounds that ended so. Neither the budget nor the verdict counts them.
    pub idle_rounds: BTreeSet<u32>,
    /// Why it has to conclude, if the Director did not decide so.
    pub stop_reason: Option<String>,
    /// The working time when that was decided.
    pub stopped_after: Duration,
    pub conclusion: Option<(Conclusion, Ruling)>,
    pub last: Option<(u64, String)>,
    pub last_at: Option<Timestamp>,
    /// Working time; pauses count for at most [`SILENCE`].
    pub worked: Duration,
    /// The task that ended last: later guards belong to it.
    ended: Option<TaskId>,
}

impl State {
    #[must_use]
    pub fn replay(log: &[Recorded]) -> Self {
        log.iter().fold(Self::default(), |mut state, entry| {
            state.apply(entry);
            state
        })
    }

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
            Event::RoundStarted { phase, round } => {
                (self.phase, self.round, self.not_investigated) = (*phase, *round, None);
                self.rounds.insert(*round, Round { phase: *phase, ..Round::default() });
            }
            Event::TaskRequested { task, kind, domain, view } => self.requested(task, *kind, domain.as_ref(), view),
            Event::CallRecorded { task, call } => made(&mut self.calls, &call.id, task, call),
            Event::ModelCalled { task, call } => made(&mut self.asked, &call.id, task, call),
            Event::TaskAnswered { task, player, usage, corrected, limits, .. } => {
                self.ended(task, Progress::Answered, Some(player), usage);
                if let Some(state) = self.tasks.get_mut(task) {
                    state.corrected = *corrected;
                    state.limits.clone_from(limits);
                }
            }
            Event::TaskFailed { task, reason, usage, player, .. } => {
                self.ended(task, Progress::Failed(reason.clone()), player.as_ref(), usage)
            }
            Event::Journaled { entry } => self.journal.push(entry.clone()),
            Event::Asked { round, question, takes_up } => self.in_round(*round, |r| {
                r.question = Some(question.clone());
                r.takes_up.clone_from(takes_up);
            }),
            Event::FindingSubmitted { finding } => {
                let place = (finding.domain.clone(), number(&finding.id));
                let unchecked = CheckedFinding { finding: finding.clone(), checked: Checked::default() };
                self.in_round(finding.round, |r| drop(r.findings.insert(place, unchecked)));
            }
            Event::FindingChecked { finding, checked, rows, hashes } => {
                let mut latest_first = self.rounds.values_mut().rev().flat_map(|r| r.findings.values_mut());
                if let Some(found) = latest_first.find(|f| f.finding.id == *finding) {
                    found.checked = checked.clone();
                }
                if !rows.is_empty() {
                    self.rows.insert(finding.clone(), rows.clone());
                }
                if !hashes.is_empty() {
                    self.hashes.insert(finding.clone(), hashes.clone());
                }
            }
            // A list is never taken back: another Expert may not have sent it because it was there.
            Event::ActsListed { domain, acts } => {
                let both = casebook_trust::account::merged([self.listed.get(domain), Some(acts)].into_iter().flatten());
                self.listed.extend(both.map(|both| (domain.clone(), both)));
            }
            Event::FilesListed { domain, files } => {
                let known = self.files.entry(domain.clone()).or_default();
                extend(&mut known.listed, &files.listed);
                extend(&mut known.notes, &files.notes);
                known.more = known.more.max(files.more);
                let fresh = |new: &&Snapshot| self.snapshots.iter().all(|known| known.id != new.id);
                self.snapshots.extend(files.snapshot.as_ref().filter(fresh).cloned());
            }
            Event::Guarded { guard } => {
                let task = self.ended.as_ref().and_then(|id| self.tasks.get(id));
                let by = task.map_or((self.round, None, None), |t| (t.round, Some(t.kind), t.domain.clone()));
                self.guards.push(Guarded { by, guard: guard.clone() });
            }
            Event::Reviewed { review } => {
                self.in_round(review.round, |r| r.reviewed = true);
                self.known.extend(review.findings.iter().map(|f| (f.finding.id.clone(), f.clone())));
                self.review = Some(review.clone());
            }
            Event::LeadsGiven { leads, .. } => self.leads.extend(leads.iter().cloned()),
            Event::TimelineRewritten { timeline } => self.timeline = Some(timeline.clone()),
            Event::Decided { round, decision } => self.in_round(*round, |r| r.decision = Some(decision.clone())),
            Event::BudgetNear { limit } => drop(self.warned.insert(limit_name(limit).to_owned())),
            Event::Attendance { domain, gone: Some(reason) } => drop(self.gone.insert(domain.clone(), reason.clone())),
            Event::Attendance { domain, gone: None } => drop(self.gone.remove(domain)),
            Event::NotInvestigated { reason } => {
                self.not_investigated = Some(reason.clone());
                self.idle_rounds.insert(self.round);
            }
            Event::Stopping { reason } => {
                self.stop_reason.get_or_insert_with(|| reason.clone());
                self.stopped_after = self.worked;
            }
            Event::Concluded { conclusion, ruling } => self.conclusion = Some((conclusion.clone(), ruling.clone())),
            Event::Closed {} => self.closed = Some(entry.at),
        }
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
            corrected: 0,
            usage: Usage::default(),
            limits: Vec::new(),
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

    /// The working time at `now`, if an agent is working now.
    pub fn worked_until(&self, now: Timestamp) -> Duration {
        if self.not_investigated.is_some() {
            return self.worked;
        }
        let silence = self.last_at.map_or(Duration::ZERO, |last| between(last, now));
        self.worked + silence.min(SILENCE)
    }

    pub fn this_round(&self) -> Option<&Round> {
        self.rounds.get(&self.round)
    }

    pub fn this_review(&self) -> Option<&Review> {
        self.review.as_ref().filter(|review| review.round == self.round)
    }

    /// Open tasks, in order of id.
    pub fn in_flight(&self) -> impl Iterator<Item = (&TaskId, &TaskState)> {
        self.tasks.iter().filter(|(_, task)| task.progress == Progress::Requested)
    }

    pub fn task(&self, kind: TaskKind, domain: Option<&Domain>) -> Option<&TaskState> {
        self.tasks.get(&TaskId::of(self.round, kind, domain))
    }

    /// The tasks that failed, and why, in order of round, kind and domain. Those of rounds in which no model answered
    /// were asked again.
    pub fn failures(&self) -> impl Iterator<Item = (&TaskId, &TaskState, &str)> {
        self.tasks_in_order().into_iter().filter_map(|(id, task)| match &task.progress {
            Progress::Failed(why) if !self.idle_rounds.contains(&task.round) => Some((id, task, why.as_str())),
            Progress::Failed(_) | Progress::Requested | Progress::Answered => None,
        })
    }

    /// In order of round, kind and domain.
    pub fn tasks_in_order(&self) -> Vec<(&TaskId, &TaskState)> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(_, t)| (t.round, t.kind, t.domain.clone()));
        tasks
    }

    /// In order of round, domain and number.
    pub fn findings(&self) -> impl Iterator<Item = &CheckedFinding> {
        self.rounds.values().flat_map(|r| r.findings.values())
    }

    /// The Experts; empty before the opening.
    pub fn roster(&self) -> &[Member] {
        self.case.as_ref().map_or(&[], |case| &case.roster)
    }

    pub fn member(&self, domain: &Domain) -> Option<&Member> {
        self.roster().iter().find(|m| m.domain == *domain)
    }

    pub fn sources(&self) -> BTreeMap<String, SourceInfo> {
        let all = self.roster().iter().flat_map(|m| &m.sources);
        all.map(|source| (source.source.clone(), source.clone())).collect()
    }

    /// Of which hosts, kinds and times the sources have records, in order of source.
    pub fn coverage(&self) -> Vec<SourceCoverage> {
        let known = self.sources().into_values().filter(|source| !source.coverage.is_empty());
        known.map(|source| SourceCoverage { source: source.source, hosts: source.coverage }).collect()
    }

    /// The acts that a dismissal must account for; none if no Expert listed any.
    pub fn acts(&self) -> Option<Acts> {
        casebook_trust::account::merged(self.listed.values())
    }

    /// The notes on the sources that these checks rest on, and on records that were not searched, each once, in order.
    pub fn notes<'a>(&self, checks: impl Iterator<Item = &'a Checked>) -> Vec<SourceNote> {
        let sources: BTreeSet<&str> = checks.flat_map(Checked::sources).collect();
        let counts = |note: &&SourceNote| note.blind || sources.contains(note.source.as_str());
        let all = self.files.values().flat_map(|files| &files.notes).filter(counts);
        all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    pub fn accounting(&self) -> Option<Accounting> {
        self.acts().map(|acts| casebook_trust::account::account(&acts, &self.known, &self.rows))
    }

    /// Whether a repeated call of this tool gives the same answer on unchanged evidence.
    pub fn repeatable(&self, domain: Option<&Domain>, tool: &str) -> bool {
        let member = domain.and_then(|d| self.member(d));
        member.is_some_and(|m| m.toolset.tools.iter().any(|t| t.name == tool && t.repeatable))
    }

    /// The recorded usage of a running task.
    pub fn spent(&self, task: &TaskId) -> Usage {
        let mut usage = Usage::default();
        for made in self.calls.values().filter(|made| made.task == *task) {
            let tool_calls = u64::from(!made.call.id.is_again());
            usage += Usage { tool_calls, result_bytes: made.call.bytes, ..Usage::default() };
        }
        self.asked.values().filter(|made| made.task == *task).for_each(|made| usage += made.call.usage);
        usage
    }

    /// 0 before the first event.
    pub fn last_seq(&self) -> u64 {
        self.last.as_ref().map_or(0, |(seq, _)| *seq)
    }
}

fn made<I: Ord + Clone, C: Clone>(calls: &mut BTreeMap<I, Box<Made<C>>>, id: &I, task: &TaskId, call: &C) {
    calls.entry(id.clone()).or_insert_with(|| Box::new(Made { task: task.clone(), call: call.clone() }));
}

/// Adds what is not known yet.
fn extend<T: Clone + PartialEq>(known: &mut Vec<T>, all: &[T]) {
    let fresh: Vec<T> = all.iter().filter(|one| !known.contains(one)).cloned().collect();
    known.extend(fresh);
}

/// The number at the end of a finding's id.
fn number(id: &FindingId) -> usize {
    id.as_str().rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The limits that the Expert of a task reached, if any.
pub fn limits(task: &TaskState) -> Option<String> {
    (!task.limits.is_empty()).then(|| task.limits.join(", "))
}

/// The limit in a warning such as `tokens: 8 of 10`.
pub fn limit_name(warning: &str) -> &str {
    warning.split(':').next().unwrap_or(warning)
}
