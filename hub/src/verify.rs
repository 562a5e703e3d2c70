//! Verifies an investigation: recomputes the hash chain, the artifacts, the citation checks and the report, and
//! compares them with what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::{
    ArtifactId, CallId, CheckedFinding, Event, InvestigationId, KeptRequest, ModelCall, Recorded, Report, TaskId,
    TaskKind,
};
use casebook_runtime::store::{Foreign, Store, StoreError};
use casebook_trust::Exhibits;
use serde::Serialize;

use crate::archive::REPORT_KEY;
use crate::decide::visibility;
use crate::error::HubError;
use crate::report;
use crate::state::State;

mod results;

/// A Hub records the report shortly after the last event.
const REPORT_PAUSE: Duration = Duration::from_millis(200);
const REPORT_TRIES: u32 = 5;

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Verification {
    pub events: u64,
    /// Artifacts that the log names; each is read and hashed.
    pub artifacts: u64,
    /// Recorded results that were compared with the events that they became.
    pub results: u64,
    /// Outcomes that could not be compared: the log is of an older version and has no hash of them.
    pub unhashed: u64,
    pub findings: u64,
    pub citations: u64,
    /// The last event is `closed`.
    pub closed: bool,
    /// The recorded report was compared; false if none is recorded.
    pub report: bool,
    /// Messages in the log that no Hub wrote. They were skipped and change nothing.
    pub foreign: Vec<String>,
    /// Differences from what was recorded; empty if all is well.
    pub problems: Vec<Problem>,
    /// The report that the log gives, if its chain is intact.
    #[serde(skip)]
    pub built: Option<Box<Report>>,
    /// The hash of each event, in order.
    #[serde(skip)]
    pub chain: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The event, if the problem concerns one.
    pub seq: Option<u64>,
    pub what: String,
}

/// Verifies an investigation. Differences are part of the answer, not an error.
pub async fn verify(store: &dyn Store, investigation: &InvestigationId) -> Result<Verification, HubError> {
    let mut found = Verification::default();
    // Read before the log, because it is recorded after the log is complete. Otherwise an investigation that
    // closes now would be compared with an older log.
    let mut report = found.row(store, investigation, None, REPORT_KEY).await?;
    let log = match store.log(investigation, 1).await {
        Ok(log) if log.is_empty() => return Err(HubError::Unknown(investigation.clone())),
        Ok(log) => log,
        Err(StoreError::Corrupt { what, reason }) => {
            found.problem(None, format!("{what} cannot be read: {reason}"));
            return Ok(found);
        }
        Err(error) => return Err(error.into()),
    };
    found.events = log.len() as u64;
    found.chain = log.iter().map(|entry| entry.hash.clone()).collect();
    found.closed = log.last().is_some_and(|entry| matches!(entry.event, Event::Closed {}));
    if found.closed && report.is_none() && found.problems.is_empty() {
        report = soon(store, investigation).await?;
    }
    let skipped = store.foreign(investigation);
    let name = |one: &Foreign| format!("message {} is not from a Hub: {}", one.sequence, one.reason);
    found.foreign = skipped.iter().map(name).collect();
    let state = State::replay(&log);
    match Recorded::verify(investigation, &log) {
        Ok(()) => found.built = report::build(&state).map(Box::new),
        Err(error) => found.problem(None, error.to_string()),
    }
    found.ending(&log);
    found.artifacts(store, &log).await?;
    found.results(store, investigation, &log).await?;
    found.findings(store, &state).await?;
    found.report(report, &state);
    Ok(found)
}

/// The report of an investigation whose log was just closed.
async fn soon(store: &dyn Store, investigation: &InvestigationId) -> Result<Option<Vec<u8>>, HubError> {
    for _ in 0..REPORT_TRIES {
        if let Some(report) = store.recorded(investigation, REPORT_KEY).await? {
            return Ok(Some(report));
        }
        tokio::time::sleep(REPORT_PAUSE).await;
    }
    Ok(None)
}

impl Verification {
    fn problem(&mut self, seq: Option<u64>, what: String) {
        self.problems.push(Problem { seq, what });
    }

