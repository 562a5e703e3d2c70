//! What a list shows of an investigation: a fold of its events.

use std::collections::BTreeMap;

use casebook_protocol::{
    AlertId, Budget, Coherence, Credibility, Domain, Event, FindingId, InvestigationId, Phase, Player, Recorded, Role,
    Score, Severity, TaskId, TaskKind, Timestamp, Usage, Verdict,
};
use serde::{Deserialize, Serialize};

use crate::alert;
use crate::figures::Figures;

/// A summary is cut after so many characters; the report has all of it.
const SUMMARY: usize = 400;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub investigation: InvestigationId,
    /// None before the opening.
    pub alert: Option<AlertId>,
    pub title: String,
    pub severity: Option<Severity>,
    /// The host and the user that the alert names.
    pub host: Option<String>,
    pub user: Option<String>,
    /// Where the evidence is; empty if the Experts have their own.
    pub evidence: String,
    pub opened: Option<Timestamp>,
    pub last_event: Option<Timestamp>,
    pub closed: Option<Timestamp>,
    pub phase: Phase,
    pub round: u32,
    /// Requested tasks that have not ended.
    pub under_way: Vec<UnderWay>,
    /// The verdict after the rules, and the proposed one.
    pub verdict: Option<Verdict>,
    pub proposed: Option<Verdict>,
    pub summary: String,
    /// The score of the Timeline.
    pub score: Option<Score>,
    pub coherence: Option<Coherence>,
    pub usage: Usage,
    pub budget: Option<Budget>,
    pub tally: Tally,
    pub stop_reason: Option<String>,
    /// Why no Expert could examine anything; it pauses.
    pub not_investigated: Option<String>,
    /// Why the log cannot be relied on. Later events are not folded.
    pub trouble: Option<String>,
    /// The number and the hash of the last event.
    pub seq: u64,
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    pub task: TaskId,
    pub kind: TaskKind,
    pub domain: Option<Domain>,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub tasks: u64,
    pub failed_tasks: u64,
    pub findings: u64,
    pub journal: u64,
    pub guards: u64,
    pub timeline_events: u64,
    pub gaps: u64,
}

/// A row with what only its fold and the insights need.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Folded {
    pub(crate) row: Row,
    pub(crate) rest: Rest,
    /// The text for the search, if the alert was just folded.
    pub(crate) text: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    figures: Figures,
    /// The latest label of each reviewed finding, until the investigation closes.
    labels: BTreeMap<FindingId, (Domain, Credibility)>,
    roles: BTreeMap<TaskId, Role>,
}

impl Folded {
    pub(crate) fn new(investigation: &InvestigationId) -> Self {
        let row = Row {
            investigation: investigation.clone(),
            alert: None,
            title: String::new(),
            severity: None,
            host: None,
            user: None,
            evidence: String::new(),
            opened: None,
            last_event: None,
            closed: None,
            phase: Phase::default(),
            round: 0,
            under_way: Vec::new(),
            verdict: None,
            proposed: None,
            summary: String::new(),
            score: None,
            coherence: None,
            usage: Usage::default(),
            budget: None,
            tally: Tally::default(),
            stop_reason: None,
            not_investigated: None,
            trouble: None,
            seq: 0,
            hash: Recorded::genesis(investigation),
        };
        Self { row, rest: Rest::default(), text: None }
    }

    /// Folds an event that follows the last one. Nothing is folded after an event that does not.
    pub(crate) fn apply(&mut self, entry: &Recorded) {
        if self.row.trouble.is_some() {
            return;
        }
        if let Err(error) = entry.follows(&self.row.investigation, self.row.seq + 1, &self.row.hash) {
            return self.broken(error.to_string());
        }
        (self.row.seq, self.row.last_event) = (entry.seq, Some(entry.at));
        self.row.hash.clone_from(&entry.hash);
        self.fold(entry);
    }

    pub(crate) fn broken(&mut self, why: String) {
        self.row.trouble.get_or_insert(why);
    }

