//! Simulation: the real Hub, Director, Experts and Critic over the in-memory bus, which loses, doubles
//! and reorders from a seed, and over a store that dies after any number of writes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::model::client::Client;
use casebook_agent::model::{Answered, Ask, AskError, Model};
use casebook_cli::minds::Minds;
use casebook_cli::roster::{Seat, seats};
use casebook_evidence::Catalog;
use casebook_hub::{Case, HubHandle, MemoryStore, verify};
use casebook_protocol::{Alert, ArtifactId, Budget, InvestigationId, Recorded, Report};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::{Faults, MemoryBus};
use casebook_runtime::clock::TickingClock;
use casebook_runtime::process;
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_tests::generate;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;

/// A store that dies: after `left` writes every further one fails, as if the process were killed just
/// before it. It counts finished calls that were made again.
#[derive(Clone)]
struct Mortal {
    kept: MemoryStore,
    left: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
    again: Arc<AtomicU64>,
    /// The model calls that are on record.
    finished: Arc<Mutex<BTreeSet<String>>>,
}

impl Mortal {
    fn new(kept: MemoryStore, lives: u64) -> Self {
        Self {
            kept,
            left: Arc::new(AtomicU64::new(lives)),
            writes: Arc::default(),
            again: Arc::default(),
            finished: Arc::default(),
        }
    }

    fn spend(&self) -> Result<(), StoreError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        let spent = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        spent
            .map(|_| ())
            .map_err(|_| StoreError::Unavailable { doing: "write".into(), reason: "the process is dead".into() })
    }
}

#[async_trait]
impl Store for Mortal {
    async fn append(&self, id: &InvestigationId, after: u64, entries: &[Recorded]) -> Result<(), StoreError> {
        self.spend()?;
        self.kept.append(id, after, entries).await
    }
    async fn log(&self, id: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.kept.log(id, from).await
    }
    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.kept.investigations().await
    }
    async fn record_once(&self, id: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        self.spend()?;
        let once = self.kept.record_once(id, key, bytes).await?;
        if key.starts_with("call/") && matches!(once, Once::Stands(_)) {
            self.again.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(call) = key.strip_prefix("model/") {
            self.finished.lock().unwrap().insert(call.to_owned());
        }
        Ok(once)
    }
    async fn recorded(&self, id: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.recorded(id, key).await
    }
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.spend()?;
        self.kept.put(bytes).await
    }
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.get(id).await
    }
}

struct World {
    catalog: Arc<Catalog>,
    alert: Alert,
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let evidence = folder.path().join("evidence");
    generate::write(&evidence, 400_000, 7).unwrap();
    let catalog = Catalog::open(&evidence, &folder.path().join("index.db"), &mut |_| {}).unwrap();
    World { catalog: Arc::new(catalog), alert: Alert::parse(generate::ALERT.as_bytes()).unwrap(), _folder: folder }
}

impl World {
    /// One life: runs until the report is there or the store is dead.
    async fn live(&self, store: &Mortal, faults: Faults) -> Option<Report> {
        self.live_with(store, faults, &Minds::analyst()).await
    }

