//! Many investigations at once in one process, over the durable store (or one in memory) and the bus inside a process,
//! put together as `casebook investigate` does it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use casebook_agent::model::client::Client;
use casebook_agent::model::config::Config;
use casebook_cli::minds::Minds;
use casebook_cli::roster;
use casebook_evidence::Catalog;
use casebook_hub::{Case, HubHandle, MemoryStore, SqliteStore};
use casebook_protocol::{Budget, InvestigationId, Report};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::bus::{Bus, BusError, Delivery, Subscription};
use casebook_runtime::clock::SystemClock;
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_runtime::telemetry::{self, LogFormat};

use super::floor::micros;
use super::{Mode, Setting, Taken, evidence, measure, models_file};

/// How often the Hub looks for what nobody told it of, as in `casebook investigate`.
const SWEEP: Duration = Duration::from_secs(5);

/// Investigates so many alerts at once. Where the variables of OpenTelemetry name a collector, it is sent to.
///
/// # Errors
/// What went wrong, in words.
pub fn run(setting: &Setting) -> Result<Taken, String> {
    telemetry::start(LogFormat::Text, "casebook", None)?;
    let taken = process::run(investigate(setting)).map_err(|e| e.to_string())?;
    telemetry::export::end();
    taken
}

async fn investigate(setting: &Setting) -> Result<Taken, String> {
    let say = |e: &dyn std::fmt::Display| e.to_string();
    let catalog = Catalog::open(&setting.evidence, &setting.index, &mut |_| {}).map_err(|e| say(&e))?;
    let seats = roster::seats(&Arc::new(catalog));
    let members: Vec<_> = seats.iter().map(|seat| seat.member.clone()).collect();
    let key = setting.data.with_extension("key");
    std::fs::write(&key, "none").map_err(|e| say(&e))?;
    let config = Arc::new(Config::parse("models.toml", &models_file(&setting.url, &key)).map_err(|e| say(&e))?);
    let minds = Minds::of(Arc::clone(&config), Arc::new(Client::open(&config).map_err(|e| say(&e))?));
    let bus = Counting { bus: MemoryBus::default(), messages: Arc::default() };
    let (memory, messages) = (bus.bus.clone(), Arc::clone(&bus.messages));
    let store: Arc<dyn Store> = match setting.mode {
        Mode::Memory => Arc::new(MemoryStore::default()),
        _ => Arc::new(SqliteStore::open(&setting.data).map_err(|e| say(&e))?),
    };
    let env = Env { bus: Arc::new(bus), store, clock: Arc::new(SystemClock) };
    casebook_director::actor::start_with(env.clone(), minds.director());
    casebook_critic::actor::start_with(env.clone(), minds.critic());
    for seat in seats {
        casebook_expert::actor::start_with(env.clone(), &seat.member.domain, seat.tools, minds.expert());
    }
    minds.ready().await;
    let hub = HubHandle::start(env, SWEEP);
    let case = |n| {
        let budget = Budget { rounds: setting.rounds + 2, ..Budget::default() };
        let alert = evidence::alert(n)?;
        Ok::<_, String>(Case { alert, budget, roster: members.clone(), evidence: "generated".into() })
    };
    one(hub.clone(), case(setting.all())?).await?;
    messages.store(0, Ordering::Relaxed);
    let (before_kib, cpu, begun) = (measure::peak_kib(), measure::cpu(), Instant::now());
    let mut taken = Taken { before_kib, ..Taken::default() };
    for wave in 0..setting.waves {
        let alerts = wave * setting.at..(wave + 1) * setting.at;
        let all: Vec<_> =
            alerts.map(|n| Ok(tokio::spawn(one(hub.clone(), case(n)?)))).collect::<Result<_, String>>()?;
        for one in all {
            let (id, report) = one.await.map_err(|e| e.to_string())??;
            taken.model_calls += report.usage.total.model_calls;
            taken.tool_calls += report.usage.total.tool_calls;
            taken.failed += u64::from(failed(&id, &report, setting.rounds));
        }
    }
    taken.cpu_micros = micros(measure::cpu() - cpu);
    taken.wall_micros = micros(begun.elapsed());
    taken.peak_kib = measure::peak_kib();
    taken.messages = messages.load(Ordering::Relaxed);
    memory.close();
    Ok(taken)
}

async fn one(hub: HubHandle, case: Case) -> Result<(InvestigationId, Report), String> {
    let id = casebook_hub::investigation_id(&case.alert.id, 1);
    hub.open(&id, case).await.map_err(|e| e.to_string())?;
    let report = hub.wait(&id).await.map_err(|e| e.to_string())?;
    Ok((id, report))
}

/// A task failed, or it ended before its last round.
pub(super) fn failed(id: &InvestigationId, report: &Report, rounds: u32) -> bool {
    let failed = report.usage.tasks.iter().find_map(|task| task.failed.as_ref().map(|why| (&task.task, why)));
    if let Some((task, why)) = failed {
        eprintln!("load: {id}: task {task} failed: {why}");
    }
    failed.is_some() || report.usage.rounds < rounds
}

/// The bus with a count of what goes over it.
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
