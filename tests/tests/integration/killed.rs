//! Killed after every single model call of an investigation of the size that is benchmarked (5 rounds,
//! 4 Experts with 3 tool calls each, a Review with 4): only what was in flight is made again, and no
//! tool runs twice. The scripted model keeps the ledger of the calls, a wrapper that of the tools.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::model::client::Client;
use casebook_agent::model::{Answered, Ask, AskError, Model};
use casebook_agent::tools::Tools;
use casebook_cli::minds::Minds;
use casebook_cli::roster::seats;
use casebook_evidence::Catalog;
use casebook_hub::{Case, HubHandle, MemoryStore, verify};
use casebook_protocol::{ArtifactId, Budget, InvestigationId, Recorded, Report, Toolset};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::SystemClock;
use casebook_runtime::process;
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::load::evidence;
use casebook_tests::model::brain::Brain;
use tokio::sync::Notify;

const ROUNDS: u32 = 5;

/// When a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Never,
    /// As soon as this many model calls were answered in this life: the last one is not recorded.
    Answered(u64),
    /// As soon as this many model calls were recorded in this life.
    Recorded(u64),
}

/// One life of a process: what it did, and whether it is over.
struct Life {
    death: Death,
    dead: AtomicBool,
    died: Notify,
    answered: AtomicU64,
    recorded: AtomicU64,
    tools: AtomicU64,
}

impl Life {
    fn new(death: Death) -> Arc<Self> {
        let zero = AtomicU64::default;
        let dead = AtomicBool::new(false);
        Arc::new(Self { death, dead, died: Notify::new(), answered: zero(), recorded: zero(), tools: zero() })
    }

    fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_one();
    }

    fn alive(&self) -> Result<(), StoreError> {
        let gone = || StoreError::Unavailable { doing: "write".into(), reason: "the process is dead".into() };
        if self.dead.load(Ordering::SeqCst) { Err(gone()) } else { Ok(()) }
    }
}

/// The store of a process: nothing that the process does after its death reaches it.
struct Mortal {
    kept: MemoryStore,
    life: Arc<Life>,
    /// A write and the death after it are one step.
    step: tokio::sync::Mutex<()>,
}

#[async_trait]
impl Store for Mortal {
    async fn append(&self, id: &InvestigationId, after: u64, entries: &[Recorded]) -> Result<(), StoreError> {
        let _step = self.step.lock().await;
        self.life.alive()?;
        self.kept.append(id, after, entries).await
    }
    async fn log(&self, id: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.kept.log(id, from).await
    }
    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.kept.investigations().await
    }
    async fn record_once(&self, id: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        let _step = self.step.lock().await;
        self.life.alive()?;
        let once = self.kept.record_once(id, key, bytes).await?;
        assert!(key.starts_with("outcome/") || once == Once::Recorded, "{key} was done again");
        if key.starts_with("model/") {
            let recorded = self.life.recorded.fetch_add(1, Ordering::SeqCst) + 1;
            if self.life.death == Death::Recorded(recorded) {
                self.life.die();
            }
        }
        Ok(once)
    }
    async fn recorded(&self, id: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.recorded(id, key).await
    }
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let _step = self.step.lock().await;
        self.life.alive()?;
        self.kept.put(bytes).await
    }
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.get(id).await
    }
}

/// A model that may be the death of the process.
struct Deadly {
    client: Arc<Client>,
    life: Arc<Life>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Model for Deadly {
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError> {
        if self.life.dead.load(Ordering::SeqCst) {
            // A dead process calls nobody.
            std::future::pending::<()>().await;
        }
        self.asked.lock().unwrap().push(ask.id.to_string());
        let answer = self.client.ask(ask, time).await;
        if self.life.death == Death::Answered(self.life.answered.fetch_add(1, Ordering::SeqCst) + 1) {
            self.life.die();
        }
        answer
    }
}

/// Tools that count how often they run.
struct Counted {
    tools: Arc<dyn Tools>,
    life: Arc<Life>,
}

#[async_trait]
impl Tools for Counted {
    fn toolset(&self) -> Toolset {
        self.tools.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        if self.life.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.life.tools.fetch_add(1, Ordering::SeqCst);
        self.tools.call(tool, arguments).await
    }
}

struct World {
    catalog: Arc<Catalog>,
    lab: Lab,
    client: Arc<Client>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        evidence::write(&folder.path().join("evidence")).unwrap();
        let catalog =
            Catalog::open(&folder.path().join("evidence"), &folder.path().join("index.db"), &mut |_| {}).unwrap();
        let lab = Lab::start(Brain { rounds: ROUNDS, ..Brain::named("benchmark").unwrap() }, FORMS[0]).unwrap();
        let client = Arc::new(Client::open(&lab.config().unwrap()).unwrap());
        Self { catalog: Arc::new(catalog), lab, client, _folder: folder }
    }