    async fn live_with(&self, store: &Mortal, faults: Faults, minds: &Minds) -> Option<Report> {
        let bus = MemoryBus::new(faults);
        let env = Env {
            bus: Arc::new(bus.clone()),
            store: Arc::new(store.clone()),
            clock: Arc::new(TickingClock::default()),
        };
        let seats: Vec<Seat> = seats(&self.catalog);
        let roster = seats.iter().map(|s| s.member.clone()).collect();
        casebook_director::actor::start_with(env.clone(), minds.director());
        casebook_critic::actor::start_with(env.clone(), minds.critic());
        for seat in seats {
            casebook_expert::actor::start_with(env.clone(), &seat.member.domain, seat.tools, minds.expert());
        }
        let hub = HubHandle::start(env, Duration::from_millis(100));
        let case = Case { alert: self.alert.clone(), budget: Budget::default(), roster, evidence: String::new() };
        let work = async {
            let id = casebook_hub::investigation_id(&case.alert.id, 1);
            hub.open(&id, case).await.ok()?;
            hub.wait(&id).await.ok()
        };
        let dead = async {
            while store.left.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            // What is under way when a process dies gets a moment to run into the dead store.
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let report = tokio::select! {
            report = work => report,
            () = dead => None,
        };
        bus.close();
        report
    }
}

fn stable(report: &Report) -> String {
    serde_json::to_string_pretty(&casebook_report::compare::stable(report)).unwrap()
}

async fn undisturbed(world: &World) -> (String, u64) {
    let store = Mortal::new(MemoryStore::default(), u64::MAX);
    let report = world.live(&store, Faults::default()).await.unwrap();
    (stable(&report), store.writes.load(Ordering::SeqCst))
}

async fn intact(kept: &MemoryStore) {
    for id in kept.investigations().await.unwrap() {
        let found = verify::verify(kept, &id).await.unwrap();
        assert!(found.problems.is_empty(), "{:?}", found.problems);
    }
}

#[test]
fn killed_at_every_write_it_ends_in_the_same_report_and_repeats_nothing() {
    process::run(async {
        let world = world();
        let (expected, writes) = undisturbed(&world).await;
        assert!(writes > 100, "only {writes} writes: the test kills at too few places");
        // Every write of the beginning (opening, planning, first calls), then a spread over the rest.
        let kills = super::kills(60);
        let places = (0..kills as u64).chain((kills as u64..writes).step_by((writes as usize / kills).max(1)));
        for lives in places.take_while(|n| *n < writes) {
            let kept = MemoryStore::default();
            let mut dying = Mortal::new(kept.clone(), lives);
            let mut report = world.live(&dying, Faults::default()).await;
            let mut again = dying.again.load(Ordering::SeqCst);
            if report.is_none() {
                dying = Mortal::new(kept.clone(), u64::MAX);
                report = world.live(&dying, Faults::default()).await;
                again += dying.again.load(Ordering::SeqCst);
            }
            assert_eq!(stable(&report.unwrap()), expected, "killed before write {lives}");
            assert_eq!(again, 0, "killed before write {lives}: a finished call was made again");
            intact(&kept).await;
        }
    })
    .unwrap();
}

/// A model that remembers which calls it was asked for.
struct Remembers {
    inner: Client,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Model for Remembers {
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError> {
        self.asked.lock().unwrap().push(ask.id.to_string());
        self.inner.ask(ask, time).await
    }
}

/// The report without what the model's own cache makes different from run to run.
fn told(report: &Report) -> String {
    let mut value = casebook_report::compare::stable(report);
    value["usage"] = serde_json::Value::Null;
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn killed_at_every_write_with_models_no_finished_call_is_made_again() {
    process::run(async {
        let world = world();
        let lab = Lab::start(Brain { rounds: 2, ..Brain::default() }, FORMS[0]).unwrap();
        let config = lab.config().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let model = Remembers { inner: Client::open(&config).unwrap(), asked: Arc::clone(&asked) };
        let minds = Minds::of(config, Arc::new(model));
        let store = Mortal::new(MemoryStore::default(), u64::MAX);
        let expected = told(&world.live_with(&store, Faults::default(), &minds).await.unwrap());
        let writes = store.writes.load(Ordering::SeqCst);
        assert!(asked.lock().unwrap().len() > 20 && writes > 100);
        for lives in (0..writes).step_by((writes as usize / super::kills(30)).max(1)) {
            let kept = MemoryStore::default();
            let dying = Mortal::new(kept.clone(), lives);
            if let Some(report) = world.live_with(&dying, Faults::default(), &minds).await {
                // Batched appends differ from run to run, so the last places may come after the end.
                assert_eq!(told(&report), expected, "never killed, with {lives} writes");
                continue;
            }
            let finished = dying.finished.lock().unwrap().clone();
            asked.lock().unwrap().clear();
            let next = Mortal::new(kept.clone(), u64::MAX);
            let report = world.live_with(&next, Faults::default(), &minds).await.unwrap();
            assert_eq!(told(&report), expected, "killed before write {lives}");
            let again: Vec<_> = asked.lock().unwrap().iter().filter(|id| finished.contains(*id)).cloned().collect();
            assert_eq!(again, [""; 0], "killed before write {lives}");
            assert_eq!(dying.again.load(Ordering::SeqCst) + next.again.load(Ordering::SeqCst), 0);
            intact(&kept).await;
        }
        assert_eq!(lab.violations(), [""; 0]);
    })
    .unwrap();
}

#[test]
fn whatever_the_bus_loses_doubles_and_reorders_the_report_is_the_same() {
    process::run(async {
        let world = world();
        let (expected, _) = undisturbed(&world).await;
        for seed in 0..12 {
            let faults = Faults { seed, lose: 150, double: 150, reorder: 300 };
            let kept = MemoryStore::default();
            let store = Mortal::new(kept.clone(), u64::MAX);
            let report = world.live(&store, faults).await.unwrap();
            assert_eq!(stable(&report), expected, "seed {seed}");
            intact(&kept).await;
        }
    })
    .unwrap();
}

#[test]
fn a_library_user_needs_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    generate::write(&folder.path().join("evidence"), 100_000, 1).unwrap();
    std::fs::write(folder.path().join("alert.json"), generate::ALERT).unwrap();
    let run = |name: &str| {
        let at = |p: &str| folder.path().join(p);
        casebook_tests::run::investigate_in(&at("alert.json"), &at("evidence"), Path::new(&at(name))).unwrap()
    };
    let (first, second) = (run("one"), run("two"));
    assert_eq!(stable(&first), stable(&second), "the same input gives the same report");
}
