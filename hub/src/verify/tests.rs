use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_protocol::key::{call_key, model_key, outcome_key};
use casebook_protocol::{Domain, Task};
use casebook_runtime::store::{Once, Store};
use casebook_runtime::stored;

use super::*;
use crate::archive;
use crate::memory::MemoryStore;
use crate::tests::script::{Driver, SEARCH, case, honest, investigation, perform, row};

/// An honest investigation in a store.
async fn stored() -> (MemoryStore, Driver) {
    stored_of(&honest).await
}

/// An investigation of a team that thinks so, in a store.
async fn stored_of(reasoner: &dyn Fn(&Task, &[Done]) -> Action) -> (MemoryStore, Driver) {
    let store = MemoryStore::default();
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    while let Some((_, task)) = driver.waiting.pop_first() {
        store.put(&serde_json::to_vec(&task.view).unwrap()).await.unwrap();
        let (outcome, results) = perform(&task, reasoner);
        for bytes in &results {
            store.put(bytes).await.unwrap();
        }
        let keep = async |key: String, row: Vec<u8>| store.record_once(&investigation(), &key, &row).await.unwrap();
        for call in &outcome.calls {
            keep(call_key(&call.id), stored::write(call).unwrap()).await;
        }
        for call in &outcome.asked {
            keep(model_key(&call.id), stored::write(call).unwrap()).await;
        }
        keep(outcome_key(&task.id), row(&outcome)).await;
        driver.answer(outcome, &results);
    }
    store.append(&investigation(), 0, &driver.log).await.unwrap();
    archive::keep(&store, &report::build(&driver.state).unwrap()).await.unwrap();
    (store, driver)
}

async fn problems(store: &MemoryStore) -> Vec<String> {
    let found = verify(store, &investigation()).await.unwrap();
    found.problems.into_iter().map(|p| p.what).collect()
}

#[tokio::test]
async fn intact_investigation_is_verified_completely() {
    let (store, driver) = stored().await;
    let found = verify(&store, &investigation()).await.unwrap();
    assert_eq!(found.problems, []);
    assert_eq!((found.events, found.findings, found.citations, found.report), (driver.log.len() as u64, 8, 8, true));
    // 14 views and 4 results: the query made again gives the same bytes.
    assert_eq!(found.artifacts, driver.state.tasks.len() as u64 + 4);
    let made = driver.state.calls.len() + driver.state.asked.len() + driver.state.tasks.len();
    assert_eq!((found.results, found.unhashed, found.closed), (made as u64, 0, true));
    let (built, last) = (found.built.unwrap(), driver.log.last().unwrap());
    let proof = built.proof.unwrap();
    assert_eq!((proof.head.seq, &proof.head.hash), (last.seq, &last.hash));
    let cited: Vec<&str> = proof.records.iter().map(|record| record.file.as_str()).collect();
    assert_eq!(cited, ["endpoint.log", "network.log", "network.log", "network.log"]);
    let unknown = InvestigationId::new("unknown").unwrap();
    assert_eq!(verify(&store, &unknown).await, Err(HubError::Unknown(unknown.clone())));
}

#[tokio::test]
async fn finding_from_a_hidden_source_is_verified_as_invalid() {
    // The Expert for network asks for what is endpoint's, and gets it.
    let astray = |task: &Task, done: &[Done]| match (task.domain.as_ref().map(Domain::as_str), done) {
        (Some("network"), []) => {
            let arguments = serde_json::json!({"domain": "endpoint", "round": task.round}).to_string();
            Action::Call(vec![CallRequest { tool: SEARCH.into(), arguments }])
        }
        _ => honest(task, done),
    };
    let (store, driver) = stored_of(&astray).await;
    let (astray, honest): (Vec<_>, Vec<_>) =
        driver.state.findings().partition(|f| f.finding.domain.as_str() == "network");
    assert!(astray.len() > 1 && astray.iter().all(|f| f.checked.citations.iter().all(|c| !c.holds)));
    assert!(honest.len() > 1 && honest.iter().all(|f| f.checked.citations.iter().all(|c| c.holds)));
    assert_eq!(problems(&store).await, [""; 0]);
}

#[tokio::test]
async fn changed_evidence_is_found() {
    let (store, driver) = stored().await;
    let call = &driver.state.calls.values().next().unwrap().call;
    store.spoil(&call.result, b"{}");
    let problems = problems(&store).await;
    assert!(
        problems[0].contains(call.result.as_str()) && problems[0].contains("changed after they were stored"),
        "{problems:?}"
    );
    assert!(problems[1].contains("finding r1-endpoint-1 was recorded as"), "{problems:?}");
}

