//! Verifies an investigation: recomputes the hash chain, the artifacts, the citation checks and the report, and
//! compares them with what is stored.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    ArtifactId, CallId, CheckedFinding, Event, InvestigationId, KeptRequest, ModelCall, Recorded, Report, TaskId,
    TaskKind,
};
use casebook_runtime::store::{Foreign, Store, StoreError};
use casebook_trust::Exhibits;

use crate::archive::REPORT_KEY;
use crate::decide::visibility;
use crate::error::HubError;
use crate::report;
use crate::state::State;

#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Verification {
    pub events: u64,
    /// Artifacts that the log names; each is read and hashed.
    pub artifacts: u64,
    pub findings: u64,
    pub citations: u64,
    /// The recorded report was compared; false if none is recorded.
    pub report: bool,
    /// Messages in the log that no Hub wrote. They were skipped and change nothing.
    pub foreign: Vec<String>,
    /// Differences from what was recorded; empty if all is well.
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub seq: Option<u64>,
    pub what: String,
}

/// Verifies an investigation. Differences are part of the answer, not an error.
pub async fn verify(store: &dyn Store, investigation: &InvestigationId) -> Result<Verification, HubError> {
    let mut found = Verification::default();
    // Read before the log, because it is recorded after the log is complete. Otherwise an investigation that
    // closes now would be compared with an older log.
    let report = store.recorded(investigation, REPORT_KEY).await?;
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
    let skipped = store.foreign(investigation);
    let name = |one: &Foreign| format!("message {} is not from a Hub: {}", one.sequence, one.reason);
    found.foreign = skipped.iter().map(name).collect();
    if let Err(error) = Recorded::verify(investigation, &log) {
        found.problem(None, error.to_string());
    }
    let state = State::replay(&log);
    found.artifacts(store, &log).await?;
    found.findings(store, &state).await?;
    found.report(report, &state);
    Ok(found)
}

impl Verification {
    fn problem(&mut self, seq: Option<u64>, what: String) {
        self.problems.push(Problem { seq, what });
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
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, recorded: Option<Vec<u8>>, state: &State) {
        let Some(bytes) = recorded else { return };
        self.report = true;
        match serde_json::from_slice::<Report>(&bytes) {
            Ok(recorded) if Some(&recorded) == report::build(state).as_ref() => {}
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