    /// One life of a process on what earlier ones kept: the report, unless it died before; and the
    /// model calls that it made.
    async fn live(&self, kept: &MemoryStore, life: &Arc<Life>) -> (Option<Report>, Vec<String>) {
        let bus = MemoryBus::default();
        let store = Mortal { kept: kept.clone(), life: Arc::clone(life), step: tokio::sync::Mutex::default() };
        let env = Env { bus: Arc::new(bus.clone()), store: Arc::new(store), clock: Arc::new(SystemClock) };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let model = Deadly { client: Arc::clone(&self.client), life: Arc::clone(life), asked: Arc::clone(&asked) };
        let minds = Minds::of(self.lab.config().unwrap(), Arc::new(model));
        let seats = seats(&self.catalog);
        assert_eq!(seats.len(), 4);
        let roster = seats.iter().map(|s| s.member.clone()).collect();
        casebook_director::actor::start_with(env.clone(), minds.director());
        casebook_critic::actor::start_with(env.clone(), minds.critic());
        for seat in seats {
            let tools = Arc::new(Counted { tools: seat.tools, life: Arc::clone(life) });
            casebook_expert::actor::start_with(env.clone(), &seat.member.domain, tools, minds.expert());
        }
        let hub = HubHandle::start(env, Duration::from_millis(100));
        let budget = Budget { rounds: ROUNDS + 2, ..Budget::default() };
        let case = Case { alert: evidence::alert(0).unwrap(), budget, roster, evidence: String::new() };
        let work = async {
            let id = casebook_hub::investigation_id(&case.alert.id, 1);
            hub.open(&id, case).await.ok()?;
            hub.wait(&id).await.ok()
        };
        let report = tokio::select! {
            biased;
            () = life.died.notified() => None,
            report = work => report,
        };
        bus.close();
        // What was under way when the process died reaches the server and nothing else.
        while self.lab.server.log().counts().active > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let asked = asked.lock().unwrap().clone();
        (report, asked)
    }

    /// How often the model answered a call that it had answered before.
    fn again(&self) -> u64 {
        self.lab.server.log().counts().answered_again
    }
}

/// The calls of a kind that are on record.
async fn on_record(kept: &MemoryStore, report: &Report) -> (u64, u64) {
    let id = &report.investigation;
    let (mut models, mut tools) = (0, 0);
    for entry in kept.log(id, 1).await.unwrap() {
        match entry.event {
            casebook_protocol::Event::ModelCalled { .. } => models += 1,
            casebook_protocol::Event::CallRecorded { ref call, .. } if call.domain.is_some() => tools += 1,
            _ => {}
        }
    }
    (models, tools)
}

async fn whole(kept: &MemoryStore, report: &Report) {
    let failed: Vec<_> = report.usage.tasks.iter().filter_map(|t| t.failed.as_ref()).collect();
    assert_eq!(failed, Vec::<&String>::new());
    assert_eq!(report.usage.rounds, ROUNDS);
    let found = verify::verify(kept, &report.investigation).await.unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

#[test]
fn killed_after_every_single_model_call_it_makes_no_call_twice() {
    process::run(async {
        let world = World::new();
        let kept = MemoryStore::default();
        let (mut lives, mut calls, mut tools, mut unrecorded) = (0_u64, 0, 0, 0);
        let report = loop {
            let life = Life::new(Death::Recorded(1));
            let (report, asked) = world.live(&kept, &life).await;
            lives += 1;
            calls += asked.len() as u64;
            tools += life.tools.load(Ordering::SeqCst);
            unrecorded += asked.len() as u64 - life.recorded.load(Ordering::SeqCst);
            if let Some(report) = report {
                break report;
            }
            assert!(lives < 500, "it comes to no end");
        };
        whole(&kept, &report).await;
        let (models, on_record_tools) = on_record(&kept, &report).await;
        assert_eq!(models, report.usage.total.model_calls);
        assert!(models >= 61 && lives == models + 1, "{lives} lives for {models} calls");
        // Experts ask at once: what is answered to one while another's call is the death of both is
        // in flight. Of all that is recorded nothing was asked for again.
        assert_eq!(calls, models + unrecorded);
        assert!(world.again() <= unrecorded, "{} of {unrecorded}", world.again());
        assert!(tools >= on_record_tools, "{tools} of {on_record_tools}");
    })
    .unwrap();
}

#[test]
fn killed_at_each_answer_only_what_was_in_flight_is_made_again() {
    process::run(async {
        let world = World::new();
        let kept = MemoryStore::default();
        let life = Life::new(Death::Never);
        let (report, asked) = world.live(&kept, &life).await;
        whole(&kept, &report.unwrap()).await;
        let (all, tools) = (asked.len() as u64, life.tools.load(Ordering::SeqCst));
        assert!(all >= 61 && tools >= 60, "{all} model calls, {tools} tool calls");
        for at in (1..=all).step_by((all as usize / super::kills(12)).max(1)) {
            let kept = MemoryStore::default();
            let (first, second) = (Life::new(Death::Answered(at)), Life::new(Death::Never));
            let (none, before) = world.live(&kept, &first).await;
            assert!(none.is_none(), "killed at answer {at}");
            let (report, after) = world.live(&kept, &second).await;
            let report = report.unwrap();
            whole(&kept, &report).await;
            let recorded = first.recorded.load(Ordering::SeqCst);
            let finished: Vec<&String> = before.iter().filter(|id| after.contains(id)).collect();
            assert!(!finished.is_empty(), "killed at answer {at}: that call was in flight");
            assert_eq!(finished.len() as u64, before.len() as u64 - recorded, "killed at answer {at}: {finished:?}");
            assert_eq!(after.len() as u64, all - recorded, "killed at answer {at}");
            // A tool that had run when the process died, and was not on record, was in flight, too.
            let (ran, ran_again) = (first.tools.load(Ordering::SeqCst), second.tools.load(Ordering::SeqCst));
            let in_flight = (ran + ran_again) - tools;
            assert!(in_flight <= 3 * 4, "killed at answer {at}: {ran} and {ran_again} of {tools}");
        }
    })
    .unwrap();
}
