//! The one door for alerts. [`Intake::accept`] takes raw bytes from any [`Source`]: the one-shot command, MCP and
//! NATS have the same rules for duplicates ([`known`]), limits, and order by severity.
//!
//! An accepted alert is a job in the queue of its severity. [`Intake::work`] takes the most urgent one whenever a
//! place is free, and holds its lease for as long as the investigation goes on: when the process dies, the job comes
//! to another Hub, or the log of the data folder still has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use casebook_protocol::{
    Alert, AlertError, AlertId, Budget, DeadLetter, InvestigationId, Member, Report, Severity, subject,
};
use casebook_runtime::Env;
use casebook_runtime::bus::{BusError, Delivery};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::actor::HubHandle;
use crate::decide::Rejection;
use crate::error::HubError;
use crate::state::{Case, State};

pub mod known;
#[cfg(test)]
mod tests;

use known::Known;
pub use known::investigation_id;

/// How often the queues are looked at without a hint: another Hub may have died with a case.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before an investigation that could not go on is tried again.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A person who runs a command.
    Command,
    Mcp,
    Nats,
}

/// How alerts are taken in.
#[derive(Debug, Clone)]
pub struct Settings {
    pub budget: Budget,
    /// Investigations at once. Further alerts wait in order of severity.
    pub at_once: usize,
    /// Alerts that may wait in this process; more are refused. None where the queue has its own limit.
    pub waiting: Option<usize>,
    /// Where the evidence is; empty when Experts bring their own. The same alert over other evidence is another
    /// investigation.
    pub evidence: String,
    /// Write the alert into the log when it is accepted: for a queue that does not outlive the process.
    pub record_first: bool,
}

/// The Experts that are there now; none while that is not known yet.
pub type Members = Arc<dyn Fn() -> Option<Vec<Member>> + Send + Sync>;

