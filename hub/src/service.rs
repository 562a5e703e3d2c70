//! A Hub over NATS: it lets workers in, takes alerts, and investigates as many of them at once as it may.
//! Any number of Hubs share the work. An accepted alert is a job that one Hub holds under lease for as
//! long as it investigates; when that Hub dies, the job comes to another, which goes on from the log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use casebook_protocol::DeadLetter;
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{Alert, Budget, Join, Joined, Role, Severity};
use casebook_runtime::Env;
use casebook_runtime::bus::{BusError, Delivery};
use casebook_runtime::nats::streams::Keeping;
use casebook_runtime::nats::{Asked, Connection, NatsError};
use casebook_runtime::wire::WIRE_VERSION;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::actor::{HubHandle, Run, investigation_id};
use crate::decide::Rejection;
use crate::error::HubError;
use crate::roster::Roster;
use crate::state::Case;

/// How often a Hub looks for alerts that wait although nobody told of them: another Hub may have died.
const LOOK: Duration = Duration::from_secs(2);
/// How often it tells the open investigations who is there.
const ATTEND: Duration = Duration::from_secs(2);
/// The pause before an investigation that could not go on is tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// Where one of many Hubs answers a request.
const GROUP: &str = "hubs";

/// How a Hub serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What an investigation may cost.
    pub budget: Budget,
    /// Investigations at once; further alerts wait in order of severity.
    pub at_once: usize,
    /// How the streams are kept.
    pub keeping: Keeping,
    /// How often it looks for what nobody told it of.
    pub sweep: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Budget::default(), at_once: 64, keeping: Keeping::default(), sweep: Duration::from_secs(15) }
    }
}

/// A Hub that serves. Clones are the same one.
#[derive(Clone)]
pub struct Service {
    nats: Connection,
    env: Env,
    hub: HubHandle,
    settings: Settings,
    roster: Arc<Mutex<Roster>>,
    wake: Arc<Notify>,
    permits: Arc<Semaphore>,
    running: Arc<Mutex<JoinSet<()>>>,
}

/// The answer to `casebook.open`, JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum OpenAnswer {
    /// The alert is accepted and kept.
    Accepted {
        /// Its investigation: the same for the same alert.
        investigation: String,
        /// The alert as we name it.
        alert: String,
        /// How urgent it is.
        severity: String,
    },
    /// It is not.
    Refused {
        /// What was wrong and what to do.
        error: String,
    },
}

impl Service {
    /// Makes the streams, or checks them, and starts to serve; to be called on the system of
    /// `casebook_runtime::process::run`.
    ///
    /// # Errors
    /// [`NatsError`] when a stream is there with another configuration, or the server fails.
    pub async fn start(nats: Connection, settings: Settings) -> Result<Self, NatsError> {
        nats.prepare(settings.keeping).await?;
        for role in [Role::Director, Role::Critic] {
            nats.prepare_queue(&Queue::new(role, None), settings.keeping).await?;
        }
        let env = nats.env();
        let service = Self {
            hub: HubHandle::start(env.clone(), settings.sweep),
            roster: Arc::new(Mutex::new(Roster::new(WIRE_VERSION, env.clock.now()))),
            wake: Arc::default(),
            permits: Arc::new(Semaphore::new(settings.at_once)),
            running: Arc::default(),
            nats,
            env,
            settings,
        };
        service.serve().await?;
        Ok(service)
    }

    /// The Hub behind it.
    #[must_use]
    pub const fn hub(&self) -> &HubHandle {
        &self.hub
    }

    /// Every queue with how many instances of its workers are there.
    #[must_use]
    pub fn workers(&self) -> std::collections::BTreeMap<String, usize> {
        self.roster().counts(self.env.clock.now())
    }

    /// Investigations under way here.
    #[must_use]
    pub fn under_way(&self) -> usize {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.len()
    }

    /// Takes nothing more, records what is decided, and gives back what is not finished: another Hub
    /// goes on with it.
    ///
    /// # Errors
    /// When the Hub has stopped.
    pub async fn drain(&self) -> Result<(), HubError> {
        self.permits.close();
        self.hub.suspend().await?;
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        while running.join_next().await.is_some() {}
        self.nats.flush().await;
        Ok(())
    }

