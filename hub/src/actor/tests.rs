//! The whole Hub over the in-memory bus and store, and over a store that fails. What the team answers
//! depends on the task alone, so every run ends in the same report. The simulation among the
//! integration tests kills it and loses its messages.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use casebook_agent::reasoner::{Action, Analyst, Done};
use casebook_agent::tools::{NoTools, Tools};
use casebook_agent::worker::{Fixed, Worker};
use casebook_protocol::subject::Queue;
use casebook_protocol::{ArtifactId, Domain, Recorded, Role, Task, Toolset, subject};
use casebook_runtime::bus::Bus;
use casebook_runtime::bus::memory::{Faults, MemoryBus};
use casebook_runtime::clock::TickingClock;
use casebook_runtime::process::{RoleActor, run};
use casebook_runtime::store::{Once, Store, StoreError};
use serde_json::Value;

use super::*;
use crate::Case;
use crate::intake::investigation_id;
use crate::memory::MemoryStore;
use crate::tests::script::{case, domain, member, search, think};
use crate::verify::verify;
use casebook_report::compare::stable;

pub(crate) const ROSTER: [&str; 3] = ["endpoint", "identity", "network"];
const SWEEP: Duration = Duration::from_millis(30);
const DEADLINE: Duration = Duration::from_secs(60);

/// The search of the script.
struct Search(Domain);

#[async_trait]
impl Tools for Search {
    fn toolset(&self) -> Toolset {
        member(self.0.as_str()).toolset
    }

    async fn call(&self, _: &str, arguments: &str) -> Result<String, String> {
        Ok(search(arguments))
    }
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) env: Env,
    pub(crate) bus: MemoryBus,
}

pub(crate) fn world(store: Arc<dyn Store>, faults: Faults) -> World {
    let bus = MemoryBus::new(faults);
    let env = Env { bus: Arc::new(bus.clone()), store, clock: Arc::new(TickingClock::default()) };
    World { env, bus }
}

/// Starts the Hub and the team; must be called in a system.
pub(crate) fn begin(world: &World) -> HubHandle {
    begin_with(world, SWEEP)
}

fn begin_with(world: &World, sweep: Duration) -> HubHandle {
    team(&world.env, think, &ROSTER);
    HubHandle::start(world.env.clone(), sweep)
}

/// Starts a team that thinks so; must be called in a system.
pub(crate) fn team(env: &Env, reasoner: fn(&Task, &[Done], bool) -> Action, roster: &[&str]) {
    let start = |queue, tools| {
        let worker = Worker::new(env.clone(), Arc::new(Analyst(reasoner)), Arc::new(Fixed(tools)));
        drop(RoleActor::start_on(queue, Arc::new(worker), 2));
    };
    for role in [Role::Director, Role::Critic] {
        start(Queue::new(role, None), Arc::new(NoTools));
    }
    for name in roster {
        start(Queue::new(Role::Expert, Some(&domain(name))), Arc::new(Search(domain(name))));
    }
}

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("stuck")
}

/// Opens the first investigation of the case's alert.
async fn open(hub: &HubHandle, case: Case) -> Result<InvestigationId, HubError> {
    let id = investigation_id(&case.alert.id, 1);
    hub.open(&id, case).await.map(|_| id)
}

/// One whole investigation in this world.
fn investigate(world: &World) -> Result<Report, HubError> {
    run(async {
        let hub = begin(world);
        let id = open(&hub, case(&ROSTER)).await?;
        let report = soon(hub.wait(&id)).await;
        world.bus.close();
        report
    })
    .unwrap()
}

fn undisturbed() -> Value {
    stable(&investigate(&world(Arc::new(MemoryStore::default()), Faults::default())).unwrap())
}