/// An accepted alert. It is kept: a crash does not lose it.
#[derive(Debug)]
pub struct Accepted {
    pub investigation: InvestigationId,
    pub alert: AlertId,
    /// How urgent it is.
    pub severity: Severity,
    /// The investigation is new. Otherwise it goes on, or has ended.
    pub fresh: bool,
    /// The report, as soon as this process has ended the investigation.
    pub ended: oneshot::Receiver<Result<Report, HubError>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The bytes are not an alert. They never will be.
    #[error(transparent)]
    Alert(#[from] AlertError),
    #[error("{waiting} alerts wait already; send this one again when some of them have begun")]
    Full { waiting: usize },
    #[error(transparent)]
    Hub(#[from] HubError),
}

/// An alert on its way to the Hub that investigates it. JSON: it may wait for longer than a version of our messages
/// lasts.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    investigation: InvestigationId,
    alert: Alert,
}

type Watcher = oneshot::Sender<Result<Report, HubError>>;

/// The door. Clones are the same one.
#[derive(Clone)]
pub struct Intake {
    env: Env,
    hub: HubHandle,
    settings: Arc<Settings>,
    members: Members,
    wake: Arc<Notify>,
    permits: Arc<Semaphore>,
    running: Arc<Mutex<JoinSet<()>>>,
    /// What waits, where this process limits it.
    waiting: Arc<Mutex<BTreeSet<InvestigationId>>>,
    watchers: Arc<Mutex<BTreeMap<InvestigationId, Vec<Watcher>>>>,
    /// One alert at a time where the log comes before the queue: two of the same are one investigation.
    accepting: Arc<tokio::sync::Mutex<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Intake {
    /// A door to `hub`. Nothing is worked on before [`Intake::work`].
    #[must_use]
    pub fn new(env: Env, hub: HubHandle, settings: Settings, members: Members) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(settings.at_once)),
            env,
            hub,
            settings: Arc::new(settings),
            members,
            wake: Arc::default(),
            running: Arc::default(),
            waiting: Arc::default(),
            watchers: Arc::default(),
            accepting: Arc::default(),
        }
    }

    /// Accepts an alert: reads it, finds its investigation, and puts it into the queue of its severity.
    ///
    /// # Errors
    /// [`Refused`] when it is not an alert, too many wait, or it cannot be kept now.
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
        if accepted.fresh {
            self.room()?;
        }
        if self.settings.record_first {
            self.hub.record(&investigation, self.case(alert.clone())).await?;
        }
        self.watch(&investigation, sender);
        self.enqueue(Job { investigation, alert }).await?;
        Ok(accepted)
    }

    /// Puts an investigation that was recorded and has not ended into the queue again.
    ///
    /// # Errors
    /// The bus is closed. One that was never opened is no error, and nothing is done.
    pub async fn again(&self, investigation: &InvestigationId, state: &State) -> Result<(), HubError> {
        let Some(case) = &state.case else { return Ok(()) };
        self.enqueue(Job { investigation: investigation.clone(), alert: case.alert.clone() }).await
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
            tracing::debug!(%error, "other Hubs find the alert without a hint");
        }
        Ok(())
    }

    /// An alert waits: looks at the queues now.
    pub fn hint(&self) {
        self.wake.notify_one();
    }

    /// No more alerts are taken: the process drains.
    pub fn draining(&self) -> bool {
        self.permits.is_closed()
    }

    pub fn under_way(&self) -> usize {
        let mut running = locked(&self.running);
        while running.try_join_next().is_some() {}
        running.len()
    }

    /// Takes nothing more, records what is decided, and gives back what is not finished: another Hub, or the next
    /// start, goes on with it.
    pub async fn drain(&self) -> Result<(), HubError> {
        self.permits.close();
        self.hub.suspend().await?;
        let mut running = std::mem::take(&mut *locked(&self.running));
        while running.join_next().await.is_some() {}
        Ok(())
    }

    /// Investigates what waits, the most urgent first, until [`Intake::drain`].
    pub async fn work(&self) {
        let mut alone = false;
        while let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await {
            let case = loop {
                if self.draining() {
                    return;
                }
                let anyone = (self.members)().map(|members| !members.is_empty());
                if !std::mem::replace(&mut alone, anyone == Some(false)) && alone {
                    tracing::warn!("no Expert is there: alerts wait until one is");
                }
                if anyone == Some(true)
                    && let Some(case) = self.most_urgent().await
                {
                    break case;
                }
                // A timeout is a look without a hint.
                let _ = tokio::time::timeout(LOOK, self.wake.notified()).await;
            };
            // There may be more.
            self.wake.notify_one();
            let this = self.clone();
            let mut running = locked(&self.running);
            while running.try_join_next().is_some() {}
            running.spawn(async move { this.investigate(case, permit).await });
        }
    }

    async fn most_urgent(&self) -> Option<Box<dyn Delivery>> {
        for severity in Severity::ALL.into_iter().rev() {
            match self.env.bus.try_pull(&subject::cases(severity)).await {
                Ok(Some(case)) => return Some(case),
                Ok(None) => {}
                Err(BusError::Closed) => return None,
                Err(error) => tracing::error!(%error, "cannot take a case"),
            }
        }
        None
    }

    /// Holds the job for as long as the investigation goes on.
    async fn investigate(&self, delivery: Box<dyn Delivery>, permit: OwnedSemaphorePermit) {
        let result = self.run(delivery.bytes()).await;
        let answered = match &result {
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
            tracing::warn!(%error, "a case was not acknowledged and comes again: the log has what was done");
        }
        drop(permit);
    }

    async fn run(&self, bytes: &[u8]) -> Result<(), HubError> {
        let unread = |e: serde_json::Error| HubError::Defect(format!("a case cannot be read: {e}"));
        let Job { investigation, alert } = serde_json::from_slice(bytes).map_err(unread)?;
        locked(&self.waiting).remove(&investigation);
        let result = self.report(&investigation, alert).await;
        // The same alert may have come again meanwhile: the bus does not queue what is under lease.
        locked(&self.waiting).remove(&investigation);
        let ended = result.as_ref().map(drop).map_err(Clone::clone);
        for watcher in locked(&self.watchers).remove(&investigation).unwrap_or_default() {
            // Most of them do not wait.
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

    /// Gives a delivery up. Without a letter it is not dropped: it comes again.
    pub async fn bury(&self, delivery: Box<dyn Delivery>, reason: &str) -> Result<(), BusError> {
        let attempts = delivery.attempt();
        let letter = DeadLetter { task: None, investigation: None, reason: reason.to_owned(), attempts, message: None };
        match self.env.bury(letter, subject::DEAD_HUB, delivery.bytes()).await {
            Ok(()) => delivery.done().await,
            Err(error) => {
                tracing::error!(%error, reason, "a dead letter was not written: its message comes again");
                delivery.back(AGAIN).await
            }
        }
    }

    /// Takes the alerts that were published to `subject`, until [`Intake::drain`].
    pub async fn take(&self, subject: &str) {
        loop {
            let delivery = match self.env.bus.pull(subject).await {
                Ok(delivery) => delivery,
                Err(BusError::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "cannot take alerts");
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
            };
            if self.draining() {
                // Dropped, it goes back: another Hub takes it.
                return;
            }
            let answered = match self.accept(delivery.bytes(), Source::Nats).await {
                Ok(_) => delivery.done().await,
                Err(Refused::Alert(error)) => {
                    tracing::error!(%error, "a message on the alert subject is not an alert: it goes to the dead letters");
                    self.bury(delivery, &error.to_string()).await
                }
                Err(error @ (Refused::Full { .. } | Refused::Hub(_))) => {
                    tracing::error!(%error, "an alert cannot be kept yet and comes again");
                    delivery.back(AGAIN).await
                }
            };
            if let Err(error) = answered {
                tracing::warn!(%error, "an alert was not acknowledged and comes again");
            }
        }
    }
}