    /// What is recorded under `key`; if it is damaged, records a problem.
    async fn row(
        &mut self,
        store: &dyn Store,
        investigation: &InvestigationId,
        seq: Option<u64>,
        key: &str,
    ) -> Result<Option<Vec<u8>>, HubError> {
        match store.recorded(investigation, key).await {
            Ok(row) => Ok(row),
            Err(StoreError::Corrupt { what, reason }) => {
                self.problem(seq, format!("{what} cannot be read: {reason}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Nothing follows the event `closed`.
    fn ending(&mut self, log: &[Recorded]) {
        let mut after = log.iter().skip_while(|entry| !matches!(entry.event, Event::Closed {})).skip(1);
        if let Some(entry) = after.next() {
            self.problem(Some(entry.seq), "it follows the event that closed the investigation".into());
        }
    }

    /// The bytes of an artifact; if they are missing or damaged, records a problem.
    async fn artifact(
        &mut self,
        store: &dyn Store,
        seq: Option<u64>,
        id: &ArtifactId,
    ) -> Result<Option<Vec<u8>>, HubError> {
        match store.get(id).await {
            Ok(Some(bytes)) => return Ok(Some(bytes)),
            Ok(None) => self.problem(seq, format!("artifact {id} is named in the log and not in the store")),
            Err(StoreError::Corrupt { what, reason }) => self.problem(seq, format!("{what}: {reason}")),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    async fn artifacts(&mut self, store: &dyn Store, log: &[Recorded]) -> Result<(), HubError> {
        let mut seen = BTreeSet::new();
        for entry in log {
            for id in named(&entry.event) {
                if seen.insert(id) && self.artifact(store, Some(entry.seq), id).await?.is_some() {
                    self.artifacts += 1;
                }
            }
        }
        Ok(())
    }

    /// Checks every finding again, with the results of one task in memory at a time.
    async fn findings(&mut self, store: &dyn Store, state: &State) -> Result<(), HubError> {
        let mut by_task: BTreeMap<_, Vec<&CheckedFinding>> = BTreeMap::new();
        for finding in state.findings() {
            by_task.entry((finding.finding.round, &finding.finding.domain)).or_default().push(finding);
        }
        for findings in by_task.into_values() {
            let exhibits = exhibits(store, state, &findings).await?;
            for CheckedFinding { finding, checked } in findings {
                self.findings += 1;
                self.citations += finding.draft.citations.len() as u64;
                let again = visibility::check(state, &finding.domain, &finding.draft, &exhibits);
                if again != *checked {
                    self.problem(
                        None,
                        format!("finding {} was recorded as {checked:?} and is now {again:?}", finding.id),
                    );
                    continue;
                }
                let rows = state.rows.get(&finding.id).map_or(&[][..], Vec::as_slice);
                let hashes = exhibits.hashes(&finding.draft, &again, rows);
                if state.hashes.get(&finding.id).is_some_and(|recorded| *recorded != hashes) {
                    self.problem(None, format!("the records that {} cites are not those in the log", finding.id));
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, recorded: Option<Vec<u8>>, state: &State) {
        let Some(bytes) = recorded else {
            if self.closed {
                let why = "it was removed, or the Hub ended before it recorded it (then `casebook resume`, or a Hub of the team, records it)";
                self.problem(None, format!("the investigation is closed and its report is not in the store: {why}"));
            }
            return;
        };
        self.report = true;
        if !self.closed {
            self.problem(None, "a report is recorded, but the log is not closed: its last events were removed".into());
        }
        match serde_json::from_slice::<Report>(&bytes) {
            Ok(recorded) if report::build(state).is_some_and(|built| report::same(&recorded, &built)) => {}
            Ok(_) => self.problem(None, "the recorded report is not what the log gives".into()),
            Err(error) => self.problem(None, format!("the recorded report cannot be read: {error}")),
        }
    }
}

/// The artifacts that an event names.
fn named(event: &Event) -> Vec<&ArtifactId> {
    match event {
        Event::TaskRequested { view, .. } => vec![view],
        Event::CallRecorded { call, .. } => vec![&call.result],
        Event::ModelCalled { call: ModelCall { reply, kept, .. }, .. } => {
            reply.iter().chain(kept.iter().flat_map(KeptRequest::artifacts)).collect()
        }
        _ => Vec::new(),
    }
}

/// The cited calls of the findings' own task with their results. Unreadable results were reported before.
async fn exhibits(store: &dyn Store, state: &State, findings: &[&CheckedFinding]) -> Result<Exhibits, HubError> {
    let mut exhibits = Exhibits::default();
    let Some(first) = findings.first().map(|f| &f.finding) else { return Ok(exhibits) };
    let (own, domain) = (TaskId::of(first.round, TaskKind::Investigate, Some(&first.domain)), Some(&first.domain));
    let citations = findings.iter().flat_map(|f| &f.finding.draft.citations);
    let ids: BTreeSet<&CallId> = citations.flat_map(|c| std::iter::once(c.call()).chain(c.again())).collect();
    for made in ids.into_iter().filter_map(|id| state.calls.get(id)).filter(|made| made.task == own) {
        let call = &made.call;
        match store.get(&call.result).await {
            Ok(Some(bytes)) => exhibits.add(call.clone(), state.repeatable(domain, &call.tool), &bytes),
            Ok(None) | Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exhibits)
}

#[cfg(test)]
mod tests;