#[test]
fn investigation_runs_to_its_report_and_can_be_verified() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    let report = investigate(&world).unwrap();
    assert_eq!(report.verdict, casebook_protocol::Verdict::TruePositive);
    assert_eq!((report.findings.len(), report.usage.rounds), (10, 3));
    assert!(report.findings.iter().all(|f| f.citations.iter().all(|c| c.holds)), "{:?}", report.findings);
    let found = run(verify(world.env.store.as_ref(), &report.investigation)).unwrap().unwrap();
    assert_eq!((found.problems, found.findings, found.report), (vec![], 10, true));
    let summaries = run(crate::archive::summaries(world.env.store.as_ref())).unwrap().unwrap();
    assert_eq!(summaries.len(), 1);
    assert_eq!((summaries[0].title.as_str(), summaries[0].verdict), ("Module loaded", Some(report.verdict)));
}

#[test]
fn sqlite_store_gives_the_same_report_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Arc::new(crate::SqliteStore::open(folder.path()).unwrap());
    let report = investigate(&world(open(), Faults::default())).unwrap();
    assert_eq!(stable(&report), undisturbed());
    let store = open();
    let found = run(verify(store.as_ref(), &report.investigation)).unwrap().unwrap();
    assert_eq!((found.problems, found.report), (vec![], true));
    assert_eq!(run(crate::archive::report(store.as_ref(), &report.investigation)).unwrap().unwrap(), report);
}

#[test]
fn many_investigations_go_on_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(Arc::new(crate::SqliteStore::open(folder.path()).unwrap()), Faults::default());
    run(async {
        let hub = begin(&world);
        let mut opened = Vec::new();
        for n in 0..25 {
            let case = Case { alert: alert(&format!("a{n}")), ..case(&ROSTER) };
            opened.push(open(&hub, case).await.unwrap());
        }
        for id in &opened {
            assert_eq!(soon(hub.wait(id)).await.unwrap().findings.len(), 10);
        }
        // A notice that was under way when its investigation closed wakes it once more, for a moment.
        let quiet = async {
            while !hub.observe().await.unwrap().open.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        soon(quiet).await;
        world.bus.close();
    })
    .unwrap();
}

pub(crate) fn alert(id: &str) -> casebook_protocol::Alert {
    casebook_protocol::Alert::parse(format!("{{\"id\":\"{id}\"}}").as_bytes()).unwrap()
}

#[test]
fn stopped_and_suspended_investigations_can_be_resumed() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    let (stopped, suspended) = run(async {
        // Without a team every task waits: the Hub decides alone what happens.
        let hub = HubHandle::start(world.env.clone(), SWEEP);
        let stopped = open(&hub, case(&ROSTER)).await.unwrap();
        hub.stop(&stopped, "the person said so").await.unwrap();
        assert!(matches!(hub.stop(&stopped, "again").await, Err(HubError::Rejected(_))));
        let suspended = open(&hub, Case { alert: alert("b"), ..case(&ROSTER) }).await.unwrap();
        let waiting = tokio::spawn({
            let (hub, id) = (hub.clone(), suspended.clone());
            async move { hub.wait(&id).await }
        });
        tokio::task::yield_now().await;
        soon(hub.suspend()).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap(), Err(HubError::Suspended));
        let seen = hub.observe().await.unwrap();
        assert!(seen.suspended && seen.open.len() == 2 && seen.open.iter().all(|o| o.in_flight.len() == 1), "{seen:?}");
        assert_eq!(open(&hub, Case { alert: alert("c"), ..case(&ROSTER) }).await, Err(HubError::Suspended));
        (stopped, suspended)
    })
    .unwrap();
    run(async {
        let hub = begin(&world);
        for id in [&stopped, &suspended] {
            hub.resume(id).await.unwrap();
        }
        let report = soon(hub.wait(&stopped)).await.unwrap();
        assert_eq!(report.stop_reason.as_deref(), Some("the person said so"));
        assert_eq!(soon(hub.wait(&suspended)).await.unwrap().stop_reason, None);
        world.bus.close();
    })
    .unwrap();
}

