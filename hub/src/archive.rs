//! Reads recorded investigations for lists, exports and checks. Works without a running Hub.

use casebook_protocol::{AlertId, ChainError, InvestigationId, Phase, Recorded, Report, Severity, Timestamp, Verdict};
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_trust::Backing;

use crate::error::HubError;
use crate::parts::in_parts;
use crate::report;
use crate::state::State;

pub const REPORT_KEY: &str = "report";

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    pub investigation: InvestigationId,
    pub alert: Option<AlertId>,
    pub title: String,
    pub severity: Option<Severity>,
    pub evidence: String,
    pub opened: Option<Timestamp>,
    pub closed: Option<Timestamp>,
    pub phase: Phase,
    pub round: u32,
    pub verdict: Option<Verdict>,
    pub trouble: Option<String>,
}

/// The verified log of an investigation; empty if it is unknown.
pub async fn log(store: &dyn Store, investigation: &InvestigationId) -> Result<Vec<Recorded>, HubError> {
    let log = store.log(investigation, 1).await?;
    verified(investigation, &log)
        .map_err(|reason| HubError::Broken { investigation: investigation.clone(), reason })?;
    Ok(log)
}

/// Like [`Recorded::verify`], on all cores. The first fault is returned.
fn verified(investigation: &InvestigationId, log: &[Recorded]) -> Result<(), ChainError> {
    let last = |first: usize| first.checked_sub(1).and_then(|before| log.get(before));
    let checked = in_parts(log, |first, part| Recorded::verify_after(investigation, last(first), part));
    checked.into_iter().collect()
}

/// The state of an investigation; empty if it is unknown.
pub async fn replay(store: &dyn Store, investigation: &InvestigationId) -> Result<State, HubError> {
    Ok(State::replay(&log(store, investigation).await?))
}

/// The state of an investigation, or [`HubError::Unknown`].
pub async fn state(store: &dyn Store, investigation: &InvestigationId) -> Result<State, HubError> {
    let state = replay(store, investigation).await?;
    if state.case.is_none() {
        return Err(HubError::Unknown(investigation.clone()));
    }
    Ok(state)
}

#[derive(Debug, Clone)]
pub struct Past {
    pub log: Vec<Recorded>,
    pub state: State,
    /// Covers what is recorded so far if the investigation is not closed.
    pub report: Report,
}

pub async fn read(store: &dyn Store, investigation: &InvestigationId) -> Result<Past, HubError> {
    let log = log(store, investigation).await?;
    let state = State::replay(&log);
    let report = report::build(&state).ok_or_else(|| HubError::Unknown(investigation.clone()))?;
    Ok(Past { log, state, report })
}

pub async fn report(store: &dyn Store, investigation: &InvestigationId) -> Result<Report, HubError> {
    Ok(read(store, investigation).await?.report)
}

/// Reads the results that `backing` needs. One that is gone or damaged is left out:
/// [`verify`](crate::verify) reports it.
pub async fn backed(store: &dyn Store, report: &Report, mut backing: Backing) -> Result<Backing, HubError> {
    for call in &report.calls {
        if !backing.needs(call) {
            continue;
        }
        match store.get(&call.result).await {
            Ok(Some(bytes)) => backing.add(call, &bytes),
            Ok(None) | Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(backing)
}

/// Records the report of a closed investigation, so that [`verify`](crate::verify) can compare the log with it.
pub async fn keep(store: &dyn Store, report: &Report) -> Result<Once, HubError> {
    let unwritable = |e: serde_json::Error| StoreError::Corrupt {
        what: format!("the report of {}", report.investigation),
        reason: e.to_string(),
    };
    let json = serde_json::to_vec(report).map_err(unwritable)?;
    Ok(store.record_once(&report.investigation, REPORT_KEY, &json).await?)
}

/// Every investigation, newest first. One that cannot be read has its error in `trouble`.
pub async fn summaries(store: &dyn Store) -> Result<Vec<Summary>, HubError> {
    let mut all = Vec::new();
    for id in store.investigations().await? {
        all.push(match state(store, &id).await {
            Ok(state) => summary(id, &state, None),
            Err(error) => summary(id, &State::default(), Some(error.to_string())),
        });
    }
    all.sort_by(|a, b| (b.opened, &a.investigation).cmp(&(a.opened, &b.investigation)));
    Ok(all)
}

fn summary(investigation: InvestigationId, state: &State, trouble: Option<String>) -> Summary {
    let case = state.case.as_ref();
    Summary {
        investigation,
        alert: case.map(|c| c.alert.id.clone()),
        title: case.map(|c| c.alert.title.clone()).unwrap_or_default(),
        severity: case.map(|c| c.alert.severity),
        evidence: case.map(|c| c.evidence.clone()).unwrap_or_default(),
        opened: state.opened,
        closed: state.closed,
        phase: state.phase,
        round: state.round,
        verdict: state.conclusion.as_ref().map(|(_, ruling)| ruling.verdict),
        trouble,
    }
}

#[cfg(test)]
mod tests {
    use casebook_protocol::Event;

    use super::*;

    #[test]
    fn the_first_fault_of_a_long_log_is_found_wherever_it_is() {
        let id = InvestigationId::new("long").unwrap();
        let mut log: Vec<Recorded> = Vec::new();
        for n in 0..5_000 {
            let event = Event::Stopping { reason: format!("reason {n}") };
            log.push(Recorded::next(&id, log.last(), Timestamp::from_second(n).unwrap(), event));
        }
        assert_eq!(verified(&id, &log), Ok(()));
        for place in (0..5_000).step_by(313).chain([1_023, 1_024, 1_025, 2_499, 2_500, 4_999]) {
            let mut other = log.clone();
            other[place].event = Event::Stopping { reason: "another".into() };
            assert_eq!(verified(&id, &other), Err(ChainError::Content { seq: place as u64 + 1 }));
            other.remove(place);
            let next = log.get(place + 1).map(|next| next.seq);
            let gap = next.map(|found| ChainError::Sequence { expected: place as u64 + 1, found });
            assert_eq!(verified(&id, &other), gap.map_or(Ok(()), Err));
        }
    }
}