#[tokio::test]
async fn changed_log_is_found() {
    let (_, driver) = stored().await;
    let store = Arc::new(MemoryStore::default());
    let mut log = driver.log.clone();
    let place = log.iter().position(|e| matches!(e.event, Event::Reviewed { .. })).unwrap();
    if let Event::Reviewed { review } = &mut log[place].event {
        review.findings[0].score = casebook_protocol::Score::ZERO;
    }
    store.append(&investigation(), 0, &log).await.unwrap();
    archive::keep(store.as_ref(), &report::build(&driver.state).unwrap()).await.unwrap();
    let problems = problems(&store).await;
    assert_eq!(
        problems[0],
        format!("event {} was changed after it was recorded: its hash does not match its content", place + 1)
    );
    assert_eq!(problems.last().unwrap(), "the recorded report is not what the log gives");
    assert!(matches!(archive::state(store.as_ref(), &investigation()).await, Err(HubError::Broken { .. })));
}

#[tokio::test]
async fn changed_or_missing_result_is_found() {
    let (store, driver) = stored().await;
    let (task, _) = driver.state.tasks.first_key_value().unwrap();
    let (call, made) = driver.state.calls.first_key_value().unwrap();
    let (asked, model) = driver.state.asked.first_key_value().unwrap();
    let later = casebook_protocol::Timestamp::from_second(9).unwrap();
    let other = stored::write(&casebook_protocol::ToolCall { ended: later, ..made.call.clone() }).unwrap();
    let reply = stored::write(&ModelCall { ended: later, ..model.call.clone() }).unwrap();
    for (key, bytes) in [(outcome_key(task), &b"{}"[..]), (call_key(call), &other), (model_key(asked), &reply)] {
        let before = store.recorded(&investigation(), &key).await.unwrap();
        store.tamper(&investigation(), &key, Some(bytes));
        assert_eq!(problems(&store).await, [format!("{key} is not what was recorded in the log")]);
        store.tamper(&investigation(), &key, None);
        assert_eq!(problems(&store).await, [format!("{key} is named in the log and not in the store")]);
        store.tamper(&investigation(), &key, before.as_deref());
    }
    assert_eq!(problems(&store).await, [""; 0]);
}

#[tokio::test]
async fn closed_log_without_its_report_and_report_without_its_last_events_are_found() {
    let (store, driver) = stored().await;
    store.tamper(&investigation(), archive::REPORT_KEY, None);
    let found = problems(&store).await;
    assert!(found.len() == 1 && found[0].contains("closed and its report is not in the store"), "{found:?}");

    let cut = MemoryStore::default();
    cut.append(&investigation(), 0, &driver.log[..driver.log.len() - 1]).await.unwrap();
    archive::keep(&cut, &report::build(&driver.state).unwrap()).await.unwrap();
    let found = problems(&cut).await;
    assert!(found.iter().any(|what| what.contains("its last events were removed")), "{found:?}");
}

#[tokio::test]
async fn event_after_the_end_is_found() {
    let (store, driver) = stored().await;
    let last = driver.log.last().unwrap();
    let stopping = Event::Stopping { reason: "later".into() };
    let more = Recorded::next(&investigation(), Some(last), last.at, stopping);
    store.append(&investigation(), last.seq, std::slice::from_ref(&more)).await.unwrap();
    let found = verify(&store, &investigation()).await.unwrap();
    assert_eq!(found.problems[0].seq, Some(more.seq));
    assert_eq!(found.problems[0].what, "it follows the event that closed the investigation");
}

/// A store in which an investigation ends while it is looked at: the log is read without its last event, and the
/// report stands from then on.
struct Ending {
    inner: MemoryStore,
    read: AtomicBool,
}

#[async_trait]
impl Store for Ending {
    async fn append(&self, of: &InvestigationId, after: u64, entries: &[Recorded]) -> Result<(), StoreError> {
        self.inner.append(of, after, entries).await
    }

    async fn log(&self, of: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.read.store(true, Ordering::SeqCst);
        let mut log = self.inner.log(of, from).await?;
        log.pop();
        Ok(log)
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.inner.investigations().await
    }

    async fn record_once(&self, of: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        self.inner.record_once(of, key, bytes).await
    }

    async fn recorded(&self, of: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if self.read.load(Ordering::SeqCst) { self.inner.recorded(of, key).await } else { Ok(None) }
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.inner.put(bytes).await
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get(id).await
    }
}

#[tokio::test]
async fn investigation_that_ends_during_verification_is_valid() {
    let (inner, _) = stored().await;
    let found = verify(&Ending { inner, read: AtomicBool::new(false) }, &investigation()).await.unwrap();
    assert_eq!((found.problems.len(), found.report), (0, false), "{:?}", found.problems);
}
