//! What a list shows of an investigation.

use casebook_hub::State;
use casebook_protocol::{Alert, InvestigationId, Phase, Recorded, Score, Severity, Timestamp, Usage, Verdict, between};
use serde::Serialize;

use super::alert;

/// Without an event for this many times the usual pause, an investigation is stuck.
const PAUSES: u32 = 10;
const AT_LEAST: std::time::Duration = std::time::Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Damaged,
    Stuck,
    Running,
    Closed,
}

impl Standing {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Stuck => "stuck",
            Self::Running => "running",
            Self::Closed => "closed",
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
    /// The median pause between two events, in milliseconds.
    pub pause_ms: u64,
    pub trouble: Option<String>,
}

impl Row {
    #[must_use]
    pub fn of(id: &InvestigationId, log: &[Recorded], state: &State) -> Self {
        let alert = state.case.as_ref().map(|case| &case.alert);
        let named = |names: &[&str]| alert.and_then(|alert: &Alert| alert::named(alert, names));
        Self {
            id: id.clone(),
            alert: alert.map(|a| a.id.to_string()).unwrap_or_default(),
            title: alert.map_or_else(|| "without an alert".to_owned(), |a| a.title.clone()),
            severity: alert.map(|a| a.severity),
            host: named(alert::HOST),
            user: named(alert::USER),
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
            pause_ms: pause(log),
            trouble: None,
        }
    }

    #[must_use]
    pub fn damaged(id: &InvestigationId, trouble: String) -> Self {
        Self { title: "Not readable".into(), trouble: Some(trouble), ..Self::of(id, &[], &State::default()) }
    }

    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        let usual = std::time::Duration::from_millis(self.pause_ms) * PAUSES;
        let silent = self.last_at.is_some_and(|last| between(last, now) > usual.max(AT_LEAST));
        match (&self.trouble, self.closed) {
            (Some(_), _) => Standing::Damaged,
            (None, Some(_)) => Standing::Closed,
            (None, None) if silent => Standing::Stuck,
            (None, None) => Standing::Running,
        }
    }

    /// The verdict of a closed investigation.
    #[must_use]
    pub fn final_verdict(&self) -> Option<Verdict> {
        self.verdict.filter(|_| self.closed.is_some())
    }
}

fn pause(log: &[Recorded]) -> u64 {
    let ends = log.iter().zip(log.iter().skip(1));
    let mut pauses: Vec<u128> = ends.map(|(a, b)| between(a.at, b.at).as_millis()).collect();
    pauses.sort_unstable();
    let median = pauses.get(pauses.len() / 2).copied().unwrap_or(0);
    u64::try_from(median).unwrap_or(u64::MAX)
}