    fn roster(&self) -> std::sync::MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self) -> Result<(), NatsError> {
        let failed = |e: &dyn std::fmt::Display| NatsError::Failed { doing: "listen".into(), reason: e.to_string() };
        let mut joins = self.nats.serve(subject::JOINS, GROUP).await?;
        let mut opens = self.nats.serve(subject::OPEN, GROUP).await?;
        let mut presence = self.env.bus.subscribe(subject::PRESENCE).await.map_err(|e| failed(&e))?;
        let mut waiting = self.env.bus.subscribe(subject::WAITING).await.map_err(|e| failed(&e))?;
        let this = self.clone();
        tokio::spawn(async move {
            while let Some(asked) = joins.next().await {
                this.joined(&asked).await;
            }
        });
        let this = self.clone();
        tokio::spawn(async move {
            while let Some(asked) = opens.next().await {
                let this = this.clone();
                tokio::spawn(async move { this.opened(&asked).await });
            }
        });
        let this = self.clone();
        tokio::spawn(async move {
            while let Some(message) = presence.next().await {
                this.seen(&message.subject, &message.bytes);
            }
        });
        let this = self.clone();
        tokio::spawn(async move {
            while waiting.next().await.is_some() {
                this.wake.notify_one();
            }
        });
        let this = self.clone();
        tokio::spawn(async move { this.take_alerts().await });
        let this = self.clone();
        tokio::spawn(async move { this.take_cases().await });
        let this = self.clone();
        tokio::spawn(async move { this.attend().await });
        Ok(())
    }

    /// A worker speaks for its own queue alone: the subject says who it is.
    fn read(bytes: &[u8], subject: &str, of: fn(&Queue) -> String) -> Result<Join, String> {
        // Another version may say things that this one has no words for.
        #[derive(serde::Deserialize)]
        struct Versioned {
            protocol: u16,
        }
        let join: Join = serde_json::from_slice(bytes).map_err(|e| match serde_json::from_slice(bytes) {
            Ok(Versioned { protocol }) if protocol != WIRE_VERSION => {
                format!("it speaks protocol version {protocol}, this Hub speaks {WIRE_VERSION}")
            }
            _ => format!("this is no request to join: {e}"),
        })?;
        if of(&join.queue()) == subject {
            return Ok(join);
        }
        Err(format!("{} cannot speak on {subject}", join.queue().name()))
    }

    async fn joined(&self, asked: &Asked) {
        let refused = match Self::read(&asked.bytes, &asked.subject, subject::join) {
            Err(reason) => Some((reason, true)),
            Ok(join) => {
                let answer = self.roster().join(&join, self.env.clock.now());
                match answer {
                    Err(refusal) => Some((refusal.reason, refusal.for_good)),
                    Ok(()) => match self.nats.prepare_queue(&join.queue(), self.settings.keeping).await {
                        Ok(()) => None,
                        Err(error) => Some((error.to_string(), false)),
                    },
                }
            }
        };
        if let Some((reason, _)) = &refused {
            tracing::warn!(reason, subject = asked.subject, "a worker is not let in");
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
            tracing::warn!(error, subject, "a sign of life is left out");
        }
    }

    async fn opened(&self, asked: &Asked) {
        let answer = match Alert::parse(&asked.bytes) {
            Ok(alert) => self.accept(&alert).await,
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|error| OpenAnswer::Refused { error });
        self.nats.answer(asked, serde_json::to_vec(&answer).unwrap_or_default()).await;
    }

    /// Puts an alert where any Hub takes it from. When this is done the alert is kept.
    async fn accept(&self, alert: &Alert) -> Result<OpenAnswer, String> {
        let investigation = investigation_id(&alert.id, 1);
        // JSON: it may wait for longer than a version of our messages lasts.
        let job = serde_json::to_vec(alert).map_err(|e| e.to_string())?;
        let queue = subject::cases(alert.severity);
        self.env.bus.enqueue(&queue, investigation.as_str(), job).await.map_err(|e| e.to_string())?;
        if let Err(error) = self.env.bus.publish(subject::WAITING, Vec::new()).await {
            tracing::debug!(%error, "the Hubs look by themselves");
        }
        Ok(OpenAnswer::Accepted {
            investigation: investigation.to_string(),
            alert: alert.id.to_string(),
            severity: alert.severity.name().to_owned(),
        })
    }

    async fn take_alerts(&self) {
        loop {
            let delivery = match self.env.bus.pull(subject::ALERTS).await {
                Ok(delivery) => delivery,
                Err(error) => {
                    tracing::error!(%error, "cannot take alerts");
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
            };
            if self.permits.is_closed() {
                // Dropped, it goes back: another Hub takes it.
                return;
            }
            let answered = match Alert::parse(delivery.bytes()) {
                Err(error) => {
                    tracing::error!(%error, "a message on the alert subject is no alert: it goes to the dead letters");
                    self.bury(delivery, &error.to_string()).await
                }
                Ok(alert) => match self.accept(&alert).await {
                    Ok(_) => delivery.done().await,
                    Err(error) => {
                        tracing::error!(error, "an alert cannot be kept yet and comes again");
                        delivery.back(AGAIN).await
                    }
                },
            };
            if let Err(error) = answered {
                tracing::warn!(%error, "an alert was not acknowledged and comes again");
            }
        }
    }

    /// Gives a delivery up. Without a letter it is not dropped: it comes again.
    async fn bury(&self, delivery: Box<dyn Delivery>, reason: &str) -> Result<(), BusError> {
        let attempts = delivery.attempt();
        let letter = DeadLetter { task: None, investigation: None, reason: reason.to_owned(), attempts, message: None };
        match self.env.bury(letter, subject::DEAD_HUB, delivery.bytes()).await {
            Ok(()) => delivery.done().await,
            Err(error) => {
                tracing::error!(%error, reason, "a dead letter was not written: what it is about comes again");
                delivery.back(AGAIN).await
            }
        }
    }

    async fn take_cases(&self) {
        let mut alone = false;
        while let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await {
            let case = loop {
                if self.permits.is_closed() {
                    return;
                }
                let anyone = self.roster().members(self.env.clock.now()).map(|members| !members.is_empty());
                if !std::mem::replace(&mut alone, anyone == Some(false)) && alone {
                    tracing::warn!("no Expert is there: alerts that come in wait on the server until one is");
                }
                if anyone == Some(true)
                    && let Some(case) = self.most_urgent().await
                {
                    break case;
                }
                let woken = self.wake.notified();
                let _ = tokio::time::timeout(LOOK, woken).await;
            };
            // There may be more.
            self.wake.notify_one();
            let this = self.clone();
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            running.spawn(async move { this.investigate(case, permit).await });
        }
    }

    async fn most_urgent(&self) -> Option<Box<dyn Delivery>> {
        for severity in Severity::BY_URGENCY {
            match self.env.bus.try_pull(&subject::cases(severity)).await {
                Ok(Some(case)) => return Some(case),
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "cannot take a case"),
            }
        }
        None
    }

    /// Holds the job for as long as the investigation goes on.
    async fn investigate(&self, delivery: Box<dyn Delivery>, permit: OwnedSemaphorePermit) {
        let answered = match self.run(delivery.bytes()).await {
            Ok(()) => delivery.done().await,
            Err(error @ HubError::Rejected(Rejection::NoExperts)) => {
                // They were there when the case was taken, and will be again.
                tracing::warn!(%error, "an alert waits for Experts");
                delivery.back(AGAIN).await
            }
            Err(error @ (HubError::Broken { .. } | HubError::Defect(_) | HubError::Rejected(_))) => {
                tracing::error!(%error, "an investigation cannot go on: it goes to the dead letters");
                self.bury(delivery, &error.to_string()).await
            }
            Err(HubError::Suspended) => delivery.back(Duration::ZERO).await,
            Err(error) => {
                tracing::error!(%error, "an investigation cannot go on yet and is tried again");
                delivery.back(AGAIN).await
            }
        };
        if let Err(error) = answered {
            tracing::warn!(%error, "a case was not acknowledged and comes again: the log knows how far it is");
        }
        drop(permit);
    }

    async fn run(&self, bytes: &[u8]) -> Result<(), HubError> {
        let unread = |e: serde_json::Error| HubError::Defect(format!("a case is no alert: {e}"));
        let alert: Alert = serde_json::from_slice(bytes).map_err(unread)?;
        let roster = self.roster().members(self.env.clock.now()).unwrap_or_default();
        let case = Case { alert, budget: self.settings.budget, roster, evidence: String::new() };
        let opened = self.hub.open(case, Run::Once).await?;
        let report = self.hub.wait(&opened.investigation).await?;
        tracing::info!(investigation = %opened.investigation, verdict = report.verdict.name(), "concluded");
        Ok(())
    }

    async fn attend(&self) {
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
