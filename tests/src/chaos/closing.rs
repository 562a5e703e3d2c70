//! Checks the end state: queues, logs, results and reports.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream;
use casebook_hub::archive;
use casebook_hub::verify::verify;
use casebook_protocol::key::{call_key, model_key};
use casebook_protocol::{Event, InvestigationId, Recorded, Report, Timestamp, subject};
use casebook_runtime::nats::{Connection, streams};
use serde::Deserialize;

use super::books::{Begun, Finished, Ms};
use super::noise::all;
use crate::model::capture::Entry;
use crate::team::Team;
use crate::{Result, run};

#[derive(Debug, Default)]
pub struct Closing {
    /// Finished model calls, keyed by the content of their request.
    pub models: Vec<Finished>,
    pub tools: Vec<Finished>,
    pub events: u64,
    pub citations: u64,
    pub faults: Vec<String>,
}

/// What is unfinished; empty if every investigation is closed and the queues are empty.
pub async fn unfinished(connection: &Connection, expected: &BTreeSet<InvestigationId>) -> Vec<String> {
    let store = connection.env().store;
    let mut open = Vec::new();
    for id in expected {
        match archive::state(store.as_ref(), id).await {
            Ok(state) if state.closed.is_some() => {}
            Ok(state) => {
                let waits: Vec<String> = state.in_flight().map(|(id, _)| id.to_string()).collect();
                open.push(format!("{id} is in round {} and waits for {waits:?}", state.round));
            }
            Err(error) => open.push(format!("{id}: {error}")),
        }
    }
    let context = jetstream::new(connection.client().clone());
    for name in [streams::ALERTS, streams::CASES, streams::TASKS] {
        match context.get_stream(name).await {
            Ok(stream) if stream.cached_info().state.messages == 0 => {}
            Ok(stream) => open.push(format!("{name} holds {} messages", stream.cached_info().state.messages)),
            Err(error) => open.push(format!("{name}: {error}")),
        }
    }
    open
}

/// Reads and checks all records; `entries` are the requests that the model received.
pub async fn closing(
    connection: &Connection,
    expected: &BTreeSet<InvestigationId>,
    entries: &[Entry],
) -> Result<Closing> {
    let mut closing = Closing::default();
    let store = connection.env().store;
    let found: BTreeSet<_> = store.investigations().await?.into_iter().collect();
    let odd = found.symmetric_difference(expected);
    closing.faults.extend(odd.map(|id| format!("{id} has only an alert or only a log")));
    let contents: BTreeMap<u64, u64> = entries.iter().map(|entry| (entry.number, entry.content)).collect();
    let times = recorded_at(connection, &mut closing.faults).await?;
    for id in found.intersection(expected) {
        let verified = verify(store.as_ref(), id).await?;
        closing.events += verified.events;
        closing.citations += verified.citations;
        closing.faults.extend(verified.problems.iter().map(|p| format!("{id}: {}", p.what)));
        if !verified.report {
            closing.faults.push(format!("{id}: no report is recorded"));
        }
        let log = store.log(id, 1).await?;
        closing.faults.extend(twice(id, &log));
        closing.calls(id, &log, &contents, &times);
        // Kills and pauses must not fail a task.
        let whole = run::no_task_failed(&archive::report(store.as_ref(), id).await?);
        closing.faults.extend(whole.err().map(|why| format!("{id}: {why}")));
    }
    closing.published(connection, expected).await?;
    Ok(closing)
}

impl Closing {
    fn calls(
        &mut self,
        id: &InvestigationId,
        log: &[Recorded],
        contents: &BTreeMap<u64, u64>,
        times: &BTreeMap<String, Ms>,
    ) {
        let at = |key: &str| times.get(&subject::result(id, key)).copied();
        for entry in log {
            match &entry.event {
                Event::ModelCalled { task, call } => {
                    let (task, name) = (format!("{id} {task}"), format!("{id} {}", call.id));
                    let number = call.version.rsplit_once('#').and_then(|(_, n)| n.parse().ok());
                    let content = number.and_then(|n: u64| contents.get(&n));
                    match (content, at(&model_key(&call.id))) {
                        (Some(content), Some(at)) => {
                            self.models.push(Finished { name, task, call: content.to_string(), at });
                        }
                        (None, _) => self.faults.push(format!("{name} matches no request: {:?}", call.version)),
                        (_, None) => self.faults.push(format!("{name} is in the log but not in the results")),
                    }
                    self.faults.extend(call.failed.iter().map(|why| format!("{id} {} failed: {why}", call.id)));
                }
                Event::CallRecorded { task, call } => match at(&call_key(&call.id)) {
                    Some(at) => {
                        let name = format!("{id} {}", call.id);
                        self.tools.push(Finished { call: name.clone(), task: format!("{id} {task}"), name, at });
                    }
                    None => self.faults.push(format!("{id} {} is in the log but not in the results", call.id)),
                },
                _ => {}
            }
        }
    }

