use std::sync::Arc;

use casebook_agent::store::Store;

use super::*;
use crate::archive;
use crate::memory::MemoryStore;
use crate::script::{Driver, case, investigation, perform, think};

/// An honest investigation in a store.
async fn stored() -> (MemoryStore, Driver) {
    let store = MemoryStore::default();
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    while let Some((_, task)) = driver.waiting.pop_first() {
        store.put(&serde_json::to_vec(&task.view).unwrap()).await.unwrap();
        let (outcome, results) = perform(&task, &|t, d| think(t, d, false));
        for bytes in &results {
            store.put(bytes).await.unwrap();
        }
        let command = driver.outcome(outcome, &results);
        driver.take(&[command]);
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
async fn an_intact_investigation_has_no_problems_and_is_checked_whole() {
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
async fn changed_evidence_is_found() {
    let (store, driver) = stored().await;
    let (_, call) = driver.state.calls.values().next().unwrap();
    store.spoil(&call.result, b"{}");
    let problems = problems(&store).await;
    assert!(
        problems[0].contains(call.result.as_str()) && problems[0].contains("changed after they were stored"),
        "{problems:?}"
    );
    assert!(problems[1].contains("finding r1-endpoint-1 was recorded as"), "{problems:?}");
}

#[tokio::test]
async fn a_changed_log_is_found() {
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
