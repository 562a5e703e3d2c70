use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_protocol::{Domain, Task};
use casebook_runtime::store::{Once, Store};

use super::*;
use crate::archive;
use crate::memory::MemoryStore;
use crate::tests::script::{Driver, SEARCH, case, honest, investigation, perform};

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
    let nobody = InvestigationId::new("nobody").unwrap();
    assert_eq!(verify(&store, &nobody).await, Err(HubError::Unknown(nobody.clone())));
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
