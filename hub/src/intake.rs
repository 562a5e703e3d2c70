//! [`Intake::accept`] takes alerts from every [`Source`] with the same rules for duplicates ([`known`]), limits
//! and order by severity.
//!
//! An accepted alert is a job in the queue of its severity. [`Intake::work`] takes the most urgent job when a
//! slot is free and holds its lease while the investigation runs. If the process dies, another Hub gets the
//! job, or the log in the data folder still has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use casebook_protocol::{
    Alert, AlertError, AlertId, Budget, DeadLetter, InvestigationId, Member, Report, Severity, Timestamp, subject,
};
use casebook_runtime::Env;
use casebook_runtime::bus::{BusError, Delivery, Failing};
use casebook_runtime::telemetry::meter;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::actor::HubHandle;
use crate::decide::Rejection;
use crate::error::HubError;
use crate::examination;
use crate::state::{Case, State};

mod announce;
pub mod known;
mod pace;
#[cfg(test)]
mod tests;

pub use announce::OpenAnswer;
use known::Known;
pub use known::{Source, Wish, investigation_id};
pub use pace::Capacity;
use pace::{AGAIN, LOOK, SOON, patience};

#[derive(Debug, Clone)]
pub struct Settings {
    pub budget: Budget,
    /// Investigations that run at once. Further alerts wait in order of severity.
    pub at_once: usize,
    /// Maximum number of alerts that wait in this process; more are refused. `None` if the queue has its own limit.
    pub waiting: Option<usize>,
    /// Where the evidence is; empty if the Experts have their own. The same alert with other evidence is
    /// another investigation.
    pub evidence: String,
    /// Write the alert to the log on acceptance, because the queue does not survive the process.
    pub record_first: bool,
}

/// The Experts that are available; `None` if that is not known yet.
pub type Members = Arc<dyn Fn() -> Option<Vec<Member>> + Send + Sync>;

