//! What a list shows of an investigation.

use casebook_hub::State;
use casebook_index::{Brief, QUIET};
use casebook_protocol::{Alert, InvestigationId, Phase, Score, Severity, Timestamp, Usage, Verdict, between, closed};
use serde::Serialize;

closed! {
    pub enum Standing {
        Broken = "broken";
        NotInvestigated = "not_investigated";
        Quiet = "quiet";
        Running = "running";
        Closed = "closed";
    }
}

impl Standing {
    #[must_use]
    pub fn of(one: &Brief, now: Timestamp) -> Self {
        let silent = one.last.is_some_and(|last| between(last, now) > QUIET);
        match one {
            Brief { trouble: true, .. } => Self::Broken,
            Brief { closed: true, .. } => Self::Closed,
            Brief { idle: true, .. } => Self::NotInvestigated,
            _ if silent => Self::Quiet,
            _ => Self::Running,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub id: InvestigationId,
    pub alert: String,
    pub title: String,
    pub severity: Option<Severity>,
    /// The host that the alert names, if any.
    pub host: Option<String>,
    pub user: Option<String>,
    pub evidence: String,
    pub opened: Option<Timestamp>,
    pub closed: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    /// The last event.
    pub seq: u64,
    pub phase: Phase,
    pub round: u32,
    pub under_way: Vec<String>,
    pub findings: usize,
    /// Coherence of the Timeline; none before the first Timeline.
    pub score: Option<Score>,
    pub verdict: Option<Verdict>,
    pub usage: Usage,
    pub trouble: Option<String>,
    /// Why no Expert could examine anything; it pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_investigated: Option<String>,
}

impl Row {
    #[must_use]
    pub fn of(id: &InvestigationId, state: &State) -> Self {
        let alert = state.case.as_ref().map(|case| &case.alert);
        Self {
            id: id.clone(),
            alert: alert.map(|a| a.id.to_string()).unwrap_or_default(),
            title: alert.map_or_else(|| "without an alert".to_owned(), |a| a.title.clone()),
            severity: alert.map(|a| a.severity),
            host: alert.and_then(Alert::host),
            user: alert.and_then(Alert::user),
            evidence: state.case.as_ref().map(|case| case.evidence.clone()).unwrap_or_default(),
            opened: state.opened,
            closed: state.closed,
            last_at: state.last_at,
            seq: state.last_seq(),
            phase: state.phase,
            round: state.round,
            under_way: state.in_flight().map(|(task, _)| task.to_string()).collect(),
            findings: state.findings().count(),
            score: state.timeline.as_ref().map(|timeline| timeline.score),
            verdict: state.conclusion.as_ref().map(|(_, ruling)| ruling.verdict),
            usage: state.usage,
            trouble: None,
            not_investigated: state.not_investigated.clone(),
        }
    }

    #[must_use]
    pub fn brief(&self) -> Brief {
        Brief {
            opened: self.opened,
            last: self.last_at,
            severity: self.severity,
            verdict: self.final_verdict(),
            closed: self.closed.is_some(),
            idle: self.not_investigated.is_some(),
            trouble: self.trouble.is_some(),
        }
    }

    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        Standing::of(&self.brief(), now)
    }

    /// The verdict of a closed investigation.
    #[must_use]
    pub fn final_verdict(&self) -> Option<Verdict> {
        self.verdict.filter(|_| self.closed.is_some())
    }
}

impl From<casebook_index::Row> for Row {
    fn from(row: casebook_index::Row) -> Self {
        Self {
            alert: row.alert.map(|id| id.to_string()).unwrap_or_default(),
            title: if row.title.is_empty() { "without an alert".to_owned() } else { row.title },
            severity: row.severity,
            host: row.host,
            user: row.user,
            evidence: row.evidence,
            opened: row.opened,
            closed: row.closed,
            last_at: row.last_event,
            seq: row.seq,
            phase: row.phase,
            round: row.round,
            under_way: row.under_way.into_iter().map(|task| task.task.to_string()).collect(),
            findings: usize::try_from(row.tally.findings).unwrap_or(usize::MAX),
            score: row.score,
            verdict: row.verdict,
            usage: row.usage,
            trouble: row.trouble,
            not_investigated: row.not_investigated,
            id: row.investigation,
        }
    }
}
