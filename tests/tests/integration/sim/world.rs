//! The world of the simulation: what is investigated, and processes that end at a chosen step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::model::client::Client;
use casebook_agent::model::{Answered, Ask, AskError, Model};
use casebook_agent::tools::Tools;
use casebook_cli::reasoners::Reasoners;
use casebook_cli::roster::members;
use casebook_evidence::Catalog;
use casebook_hub::{Case, HubHandle, MemoryStore, investigation_id, verify};
use casebook_protocol::{Alert, ArtifactId, Budget, InvestigationId, Recorded, Report, ToolCall, Toolset};
use casebook_report::compare;
use casebook_runtime::Env;
use casebook_runtime::bus::memory::{Faults, MemoryBus};
use casebook_runtime::clock::TickingClock;
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_runtime::stored;
use casebook_tests::generate;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::load::evidence;
use casebook_tests::model::brain::Brain;
use tokio::sync::Notify;

/// Rounds of the investigation that is benchmarked.
pub(super) const ROUNDS: u32 = 5;

/// When a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    Never,
    /// Before this write of this life, from 0.
    Write(u64),
    /// As soon as this many model calls were answered in this life: the last one is not recorded.
    Answered(u64),
    /// As soon as this many model calls were recorded in this life.
    Recorded(u64),
}

/// One life: what was done in it, and whether it is over.
pub(super) struct Life {
    death: Death,
    dead: AtomicBool,
    died: Notify,
    pub(super) writes: AtomicU64,
    answered: AtomicU64,
    pub(super) recorded: AtomicU64,
    /// How often the tools of an Expert ran, and how often that was recorded, by what was asked.
    pub(super) ran: Mutex<BTreeMap<String, u64>>,
    pub(super) recorded_runs: Mutex<BTreeMap<String, u64>>,
    /// Results that were recorded although they had been before.
    pub(super) again: Mutex<Vec<String>>,
    /// Model calls that were begun, and those that were recorded.
    asked: Mutex<Vec<String>>,
    pub(super) finished: Mutex<BTreeSet<String>>,
}

impl Life {
    fn new(death: Death) -> Arc<Self> {
        let (dead, died) = (AtomicBool::new(false), Notify::new());
        let [writes, answered, recorded] = [0; 3].map(AtomicU64::new);
        let (again, asked, finished) = Default::default();
        let (ran, recorded_runs) = Default::default();
        Arc::new(Self { death, dead, died, writes, answered, recorded, ran, recorded_runs, again, asked, finished })
    }

    /// Dies if it is time to.
    fn reached(&self, now: Death) {
        if self.death == now {
            self.dead.store(true, SeqCst);
            self.died.notify_one();
        }
    }

    fn write(&self) -> Result<(), StoreError> {
        self.reached(Death::Write(self.writes.fetch_add(1, SeqCst)));
        let gone = || StoreError::Unavailable { doing: "write".into(), reason: "the process is dead".into() };
        if self.dead.load(SeqCst) { Err(gone()) } else { Ok(()) }
    }

    /// A dead process asks no model and runs no tool.
    async fn alive(&self) {
        if self.dead.load(SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// How often tools ran.
    pub(super) fn tools(&self) -> u64 {
        self.ran.lock().unwrap().values().sum()
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn asked(tool: &str, arguments: &str) -> String {
    format!("{tool} {arguments}")
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
        self.life.write()?;
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
        self.life.write()?;
        let once = self.kept.record_once(id, key, bytes).await?;
        if once != Once::Recorded && !key.starts_with("outcome/") {
            self.life.again.lock().unwrap().push(key.to_owned());
        }
        if key.starts_with("call/") {
            let call: ToolCall = stored::read(bytes).unwrap();
            *self.life.recorded_runs.lock().unwrap().entry(asked(&call.tool, &call.arguments)).or_default() += 1;
        }
        if let Some(call) = key.strip_prefix("model/") {
            self.life.finished.lock().unwrap().insert(call.to_owned());
            self.life.reached(Death::Recorded(self.life.recorded.fetch_add(1, SeqCst) + 1));
        }
        Ok(once)
    }
    async fn recorded(&self, id: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.recorded(id, key).await
    }
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let _step = self.step.lock().await;
        self.life.write()?;
        self.kept.put(bytes).await
    }
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.get(id).await
    }
}

/// A model or the tools of an Expert, as this life uses them.
struct Used<T>(T, Arc<Life>);

#[async_trait]
impl Model for Used<Arc<Client>> {
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError> {
        self.1.alive().await;
        self.1.asked.lock().unwrap().push(ask.id.to_string());
        let answer = self.0.ask(ask, time).await;
        self.1.reached(Death::Answered(self.1.answered.fetch_add(1, SeqCst) + 1));
        answer
    }
}

#[async_trait]
impl Tools for Used<Arc<dyn Tools>> {
    fn toolset(&self) -> Toolset {
        self.0.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        self.1.alive().await;
        *self.1.ran.lock().unwrap().entry(asked(tool, arguments)).or_default() += 1;
        self.0.call(tool, arguments).await
    }
}

/// What is investigated, and by which model; without one by the built-in analyst.
pub(super) struct World {
    catalog: Arc<Catalog>,
    alert: Alert,
    budget: Budget,
    model: Option<(Lab, Arc<Client>)>,
    _folder: tempfile::TempDir,
}

impl World {
    pub(super) fn new(brain: Option<Brain>) -> Self {
        let write = |folder: &Path| generate::write(folder, 400_000, 7).unwrap();
        Self::over(write, Alert::parse(generate::ALERT.as_bytes()).unwrap(), brain)
    }

