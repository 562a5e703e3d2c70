//! Many investigations at once in one process, with the durable store (or one in memory) and a bus in memory,
//! like `casebook investigate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::model::client::Client;
use casebook_agent::model::config::Config;
use casebook_cli::reasoners::Reasoners;
use casebook_cli::roster;
use casebook_hub::{Case, HubHandle, MemoryStore, SqliteStore, investigation_id};
use casebook_protocol::{Budget, Member, Report};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::bus::{Bus, BusError, Delivery, Subscription};
use casebook_runtime::clock::SystemClock;
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_runtime::telemetry::{self, LogFormat};

use super::measure::Meter;
use super::{Mode, Setting, Taken, evidence};
use crate::Result;
use crate::lab::{FORMS, models_file};

/// How often the Hub checks for missed notifications, as in `casebook investigate`.
const SWEEP: Duration = Duration::from_secs(5);

/// Exports telemetry if the variables of OpenTelemetry name a collector.
pub fn run(setting: &Setting) -> Result<Taken> {
    telemetry::start(LogFormat::Text, "casebook", None, false)?;
    let taken = process::run(investigate(setting))?;
    telemetry::export::end();
    taken
}

async fn investigate(setting: &Setting) -> Result<Taken> {
    let members = roster::members(&Arc::new(setting.catalog()?));
    let roster: Vec<_> = members.iter().map(|one| one.member.clone()).collect();
    let key = setting.data().with_extension("key");
    std::fs::write(&key, "none")?;
    let models = models_file(&setting.url, FORMS[0], &key, "concurrency = 1024");
    let config = Arc::new(Config::parse("models.toml", &models)?);
    let reasoners = Reasoners::of(Arc::clone(&config), Arc::new(Client::open(&config)?));
    let (memory, messages) = (MemoryBus::default(), Arc::new(AtomicU64::new(0)));
    let store: Arc<dyn Store> = match setting.mode {
        Mode::Memory => Arc::new(MemoryStore::default()),
        _ => Arc::new(SqliteStore::open(setting.data())?),
    };
    let bus = Counting { bus: memory.clone(), messages: Arc::clone(&messages) };
    let env = Env { bus: Arc::new(bus), store, clock: Arc::new(SystemClock) };
    casebook_director::actor::start_with(env.clone(), reasoners.director());
    casebook_critic::actor::start_with(env.clone(), reasoners.critic());
    for team_member in members {
        casebook_expert::actor::start_with(
            env.clone(),
            &team_member.member.domain,
            team_member.tools,
            reasoners.expert(),
        );
    }
    reasoners.ready().await;
    let hub = HubHandle::start(env, SWEEP);
    let budget = Budget { rounds: setting.rounds + 2, ..Budget::default() };
    let investigation = |n| one(hub.clone(), n, budget, roster.clone());
    investigation(setting.all()).await?;
    messages.store(0, Ordering::Relaxed);
    let meter = Meter::start();
    let mut used = Taken::default();
    let mut stopped = Ok(());
    let add = |report: Result<Report>| match report {
        Ok(report) => used.add(&report, setting.rounds),
        Err(error) => stopped = Err(error),
    };
    setting.in_waves(investigation, add).await;
    let taken = Taken { messages: messages.load(Ordering::Relaxed), ..meter.stop(used) };
    memory.close();
    stopped.map(|()| taken)
}

async fn one(hub: HubHandle, n: usize, budget: Budget, roster: Vec<Member>) -> Result<Report> {
    let case = Case { alert: evidence::alert(n)?, budget, roster, evidence: "generated".into() };
    let id = investigation_id(&case.alert.id, 1);
    hub.open(&id, case).await?;
    Ok(hub.wait(&id).await?)
}

struct Counting {
    bus: MemoryBus,
    messages: Arc<AtomicU64>,
}

#[async_trait]
impl Bus for Counting {
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bus.enqueue(subject, id, bytes).await
    }

    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError> {
        self.bus.pull(subject).await
    }

    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError> {
        self.bus.try_pull(subject).await
    }

    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError> {
        self.bus.last(subject).await
    }

    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bus.publish(subject, bytes).await
    }

    fn heard(&self, subject: &str) -> bool {
        self.bus.heard(subject)
    }

    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        self.bus.subscribe(subject).await
    }
}
