//! The log of one investigation: decides a pass, stores its views, appends its events with the expected last
//! sequence, and publishes them.

use std::sync::Arc;

use casebook_protocol::hash::sha256_hex;
use casebook_protocol::key::outcome_key;
use casebook_protocol::{
    Answer, ArtifactId, Event, InvestigationId, MAX_LEADS, Outcome, Recorded, Report, Task, TaskId, ToolCall, View,
    subject,
};
use casebook_runtime::Env;
use casebook_runtime::store::StoreError;
use casebook_runtime::stored;
use casebook_runtime::telemetry::meter;
use casebook_trust::Exhibits;

use crate::advance::{Advanced, advance};
use crate::decide::{Command, Rejection};
use crate::error::HubError;
use crate::state::{Progress, State};
use crate::{archive, measure, report, view};

const ATTEMPTS: u32 = 16;

/// The log and its folded state. A method that fails consumes it; [`Ledger::load`] reads the stored events
/// again.
pub struct Ledger {
    env: Env,
    investigation: InvestigationId,
    state: State,
    published: u64,
}

#[derive(Debug, Default)]
pub struct Passed {
    pub tasks: Vec<Task>,
    pub answers: Vec<Result<(), Rejection>>,
}

impl Ledger {
    /// Reads, verifies and folds the log. An empty log gives an investigation that can be opened.
    pub async fn load(env: &Env, investigation: &InvestigationId) -> Result<Self, HubError> {
        let state = archive::replay(env.store.as_ref(), investigation).await?;
        let published = Self::last_published(env, investigation, &state).await;
        Ok(Self { env: env.clone(), investigation: investigation.clone(), state, published })
    }

    /// The last published event: another Hub may have died after recording and before publishing.
    async fn last_published(env: &Env, investigation: &InvestigationId, state: &State) -> u64 {
        #[derive(serde::Deserialize)]
        struct LastSeq {
            seq: u64,
        }
        match env.bus.last(&subject::events(investigation)).await {
            Ok(Some(bytes)) => serde_json::from_slice::<LastSeq>(&bytes).map_or(state.last_seq(), |last| last.seq),
            Ok(None) => state.last_seq(),
            Err(error) => {
                tracing::warn!(%error, "could not read the last published event; publishing only new events");
                state.last_seq()
            }
        }
    }

    pub const fn state(&self) -> &State {
        &self.state
    }

    pub fn now(&self) -> casebook_protocol::Timestamp {
        self.env.clock.now()
    }