    /// Of the size that is benchmarked: 5 rounds, 4 Experts with 3 tool calls each, a Review with 4.
    pub(super) fn benchmark() -> Self {
        let brain = Brain { rounds: ROUNDS, ..Brain::named("benchmark").unwrap() };
        let world = Self::over(|folder| evidence::write(folder).unwrap(), evidence::alert(0).unwrap(), Some(brain));
        assert_eq!(members(&world.catalog).len(), 4);
        Self { budget: Budget { rounds: ROUNDS + 2, ..Budget::default() }, ..world }
    }

    fn over<T>(write: impl Fn(&Path) -> T, alert: Alert, brain: Option<Brain>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let evidence = folder.path().join("evidence");
        write(&evidence);
        let catalog = Catalog::open(&evidence, &folder.path().join("index.db"), &mut |_| {}).unwrap();
        let model = brain.map(|brain| {
            let lab = Lab::start(brain, FORMS[0]).unwrap();
            let client = Client::open(&lab.config().unwrap()).unwrap();
            (lab, Arc::new(client))
        });
        Self { catalog: Arc::new(catalog), alert, budget: Budget::default(), model, _folder: folder }
    }

    pub(super) fn lab(&self) -> &Lab {
        &self.model.as_ref().unwrap().0
    }

    /// One life on what earlier ones kept: the report, unless it died before.
    pub(super) async fn live(&self, kept: &MemoryStore, death: Death, faults: Faults) -> (Option<Report>, Arc<Life>) {
        let life = Life::new(death);
        let bus = MemoryBus::new(faults);
        let store = Mortal { kept: kept.clone(), life: Arc::clone(&life), step: tokio::sync::Mutex::default() };
        let clock = Arc::new(TickingClock::default());
        let env = Env { bus: Arc::new(bus.clone()), store: Arc::new(store), clock };
        let reasoners = self.model.as_ref().map_or_else(Reasoners::analyst, |(lab, client)| {
            Reasoners::of(lab.config().unwrap(), Arc::new(Used(Arc::clone(client), Arc::clone(&life))))
        });
        casebook_director::actor::start_with(env.clone(), reasoners.director());
        casebook_critic::actor::start_with(env.clone(), reasoners.critic());
        let members = members(&self.catalog);
        let roster = members.iter().map(|s| s.member.clone()).collect();
        for team_member in members {
            let tools = Arc::new(Used(team_member.tools, Arc::clone(&life)));
            casebook_expert::actor::start_with(env.clone(), &team_member.member.domain, tools, reasoners.expert());
        }
        let hub = HubHandle::start(env, Duration::from_millis(100));
        let case = Case { alert: self.alert.clone(), budget: self.budget, roster, evidence: String::new() };
        let work = async {
            let id = investigation_id(&case.alert.id, 1);
            hub.open(&id, case).await.ok()?;
            hub.wait(&id).await.ok()
        };
        let death = async {
            life.died.notified().await;
            // What is under way when a process dies gets a moment to run into the dead store.
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let report = tokio::select! {
            biased;
            () = death => None,
            report = work => report,
        };
        bus.close();
        // What was under way when the process died reaches the model and nothing else.
        while self.model.as_ref().is_some_and(|(lab, _)| lab.server.log().counts().active > 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (report, life)
    }

    /// A life in which nothing goes wrong.
    pub(super) async fn undisturbed(&self, kept: &MemoryStore) -> (Report, Arc<Life>) {
        let (report, life) = self.live(kept, Death::Never, Faults::default()).await;
        assert_eq!(*life.again.lock().unwrap(), [""; 0]);
        (report.unwrap(), life)
    }

    /// The report without what differs from run to run: a model's prompt cache is not the same in a second life.
    pub(super) fn stable(&self, report: &Report) -> String {
        let mut value = compare::stable(report);
        if self.model.is_some() {
            value["usage"] = serde_json::Value::Null;
        }
        serde_json::to_string_pretty(&value).unwrap()
    }
}

pub(super) async fn intact(kept: &MemoryStore) {
    for id in kept.investigations().await.unwrap() {
        assert_eq!(verify::verify(kept, &id).await.unwrap().problems, []);
    }
}
