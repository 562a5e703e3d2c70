//! A Hub over NATS: accepts workers and passes alerts to the [`Intake`]. Several Hubs share the work: one Hub
//! holds the lease of an investigation, and if it dies, another continues from the log.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{Budget, Join, Joined, Role, one_line};
use casebook_runtime::Env;
use casebook_runtime::bus::Subscription;
use casebook_runtime::nats::streams::{FOLLOWED, Keeping};
use casebook_runtime::nats::{Asked, Connection, NatsError, Requests};
use casebook_runtime::telemetry::meter;
use casebook_runtime::wire::WIRE_VERSION;
use tokio::task::JoinSet;

use crate::actor::HubHandle;
use crate::error::HubError;
pub use crate::intake::OpenAnswer;
use crate::intake::{self, Intake, Source};
use crate::roster::Roster;

/// How often open investigations get the list of domains with an Expert.
const ATTEND: Duration = Duration::from_secs(2);
/// How often to measure the queues.
const MEASURE: Duration = Duration::from_secs(5);
const GROUP: &str = "hubs";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub budget: Budget,
    /// Investigations that run at once; further alerts wait in order of severity.
    pub at_once: usize,
    pub keeping: Keeping,
    /// How often to check for missed notifications.
    pub sweep: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Budget::default(), at_once: 64, keeping: Keeping::default(), sweep: Duration::from_secs(15) }
    }
}

/// A running Hub. Clones refer to the same one; its tasks end with the last clone.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
    loops: Arc<tokio::sync::Mutex<JoinSet<&'static str>>>,
}

struct Shared {
    nats: Connection,
    env: Env,
    hub: HubHandle,
    intake: Intake,
    keeping: Keeping,
    roster: Arc<Mutex<Roster>>,
}

/// A request on `casebook.follow`, JSON.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Follow {
    /// The name of the consumers.
    name: String,
    #[serde(default)]
    from: Beginning,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Beginning {
    /// With everything that is stored.
    #[default]
    Start,
    Now,
}

/// The answer to it.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Followed {
    Made { consumers: Vec<Consumer> },
    Refused { error: String },
}

#[derive(serde::Serialize)]
struct Consumer {
    stream: &'static str,
    /// The subjects that it gets.
    subject: &'static str,
    consumer: String,
}

impl Service {
    /// Creates or checks the streams and starts to serve, on the system of `casebook_runtime::process::run`.
    pub async fn start(nats: Connection, settings: Settings) -> Result<Self, NatsError> {
        nats.prepare(settings.keeping).await?;
        for role in [Role::Director, Role::Critic] {
            nats.prepare_queue(&Queue::new(role, None), settings.keeping).await?;
        }
        let env = nats.env();
        let hub = HubHandle::start(env.clone(), settings.sweep);
        let roster = Arc::new(Mutex::new(Roster::new(WIRE_VERSION, env.clock.now())));
        let members = {
            let (roster, clock) = (Arc::clone(&roster), Arc::clone(&env.clock));
            Arc::new(move || roster.lock().unwrap_or_else(PoisonError::into_inner).members(clock.now()))
        };
        let door = intake::Settings {
            budget: settings.budget,
            at_once: settings.at_once,
            waiting: None,
            evidence: String::new(),
            record_first: false,
        };
        let capacity = {
            let (roster, clock) = (Arc::clone(&roster), Arc::clone(&env.clock));
            Arc::new(move || roster.lock().unwrap_or_else(PoisonError::into_inner).capacity(clock.now()))
        };
        let intake = Intake::new(env.clone(), hub.clone(), door, members).paced(capacity);
        let shared = Arc::new(Shared { nats, env, hub, intake, keeping: settings.keeping, roster });
        let service = Self { shared, loops: Arc::default() };
        service.serve().await?;
        Ok(service)
    }

    /// The number of running instances of each queue.
    pub fn workers(&self) -> std::collections::BTreeMap<String, usize> {
        self.shared.roster().counts(self.shared.env.clock.now())
    }

    pub fn under_way(&self) -> usize {
        self.shared.intake.under_way()
    }