    async fn published(&mut self, connection: &Connection, expected: &BTreeSet<InvestigationId>) -> Result<()> {
        let context = jetstream::new(connection.client().clone());
        let mut published = BTreeSet::new();
        for message in all(&context, streams::REPORTS).await? {
            match serde_json::from_slice::<Report>(&message.payload) {
                Ok(report) => drop(published.insert(report.investigation)),
                Err(error) => self.faults.push(format!("cannot read a published report: {error}")),
            }
        }
        self.faults.extend(expected.difference(&published).map(|id| format!("{id}: its report was never published")));
        for message in all(&context, streams::DEAD).await? {
            self.faults.push(format!("a dead letter: {}", String::from_utf8_lossy(&message.payload)));
        }
        Ok(())
    }
}

/// Events that occur twice in a log, but must occur once.
fn twice(id: &InvestigationId, log: &[Recorded]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let once = log.iter().filter_map(|entry| match &entry.event {
        Event::CallRecorded { call, .. } => Some((entry.seq, format!("call {}", call.id))),
        Event::ModelCalled { call, .. } => Some((entry.seq, format!("call {}", call.id))),
        Event::TaskRequested { task, .. } => Some((entry.seq, format!("the request of {task}"))),
        Event::RoundStarted { round, .. } => Some((entry.seq, format!("the start of round {round}"))),
        Event::Opened { .. } => Some((entry.seq, "the opening".to_owned())),
        Event::Closed {} => Some((entry.seq, "the end".to_owned())),
        _ => None,
    });
    let again = once.filter(|(_, what)| !seen.insert(what.clone()));
    again.map(|(seq, what)| format!("{id}: {what} is repeated at event {seq}")).collect()
}

/// When each result was written, by subject. A second write is a fault.
async fn recorded_at(connection: &Connection, faults: &mut Vec<String>) -> Result<BTreeMap<String, Ms>> {
    use futures_util::TryStreamExt;
    let context = jetstream::new(connection.client().clone());
    let names: Vec<String> = context.stream_names().try_collect().await.map_err(|e| format!("streams: {e}"))?;
    let mut times = BTreeMap::new();
    for name in names.iter().filter(|name| name.starts_with("CASEBOOK_RESULTS_")) {
        for message in all(&context, name).await? {
            let at = i64::try_from(message.time.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX);
            if times.insert(message.subject.to_string(), at).is_some() {
                faults.push(format!("{} is written twice", message.subject));
            }
        }
    }
    Ok(times)
}

/// The requests that the model received. A request with an unknown key is a bug of the harness.
pub fn asked(team: &Team, entries: &[Entry]) -> Result<Vec<Begun>> {
    let begun = entries.iter().map(|entry| {
        let by = team.owner(&entry.key).ok_or_else(|| format!("no process sent request {}", entry.number))?;
        let at = entry.begun.as_millisecond();
        Ok(Begun { number: entry.number, call: entry.content.to_string(), by, at })
    });
    begun.collect()
}

#[derive(Deserialize)]
struct Line {
    timestamp: Timestamp,
    investigation: String,
    call: String,
}

pub fn ran(team: &Team) -> Vec<Begun> {
    let mut runs = Vec::new();
    for (by, (_, log)) in team.logs().into_iter().enumerate() {
        for line in log.lines().filter(|line| line.contains("a tool runs")) {
            let Ok(Line { timestamp, investigation, call }) = serde_json::from_str(line) else { continue };
            let call = format!("{investigation} {call}");
            runs.push(Begun { number: runs.len() as u64 + 1, call, by, at: timestamp.as_millisecond() });
        }
    }
    runs
}
