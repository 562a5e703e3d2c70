use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use casebook_agent::bus::memory::{Faults, MemoryBus};
use casebook_agent::bus::{Bus, BusError, Delivery, Subscription};
use casebook_agent::clock::TickingClock;
use casebook_agent::store::Store;

use super::*;
use crate::memory::MemoryStore;
use crate::script::{case, investigation};

/// A bus on which reports do not come out as long as `away` says, and that counts those that do.
struct Away {
    inner: MemoryBus,
    away: AtomicU32,
    reports: AtomicU32,
}

#[async_trait]
impl Bus for Away {
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        self.inner.enqueue(subject, id, bytes).await
    }
    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError> {
        self.inner.pull(subject).await
    }
    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError> {
        self.inner.try_pull(subject).await
    }
    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        if subject == subject::REPORTS {
            if self.away.load(Ordering::SeqCst) > 0 {
                self.away.fetch_sub(1, Ordering::SeqCst);
                return Err(BusError::Failed { doing: "publish".into(), reason: "the server is away".into() });
            }
            self.reports.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.publish(subject, bytes).await
    }
    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        self.inner.subscribe(subject).await
    }
    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError> {
        self.inner.last(subject).await
    }
}

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
async fn a_report_that_was_not_published_is_not_recorded_and_comes_out_the_next_time() {
    let bus = Away { inner: MemoryBus::new(Faults::default()), away: AtomicU32::new(2), reports: AtomicU32::new(0) };
    let bus = Arc::new(bus);
    let store = Arc::new(MemoryStore::default());
    let env = Env { bus: bus.clone(), store: store.clone(), clock: Arc::new(TickingClock::default()) };
    let ledger = closed(&env).await;
    let recorded = async || store.recorded(&investigation(), archive::REPORT_KEY).await.unwrap().is_some();
    for _ in 0..2 {
        assert!(matches!(ledger.report().await, Err(HubError::Bus(_))));
        assert!(!recorded().await, "recorded, nobody would publish it any more");
    }
    ledger.report().await.unwrap().unwrap();
    assert!(recorded().await);
    ledger.report().await.unwrap().unwrap();
    assert_eq!(bus.reports.load(Ordering::SeqCst), 1);
}