    /// Waits for a loop to end. None may end before [`Service::drain`]: the Hub would look ready and not react.
    pub async fn deaf(&self) -> &'static str {
        match self.loops.lock().await.join_next().await {
            Some(Ok(name)) => name,
            Some(Err(_)) | None => "every loop",
        }
    }

    /// Takes no more jobs, records what is decided, and returns unfinished jobs for another Hub.
    pub async fn drain(&self) -> Result<(), HubError> {
        self.shared.intake.drain().await?;
        self.shared.nats.flush().await;
        Ok(())
    }

    async fn serve(&self) -> Result<(), NatsError> {
        let failed = |e: &dyn std::fmt::Display| NatsError::Failed { doing: "listen".into(), reason: e.to_string() };
        let this = &self.shared;
        let joins = this.nats.serve(subject::JOINS, GROUP).await?;
        let opens = this.nats.serve(subject::OPEN, GROUP).await?;
        let follows = this.nats.serve(subject::FOLLOW, GROUP).await?;
        let presence = this.env.bus.subscribe(subject::PRESENCE).await.map_err(|e| failed(&e))?;
        let hints = this.env.bus.subscribe(subject::WAITING).await.map_err(|e| failed(&e))?;
        let mut loops = self.loops.lock().await;
        let mut spawn = |name: &'static str, ends: Pin<Box<dyn Future<Output = ()> + Send>>| {
            loops.spawn(async move {
                ends.await;
                name
            });
        };
        spawn("letting workers in", Box::pin(Arc::clone(this).joins(joins)));
        spawn("making consumers", Box::pin(Arc::clone(this).follows(follows)));
        spawn("answering alerts", Box::pin(Arc::clone(this).opens(opens)));
        spawn("watching workers", Box::pin(Arc::clone(this).presence(presence)));
        spawn("receiving hints", Box::pin(Arc::clone(this).hints(hints)));
        spawn("reporting available Experts", Box::pin(Arc::clone(this).attend()));
        spawn("measuring", Box::pin(Arc::clone(this).measure()));
        let (take, work) = (this.intake.clone(), this.intake.clone());
        spawn("taking alerts", Box::pin(async move { take.take(subject::ALERTS).await }));
        spawn("taking jobs", Box::pin(async move { work.work().await }));
        Ok(())
    }
}

impl Shared {
    fn roster(&self) -> std::sync::MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn joins(self: Arc<Self>, mut joins: Requests) {
        while let Some(asked) = joins.next().await {
            self.joined(&asked).await;
        }
    }

    async fn opens(self: Arc<Self>, mut opens: Requests) {
        let mut answering = JoinSet::new();
        while let Some(asked) = opens.next().await {
            while answering.try_join_next().is_some() {}
            let this = Arc::clone(&self);
            answering.spawn(async move { this.opened(&asked).await });
        }
    }

    async fn presence(self: Arc<Self>, mut presence: Box<dyn Subscription>) {
        while let Some(message) = presence.next().await {
            self.seen(&message.subject, &message.bytes);
        }
    }

    /// Measures what waits and who works.
    async fn measure(self: Arc<Self>) {
        loop {
            if meter::on() {
                meter::live(self.intake.under_way() as u64);
                for (queue, processes) in self.roster().counts(self.env.clock.now()) {
                    meter::present(&queue, processes as u64);
                }
                match self.nats.queues().await {
                    Ok(queues) => queues.iter().for_each(|one| meter::queue(&one.name, one.waiting, one.held)),
                    Err(error) => tracing::debug!(%error, "could not read the queues"),
                }
            }
            tokio::time::sleep(MEASURE).await;
        }
    }

    async fn hints(self: Arc<Self>, mut hints: Box<dyn Subscription>) {
        while hints.next().await.is_some() {
            self.intake.hint();
        }
    }