    /// Applies `commands` and, if `onward` is set, advances the flow. If another Hub appended meanwhile, reads
    /// the log and decides again. On a store failure, nothing of the pass is recorded.
    pub async fn pass(mut self, commands: Vec<Command>, onward: bool) -> Result<(Self, Passed), HubError> {
        let commands = Arc::new(commands);
        for _ in 0..ATTEMPTS {
            let after = self.state.last_seq();
            let pass = self.decided(Arc::clone(&commands), onward).await?;
            if let Some(defect) = pass.defect {
                return Err(HubError::Defect(defect));
            }
            if !pass.recorded.is_empty() {
                let views: Vec<(&ArtifactId, &[u8])> =
                    pass.views.iter().map(|(id, view)| (id, view.as_slice())).collect();
                let begun = self.now();
                let appended = self.env.store.append_with(&self.investigation, after, &pass.recorded, &views).await;
                measure::appended(meter::seconds(begun, self.now()), appended.as_ref().err());
                match appended {
                    Ok(()) => {}
                    Err(StoreError::Conflict { .. }) => {
                        self.state = archive::replay(self.env.store.as_ref(), &self.investigation).await?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            self.state = pass.state;
            measure::recorded(&pass.recorded, &self.state);
            self.publish_events(&pass.recorded).await?;
            return Ok((self, Passed { tasks: pass.tasks, answers: pass.answers }));
        }
        Err(HubError::Contended(self.investigation))
    }

    /// Decides on a blocking thread, because checking citations reads megabytes. A pass that records only steps
    /// costs less than the switch of threads.
    async fn decided(&mut self, commands: Arc<Vec<Command>>, onward: bool) -> Result<Advanced, HubError> {
        let (state, id, now) = (std::mem::take(&mut self.state), self.investigation.clone(), self.now());
        let step = |c: &Command| matches!(c, Command::RecordCall { .. } | Command::RecordModelCall { .. });
        if !commands.is_empty() && commands.iter().all(step) {
            return Ok(advance(state, &id, &commands, now, onward));
        }
        let pass = tokio::task::spawn_blocking(move || advance(state, &id, &commands, now, onward)).await;
        pass.map_err(|e| HubError::Defect(format!("could not decide: {e}")))
    }

    /// Publishes events in order. A failing bus stops nothing: subscribers find missed events in the log.
    async fn publish_events(&mut self, recorded: &[Recorded]) -> Result<(), HubError> {
        let subjects = [subject::events(&self.investigation), subject::timeline(&self.investigation)];
        if !subjects.iter().any(|subject| self.env.bus.heard(subject)) {
            self.published = self.state.last_seq();
            return Ok(());
        }
        let missed = match recorded.first() {
            Some(first) if first.seq > self.published + 1 => {
                self.env.store.log(&self.investigation, self.published + 1).await?
            }
            Some(_) => Vec::new(),
            None => return Ok(()),
        };
        let news = if missed.is_empty() { recorded } else { &missed };
        for entry in news.iter().filter(|e| e.seq > self.published) {
            // First, since the last event that was published says where to go on after a crash.
            if let Event::TimelineRewritten { timeline } = &entry.event {
                self.publish(&subject::timeline(&self.investigation), serde_json::to_vec(timeline)).await;
            }
            self.publish(&subject::events(&self.investigation), serde_json::to_vec(entry)).await;
        }
        self.published = self.state.last_seq();
        Ok(())
    }

    /// The report of a closed investigation. It is published before it is recorded, so a crash causes a
    /// repetition and not a loss.
    pub async fn report(&self) -> Result<Option<Box<Report>>, HubError> {
        let Some(report) = self.state.closed.and_then(|_| report::build(&self.state)) else { return Ok(None) };
        let store = self.env.store.as_ref();
        if store.recorded(&self.investigation, archive::REPORT_KEY).await?.is_none() {
            let json = serde_json::to_vec(&report).map_err(|e| HubError::Defect(e.to_string()))?;
            self.env.bus.publish(subject::REPORTS, json).await.map_err(|e| HubError::Bus(e.to_string()))?;
            archive::keep(store, &report).await?;
        }
        Ok(Some(Box::new(report)))
    }

    async fn publish(&self, subject: &str, json: serde_json::Result<Vec<u8>>) {
        let sent = match json {
            Ok(bytes) => self.env.bus.publish(subject, bytes).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::warn!(subject, error, "could not publish");
        }
    }

    /// The command for the recorded outcome of a task. `None` if nothing is recorded or the task is not open.
    pub async fn outcome(&self, task: &TaskId) -> Result<Option<Command>, HubError> {
        let Some(open) = self.state.tasks.get(task).filter(|t| t.progress == Progress::Requested) else {
            return Ok(None);
        };
        let Some(bytes) = self.env.store.recorded(&self.investigation, &outcome_key(task)).await? else {
            return Ok(None);
        };
        let now = self.now();
        let fail = |reason: String| Ok(Some(Command::FailTask { task: task.clone(), reason, now }));
        let outcome: Box<Outcome> = match stored::read(&bytes) {
            Ok(outcome) => outcome,
            Err(error) => return fail(format!("its recorded outcome cannot be read: {error}")),
        };
        if outcome.task != *task {
            return fail(format!("its recorded outcome is that of task {}", outcome.task));
        }
        let mut parts: Vec<(ToolCall, bool, Vec<u8>)> = Vec::new();
        let leads = match &outcome.result {
            Ok(Answer::Review(review)) => review.leads.as_slice(),
            _ => &[],
        };
        let leads = leads.iter().take(MAX_LEADS).filter_map(|lead| self.state.calls.get(&lead.call));
        for call in cited(&outcome).into_iter().chain(leads.map(|made| &made.call)) {
            if let Some(bytes) = self.env.store.get(&call.result).await? {
                parts.push((call.clone(), self.state.repeatable(open.domain.as_ref(), &call.tool), bytes));
            }
        }
        let exhibits = match parts.is_empty() {
            true => Exhibits::default(),
            false => tokio::task::spawn_blocking(move || exhibits(parts))
                .await
                .map_err(|e| HubError::Defect(format!("could not read evidence: {e}")))?,
        };
        Ok(Some(Command::RecordOutcome { outcome, sha256: sha256_hex(&bytes), exhibits, now }))
    }

    /// An open task, identical to the first time it was enqueued.
    pub async fn task(&self, id: &TaskId) -> Result<Option<Task>, HubError> {
        let Some(open) = self.state.tasks.get(id) else { return Ok(None) };
        let what = || format!("the view {} of task {id}", open.view);
        let corrupt = |reason: String| HubError::Store(StoreError::Corrupt { what: what(), reason });
        let bytes = self.env.store.get(&open.view).await?.ok_or_else(|| corrupt("it is not in the store".into()))?;
        let view: View = serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
        Ok(view::task(&self.state, id, view))
    }
}

/// The task's own calls that its findings cite, including repeated calls.
fn cited(outcome: &Outcome) -> Vec<&ToolCall> {
    let answered = match &outcome.result {
        Ok(Answer::Investigate(findings)) => findings.as_slice(),
        _ => &[],
    };
    let citations = outcome.raised.iter().chain(answered).flat_map(|f| &f.citations);
    let ids: std::collections::BTreeSet<_> =
        citations.flat_map(|c| std::iter::once(c.call()).chain(c.again())).collect();
    outcome.calls.iter().filter(|call| call.id.is_of(&outcome.task) && ids.contains(&call.id)).collect()
}

fn exhibits(parts: Vec<(ToolCall, bool, Vec<u8>)>) -> Exhibits {
    parts.into_iter().fold(Exhibits::default(), |mut all, (call, repeatable, bytes)| {
        all.add(call, repeatable, &bytes);
        all
    })
}

#[cfg(test)]
mod tests;