    fn fold(&mut self, entry: &Recorded) {
        let row = &mut self.row;
        match &entry.event {
            Event::Opened { alert, budget, evidence, .. } => {
                (row.alert, row.severity) = (Some(alert.id.clone()), Some(alert.severity));
                (row.host, row.user) = (alert.host(), alert.user());
                row.title.clone_from(&alert.title);
                row.evidence.clone_from(evidence);
                (row.opened, row.budget) = (Some(entry.at), Some(*budget));
                self.text = Some(alert::words(alert));
            }
            Event::RoundStarted { phase, round } => {
                (row.phase, row.round, row.not_investigated) = (*phase, *round, None);
            }
            Event::TaskRequested { task, kind, domain, .. } => {
                row.tally.tasks += 1;
                self.rest.roles.insert(task.clone(), kind.role());
                let under_way = UnderWay { task: task.clone(), kind: *kind, domain: domain.clone(), since: entry.at };
                row.under_way.push(under_way);
            }
            Event::CallRecorded { call, .. } => self.rest.figures.tool_called(call),
            Event::ModelCalled { task, call } => {
                if let Some(role) = self.rest.roles.get(task) {
                    self.rest.figures.model_called(*role, call);
                }
            }
            Event::TaskAnswered { task, usage, player, .. } => self.ended(task, *usage, Some(player)),
            Event::TaskFailed { task, usage, player, .. } => {
                row.tally.failed_tasks += 1;
                self.ended(task, *usage, player.as_ref());
            }
            Event::Journaled { .. } => row.tally.journal += 1,
            Event::FindingSubmitted { finding } => {
                row.tally.findings += 1;
                *self.rest.figures.findings.entry(finding.domain.to_string()).or_default() += 1;
            }
            Event::Guarded { guard } => {
                row.tally.guards += 1;
                *self.rest.figures.rules.entry(guard.rule.name().to_owned()).or_default() += 1;
            }
            Event::Reviewed { review } => {
                let labels = review.findings.iter();
                self.rest.labels.extend(labels.map(|f| (f.finding.id.clone(), (f.finding.domain.clone(), f.label))));
            }
            Event::TimelineRewritten { timeline } => {
                (row.score, row.coherence) = (Some(timeline.score), Some(timeline.label));
                row.tally.timeline_events = timeline.events.len() as u64;
                row.tally.gaps = timeline.gaps.len() as u64;
            }
            Event::NotInvestigated { reason } => row.not_investigated = Some(reason.clone()),
            Event::Stopping { reason } => drop(row.stop_reason.get_or_insert_with(|| reason.clone())),
            Event::Concluded { conclusion, ruling } => {
                (row.verdict, row.proposed) = (Some(ruling.verdict), Some(ruling.proposed));
                for (domain, _) in conclusion.findings.iter().filter_map(|id| self.rest.labels.get(id)) {
                    *self.rest.figures.cited.entry(domain.to_string()).or_default() += 1;
                }
                row.summary = conclusion.summary.chars().take(SUMMARY).collect();
            }
            Event::Closed {} => {
                row.closed = Some(entry.at);
                self.rest.figures.labels = self.rest.labels();
                self.rest.labels.clear();
                self.rest.roles.clear();
            }
            Event::Asked { .. }
            | Event::LeadsGiven { .. }
            | Event::ActsListed { .. }
            | Event::FilesListed { .. }
            | Event::FindingChecked { .. }
            | Event::Decided { .. }
            | Event::BudgetNear { .. }
            | Event::Attendance { .. } => {}
        }
    }

    fn ended(&mut self, task: &TaskId, usage: Usage, player: Option<&Player>) {
        self.row.under_way.retain(|one| one.task != *task);
        self.row.usage += usage;
        if let Some(role) = self.rest.roles.get(task) {
            *self.rest.figures.roles.entry(role.name().to_owned()).or_default() += usage;
        }
        if let Some(player) = player {
            let name = format!("{} {}", player.name, player.version).trim_end().to_owned();
            *self.rest.figures.players.entry(name).or_default() += 1;
        }
    }
}

impl Rest {
    fn labels(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (domain, label) in self.labels.values() {
            *all.entry(domain.to_string()).or_default().entry(label.name().to_owned()).or_default() += 1;
        }
        all
    }

    /// The figures so far.
    pub(crate) fn figures(self) -> Figures {
        let labels = self.labels();
        if labels.is_empty() { self.figures } else { Figures { labels, ..self.figures } }
    }
}