    /// Reads a worker's message. The subject identifies its queue; messages for other queues are refused.
    fn read(bytes: &[u8], subject: &str, of: fn(&Queue) -> String) -> Result<Join, String> {
        // Another version may send fields that this version cannot read.
        #[derive(serde::Deserialize)]
        struct Versioned {
            protocol: u16,
        }
        let join: Join = serde_json::from_slice(bytes).map_err(|e| match serde_json::from_slice(bytes) {
            Ok(Versioned { protocol }) if protocol != WIRE_VERSION => {
                format!("it uses protocol version {protocol}, this Hub uses {WIRE_VERSION}")
            }
            _ => format!("expected a request to join: {e}"),
        })?;
        if of(&join.queue()) == subject {
            return Ok(join);
        }
        Err(format!("{} may not publish to {subject}", join.queue().name()))
    }

    async fn joined(&self, asked: &Asked) {
        let refused = match Self::read(&asked.bytes, &asked.subject, subject::join) {
            Err(reason) => Some((reason, true)),
            Ok(join) => {
                let answer = self.roster().join(&join, self.env.clock.now());
                match answer {
                    Err(refusal) => Some((refusal.reason, refusal.for_good)),
                    Ok(()) => match self.nats.prepare_queue(&join.queue(), self.keeping).await {
                        Ok(()) => None,
                        Err(error) => Some((error.to_string(), false)),
                    },
                }
            }
        };
        if let Some((reason, _)) = &refused {
            tracing::warn!(reason, subject = asked.subject, "refused worker");
        }
        let for_good = refused.as_ref().is_some_and(|(_, for_good)| *for_good);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let joined = Joined { protocol: WIRE_VERSION, version, refused: refused.map(|(reason, _)| reason), for_good };
        self.nats.answer(asked, serde_json::to_vec(&joined).unwrap_or_default()).await;
    }

    fn seen(&self, subject: &str, bytes: &[u8]) {
        let seen = Self::read(bytes, subject, subject::presence)
            .and_then(|join| self.roster().see(&join, self.env.clock.now()).map_err(|refusal| refusal.reason));
        if let Err(error) = seen {
            tracing::warn!(error, subject, "ignored sign of life");
        }
    }

    async fn opened(&self, asked: &Asked) {
        let accepted = tokio::select! {
            // The sender does not wait for long.
            why = self.nats.outage_begins() => Err(format!("{why}; then send the alert again")),
            accepted = self.intake.accept(&asked.bytes, Source::Nats) => accepted.map_err(|refused| refused.to_string()),
        };
        let answer = match accepted {
            Ok(accepted) => OpenAnswer::from(&accepted),
            Err(error) => OpenAnswer::Refused { error },
        };
        self.nats.answer(asked, serde_json::to_vec(&answer).unwrap_or_default()).await;
    }

    async fn follows(self: Arc<Self>, mut follows: Requests) {
        while let Some(asked) = follows.next().await {
            let answer = match self.followed(&asked.bytes).await {
                Ok(consumers) => Followed::Made { consumers },
                Err(error) => Followed::Refused { error },
            };
            self.nats.answer(&asked, serde_json::to_vec(&answer).unwrap_or_default()).await;
        }
    }

    async fn followed(&self, bytes: &[u8]) -> Result<Vec<Consumer>, String> {
        let Follow { name, from } = serde_json::from_slice(bytes).map_err(|e| format!("expected a name: {e}"))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !(1..=32).contains(&name.len()) || !name.chars().all(plain) {
            return Err(format!("expected a name of 1 to 32 letters, digits, - and _, got {:?}", one_line(&name, 80)));
        }
        let from_start = matches!(from, Beginning::Start);
        self.nats.prepare_follower(&name, from_start, self.keeping).await.map_err(|e| e.to_string())?;
        Ok(FOLLOWED.iter().map(|(stream, subject)| Consumer { stream, subject, consumer: name.clone() }).collect())
    }

    async fn attend(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ATTEND).await;
            let hears = self.nats.answers(ATTEND).await;
            let now = self.env.clock.now();
            let present = {
                let mut roster = self.roster();
                roster.awake(hears, now);
                roster.present(now)
            };
            if let Some(present) = present
                && self.hub.attend(present).await.is_err()
            {
                return;
            }
        }
    }
}
