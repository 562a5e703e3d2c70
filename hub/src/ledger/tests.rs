use casebook_runtime::clock::TickingClock;
use casebook_runtime::store::Store;

use super::*;
use crate::memory::MemoryStore;
use crate::tests::away::Away;
use crate::tests::script::{case, investigation};

/// An investigation in which every task fails, to its end.
async fn closed(env: &Env) -> Ledger {
    let ledger = Ledger::load(env, &investigation()).await.unwrap();
    let (mut ledger, _) = ledger.pass(vec![Command::Open(Box::new(case(&["network"])))], true).await.unwrap();
    while ledger.state().closed.is_none() {
        let now = ledger.now();
        let open = ledger.state().in_flight().map(|(id, _)| id.clone());
        let fail = open.map(|task| Command::FailTask { task, reason: "it does".into(), now }).collect();
        (ledger, _) = ledger.pass(fail, true).await.unwrap();
    }
    ledger
}

#[tokio::test]
async fn unpublished_report_is_not_recorded_and_is_sent_again() {
    let bus = Arc::new(Away::new(subject::REPORTS, 2));
    let store = Arc::new(MemoryStore::default());
    let env = Env { bus: bus.clone(), store: store.clone(), clock: Arc::new(TickingClock::default()) };
    let ledger = closed(&env).await;
    let recorded = async || store.recorded(&investigation(), archive::REPORT_KEY).await.unwrap().is_some();
    for _ in 0..2 {
        assert!(matches!(ledger.report().await, Err(HubError::Bus(_))));
        assert!(!recorded().await, "once recorded, it would not be published again");
    }
    ledger.report().await.unwrap().unwrap();
    assert!(recorded().await);
    ledger.report().await.unwrap().unwrap();
    assert_eq!(bus.told(), 1);
}

#[test]
fn cited_call_of_another_task_is_not_an_exhibit() {
    use crate::tests::script::{Driver, honest, perform};
    let mut driver = Driver::open(&case(&["network"]));
    let task = driver.until("r1.investigate.network");
    let (mut outcome, _) = perform(&task, &honest);
    let own = cited(&outcome).len();
    assert!(own > 0);
    outcome.task = TaskId::new("r1.investigate.endpoint").unwrap();
    assert_eq!(cited(&outcome).len(), 0);
}