#[test]
fn everything_is_published_in_order() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    run(async {
        let mut heard = world.bus.subscribe("casebook.>").await.unwrap();
        // No sweep comes to its help: notices alone carry it.
        let hub = begin_with(&world, Duration::from_secs(3600));
        let id = open(&hub, case(&ROSTER)).await.unwrap();
        let report = soon(hub.wait(&id)).await.unwrap();
        let (mut events, mut versions) = (Vec::new(), Vec::new());
        loop {
            let message = soon(heard.next()).await.unwrap();
            if message.subject == subject::events(&id) {
                events.push(serde_json::from_slice::<Recorded>(&message.bytes).unwrap());
            } else if message.subject == subject::timeline(&id) {
                versions.push(serde_json::from_slice::<casebook_protocol::Timeline>(&message.bytes).unwrap().version);
            } else if message.subject == subject::REPORTS {
                assert_eq!(serde_json::from_slice::<Report>(&message.bytes).unwrap(), report);
                break;
            }
        }
        assert_eq!(events, world.env.store.log(&id, 1).await.unwrap());
        assert_eq!(versions, [1, 2, 3]);
        world.bus.close();
    })
    .unwrap();
}

/// A store whose disk is full from the `n`th append on, until it is mended.
struct Failing(MemoryStore, AtomicU32);

#[async_trait]
impl Store for Failing {
    async fn append(&self, id: &InvestigationId, after: u64, entries: &[Recorded]) -> Result<(), StoreError> {
        if self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return Err(StoreError::Unavailable { doing: "append".into(), reason: "no room is left".into() });
        }
        self.0.append(id, after, entries).await
    }
    async fn log(&self, id: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.0.log(id, from).await
    }
    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.0.investigations().await
    }
    async fn record_once(&self, id: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        self.0.record_once(id, key, bytes).await
    }
    async fn recorded(&self, id: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.recorded(id, key).await
    }
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.0.put(bytes).await
    }
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(id).await
    }
}

#[test]
fn failing_store_stops_the_investigation_without_loss() {
    let expect = undisturbed();
    for appends in [1, 2, 5, 9] {
        let memory = MemoryStore::default();
        let failing = Arc::new(Failing(memory, AtomicU32::new(appends)));
        let world = world(failing.clone(), Faults::default());
        run(async {
            let hub = begin(&world);
            let id = open(&hub, case(&ROSTER)).await.unwrap();
            let error = soon(hub.wait(&id)).await.unwrap_err();
            assert_eq!(error.to_string(), "cannot append: no room is left");
            assert_eq!(soon(hub.wait(&id)).await.unwrap_err(), error, "a later request gets the same error");
            failing.1.store(u32::MAX, Ordering::SeqCst);
            hub.resume(&id).await.unwrap();
            assert_eq!(stable(&soon(hub.wait(&id)).await.unwrap()), expect);
            world.bus.close();
        })
        .unwrap();
    }
}

#[test]
fn two_hubs_on_one_store_never_both_win() {
    let expect = undisturbed();
    let world = world(Arc::new(MemoryStore::default()), Faults { seed: 3, double: 500, ..Faults::default() });
    run(async {
        let (one, two) = (begin(&world), HubHandle::start(world.env.clone(), SWEEP));
        let id = investigation_id(&case(&ROSTER).alert.id, 1);
        let (a, b) = tokio::join!(one.open(&id, case(&ROSTER)), two.open(&id, case(&ROSTER)));
        assert_ne!(a.unwrap(), b.unwrap(), "one of them is first");
        let (a, b) = tokio::join!(soon(one.wait(&id)), soon(two.wait(&id)));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((stable(&a), &a), (expect, &b));
        let found = verify(world.env.store.as_ref(), &id).await.unwrap();
        assert_eq!(found.problems, []);
        world.bus.close();
    })
    .unwrap();
}