/// An alert that is stored: a crash does not lose it.
#[derive(Debug)]
pub struct Accepted {
    pub investigation: InvestigationId,
    pub alert: AlertId,
    pub severity: Severity,
    /// False if the investigation existed.
    pub fresh: bool,
    /// The report, once this process has ended the investigation.
    pub ended: oneshot::Receiver<Result<Report, HubError>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Alert(#[from] AlertError),
    #[error("{waiting} alerts wait already; send this one again when some of them have begun")]
    Full { waiting: usize },
    #[error(transparent)]
    Hub(#[from] HubError),
}

/// The job of one alert. JSON, because it may wait longer than one version of our messages is in use.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    investigation: InvestigationId,
    alert: Alert,
    /// When the alert came; none if the job continues an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<Timestamp>,
}

type Watcher = oneshot::Sender<Result<Report, HubError>>;

/// Clones share one state.
#[derive(Clone)]
pub struct Intake {
    env: Env,
    hub: HubHandle,
    settings: Arc<Settings>,
    members: Members,
    capacity: Capacity,
    wake: Arc<Notify>,
    permits: Arc<Semaphore>,
    running: Arc<Mutex<JoinSet<()>>>,
    /// What waits, if `Settings::waiting` limits it.
    waiting: Arc<Mutex<BTreeSet<InvestigationId>>>,
    watchers: Arc<Mutex<BTreeMap<InvestigationId, Vec<Watcher>>>>,
    /// Serialises acceptance if the log is written first, so that equal alerts become one investigation.
    accepting: Arc<tokio::sync::Mutex<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Intake {
    /// Work starts with [`Intake::work`].
    #[must_use]
    pub fn new(env: Env, hub: HubHandle, settings: Settings, members: Members) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(settings.at_once)),
            env,
            hub,
            settings: Arc::new(settings),
            members,
            capacity: Arc::new(|| None),
            wake: Arc::default(),
            running: Arc::default(),
            waiting: Arc::default(),
            watchers: Arc::default(),
            accepting: Arc::default(),
        }
    }

    /// Parses an alert, finds its investigation, and enqueues it.
    pub async fn accept(&self, raw: &[u8], source: Source) -> Result<Accepted, Refused> {
        let alert = Alert::parse(raw)?;
        let _one = if self.settings.record_first { Some(self.accepting.lock().await) } else { None };
        let Known { investigation, state } = self.known(&alert.id, source).await?;
        let (sender, ended) = oneshot::channel();
        let accepted = Accepted {
            investigation: investigation.clone(),
            alert: alert.id.clone(),
            severity: alert.severity,
            fresh: state.is_none(),
            ended,
        };
        if state.is_some_and(|state| state.closed.is_some()) {
            return Ok(accepted);
        }
        let mut case = self.case(alert.clone());
        case.budget = source.budget().unwrap_or(case.budget);
        if accepted.fresh {
            self.room()?;
            if let Some(why) = examination::too_small(&case.budget, &case.roster) {
                return Err(HubError::from(Rejection::BudgetTooSmall(why)).into());
            }
        }
        if self.settings.record_first {
            self.hub.record(&investigation, case).await?;
        }
        self.watch(&investigation, sender);
        if accepted.fresh {
            self.announce(&accepted).await?;
        }
        let now = accepted.fresh.then(|| self.env.clock.now());
        self.enqueue(Job { investigation, alert, accepted: now }).await?;
        Ok(accepted)
    }

    /// Enqueues a recorded investigation that has not ended. No effect if it was never opened.
    pub async fn again(&self, investigation: &InvestigationId, state: &State) -> Result<(), HubError> {
        let Some(case) = &state.case else { return Ok(()) };
        self.enqueue(Job { investigation: investigation.clone(), alert: case.alert.clone(), accepted: None }).await
    }

    fn room(&self) -> Result<(), Refused> {
        let waiting = locked(&self.waiting).len();
        match self.settings.waiting {
            Some(most) if waiting >= most => Err(Refused::Full { waiting }),
            _ => Ok(()),
        }
    }

    fn case(&self, alert: Alert) -> Case {
        let roster = (self.members)().unwrap_or_default();
        Case { alert, budget: self.settings.budget, roster, evidence: self.settings.evidence.clone() }
    }

    fn watch(&self, investigation: &InvestigationId, sender: oneshot::Sender<Result<Report, HubError>>) {
        let mut watchers = locked(&self.watchers);
        watchers.retain(|_, waiting| {
            waiting.retain(|sender| !sender.is_closed());
            !waiting.is_empty()
        });
        watchers.entry(investigation.clone()).or_default().push(sender);
    }

    async fn enqueue(&self, job: Job) -> Result<(), HubError> {
        let queue = subject::cases(job.alert.severity);
        let bytes =
            serde_json::to_vec(&job).map_err(|e| HubError::Defect(format!("an alert cannot be written: {e}")))?;
        let closed = |e: BusError| HubError::Bus(e.to_string());
        self.env.bus.enqueue(&queue, job.investigation.as_str(), bytes).await.map_err(closed)?;
        if self.settings.waiting.is_some() {
            locked(&self.waiting).insert(job.investigation);
        }
        self.wake.notify_one();
        if let Err(error) = self.env.bus.publish(subject::WAITING, Vec::new()).await {
            tracing::debug!(%error, "could not publish hint; other Hubs find the alert later");
        }
        Ok(())
    }

    pub fn hint(&self) {
        self.wake.notify_one();
    }

    /// Whether the process is shutting down and takes no more alerts.
    pub fn draining(&self) -> bool {
        self.permits.is_closed()
    }

    pub fn under_way(&self) -> usize {
        let mut running = locked(&self.running);
        while running.try_join_next().is_some() {}
        running.len()
    }

    /// Takes no more jobs, records what is decided, and returns unfinished jobs to the queue.
    pub async fn drain(&self) -> Result<(), HubError> {
        self.permits.close();
        self.hub.suspend().await?;
        let mut running = std::mem::take(&mut *locked(&self.running));
        while running.join_next().await.is_some() {}
        Ok(())
    }

    /// Investigates waiting alerts, the most urgent first, until [`Intake::drain`].
    pub async fn work(&self) {
        let (mut alone, mut failing) = (false, Failing::default());
        while let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await {
            let case = loop {
                if self.draining() {
                    return;
                }
                let anyone = (self.members)().map(|members| !members.is_empty());
                if !std::mem::replace(&mut alone, anyone == Some(false)) && alone {
                    tracing::warn!("no Expert available; alerts wait until one joins");
                }
                let may = self.may_begin().await;
                if may
                    && anyone == Some(true)
                    && let Some(case) = self.most_urgent(&mut failing).await
                {
                    break case;
                }
                let _ = tokio::time::timeout(if may { LOOK } else { SOON }, self.wake.notified()).await;
            };
            self.wake.notify_one();
            let this = self.clone();
            let mut running = locked(&self.running);
            while running.try_join_next().is_some() {}
            running.spawn(async move { this.investigate(case, permit).await });
        }
    }

    async fn most_urgent(&self, failing: &mut Failing) -> Option<Box<dyn Delivery>> {
        for severity in Severity::ALL.into_iter().rev() {
            let taken = self.env.bus.try_pull(&subject::cases(severity)).await;
            failing.note(&taken);
            match taken {
                Ok(Some(case)) => return Some(case),
                Err(BusError::Closed) => return None,
                Ok(None) | Err(_) => {}
            }
        }
        None
    }

    /// Holds the job's lease while the investigation runs.
    async fn investigate(&self, delivery: Box<dyn Delivery>, permit: OwnedSemaphorePermit) {
        let result = self.run(delivery.bytes(), delivery.attempt()).await;
        let answered = match &result {
            Ok(()) => delivery.done().await,
            Err(error @ HubError::Rejected(Rejection::NoExperts)) => {
                // The Experts left after the job was taken.
                tracing::warn!(%error, "no Experts available; alert returned to the queue");
                delivery.back(AGAIN).await
            }
            Err(error @ (HubError::Broken { .. } | HubError::Defect(_) | HubError::Rejected(_))) => {
                tracing::error!(%error, "investigation failed; alert moved to the dead letters");
                self.bury(delivery, &error.to_string()).await
            }
            Err(HubError::NotInvestigated { investigation, reason, rounds }) => {
                let wait = patience(*rounds);
                tracing::warn!(%investigation, reason, seconds = wait.as_secs(), "not investigated; it is tried again");
                self.later(delivery, wait).await
            }
            Err(HubError::Suspended) => delivery.back(Duration::ZERO).await,
            Err(error) => {
                tracing::error!(%error, "investigation interrupted; it is tried again");
                delivery.back(AGAIN).await
            }
        };
        if let Err(error) = answered {
            tracing::warn!(%error, "could not acknowledge job; it is repeated, and the log has what was done");
        }
        drop(permit);
    }

    /// Tries a job again after `wait`. A queue in memory does not hold it meanwhile, so that the same alert goes on at
    /// once.
    async fn later(&self, delivery: Box<dyn Delivery>, wait: Duration) -> Result<(), BusError> {
        if !self.settings.record_first {
            return delivery.back(wait).await;
        }
        if let Ok(job) = serde_json::from_slice(delivery.bytes()) {
            let this = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                if let Err(error) = this.enqueue(job).await {
                    tracing::debug!(%error, "no longer tried again: the process stops");
                }
            });
        }
        delivery.done().await
    }

    async fn run(&self, bytes: &[u8], attempt: u32) -> Result<(), HubError> {
        let unread = |e: serde_json::Error| HubError::Defect(format!("a case cannot be read: {e}"));
        let Job { investigation, alert, accepted } = serde_json::from_slice(bytes).map_err(unread)?;
        locked(&self.waiting).remove(&investigation);
        if let Some(accepted) = accepted.filter(|_| attempt == 1) {
            meter::begun(alert.severity.name(), meter::seconds(accepted, self.env.clock.now()));
        }
        tracing::info!(%investigation, attempt, "begun");
        let result = self.report(&investigation, alert).await;
        // The same alert may have come again meanwhile: the bus does not queue a leased job.
        locked(&self.waiting).remove(&investigation);
        let ended = result.as_ref().map(drop).map_err(Clone::clone);
        for watcher in locked(&self.watchers).remove(&investigation).unwrap_or_default() {
            let _ = watcher.send(result.clone());
        }
        ended
    }

    async fn report(&self, investigation: &InvestigationId, alert: Alert) -> Result<Report, HubError> {
        self.hub.open(investigation, self.case(alert)).await?;
        let report = self.hub.wait(investigation).await?;
        tracing::info!(%investigation, verdict = report.verdict.name(), "concluded");
        Ok(report)
    }

    /// Moves a message to the dead letters. If that fails, the message is delivered again.
    pub async fn bury(&self, delivery: Box<dyn Delivery>, reason: &str) -> Result<(), BusError> {
        let attempts = delivery.attempt();
        let letter = DeadLetter { task: None, investigation: None, reason: reason.to_owned(), attempts, message: None };
        match self.env.bury(letter, subject::DEAD_HUB, delivery.bytes()).await {
            Ok(()) => delivery.done().await,
            Err(error) => {
                tracing::error!(%error, reason, "could not write dead letter; the message is delivered again");
                delivery.back(AGAIN).await
            }
        }
    }

    /// Takes alerts published to `subject`, until [`Intake::drain`].
    pub async fn take(&self, subject: &str) {
        let mut failing = Failing::default();
        loop {
            let pulled = self.env.bus.pull(subject).await;
            failing.note(&pulled);
            let delivery = match pulled {
                Ok(delivery) => delivery,
                Err(BusError::Closed) => return,
                Err(_) => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
            };
            if self.draining() {
                // Dropping the delivery returns it to the queue for another Hub.
                return;
            }
            let answered = match self.accept(delivery.bytes(), Source::Nats).await {
                Ok(_) => delivery.done().await,
                Err(Refused::Alert(error)) => {
                    tracing::error!(%error, "message is not an alert; moved to the dead letters");
                    self.bury(delivery, &error.to_string()).await
                }
                Err(error @ (Refused::Full { .. } | Refused::Hub(_))) => {
                    tracing::error!(%error, "could not store alert; it is delivered again");
                    delivery.back(AGAIN).await
                }
            };
            if let Err(error) = answered {
                tracing::warn!(%error, "could not acknowledge alert; it is delivered again");
            }
        }
    }
}
