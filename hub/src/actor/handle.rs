//! What others hold of the Hub: no channel and no actor leaves it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::{AlertId, Domain, InvestigationId, Report};
use casebook_runtime::Env;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    Activate, Everyone, Find, HubAddr, HubObservation, InvestigationAddr, ObserveOne, Suspend, SuspendAll, Take, Wait,
};
use crate::archive::{self, Summary};
use crate::decide::{Command, Rejection};
use crate::desk::Work;
use crate::error::HubError;
use crate::ledger::Ledger;
use crate::state::{Case, State};

/// Names are made under this one, so that an id is the same wherever it is made.
const NAMESPACE: Uuid = Uuid::from_u128(0x6361_7365_626f_5f6b_8000_0000_0000_0001);

/// So often an opening is tried again because another Hub was first.
const ATTEMPTS: u32 = 16;

/// What an alert that came before means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// An unfinished investigation of the same alert on the same evidence goes on; otherwise a new one
    /// begins.
    SameIfUnfinished,
    /// The same alert is the same investigation, always.
    Once,
}

/// An opened investigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its id.
    pub investigation: InvestigationId,
    /// It was begun now; otherwise it goes on, or has ended.
    pub fresh: bool,
}

/// The Hub of this process. Clones are the same Hub.
#[derive(Clone)]
pub struct HubHandle {
    hub: HubAddr,
    env: Env,
}

/// The id of the `n`th investigation of an alert, from 1: the same wherever it is made.
#[must_use]
pub fn investigation_id(alert: &AlertId, n: u32) -> InvestigationId {
    // No alert id holds a line break.
    let id = Uuid::new_v5(&NAMESPACE, format!("{alert}\n{n}").as_bytes()).hyphenated().to_string();
    InvestigationId::new(id).unwrap_or_else(|_| unreachable!("a UUID in lower case is an investigation id"))
}

impl HubHandle {
    /// Starts the Hub; to be called on the system of `casebook_runtime::process::run`. Every `sweep` it looks for outcomes that
    /// nobody told of and hands out again what nobody works on; 5 s serves well.
    #[must_use]
    pub fn start(env: Env, sweep: Duration) -> Self {
        Self { hub: super::start(env.clone(), sweep), env }
    }

    /// Opens an investigation and works on it; `run` says what an alert that came before means.
    ///
    /// # Errors
    /// When the roster cannot be worked with, the store fails, or the Hub is suspended.
    pub async fn open(&self, case: Case, run: Run) -> Result<Opened, HubError> {
        let mut n = 1;
        for _ in 0..ATTEMPTS {
            let investigation;
            (n, investigation) = self.run_of(&case, run, n).await?;
            let ledger = Ledger::load(&self.env, &investigation).await?;
            if ledger.state().case.is_some() {
                self.activate(&investigation).await?;
                return Ok(Opened { investigation, fresh: false });
            }
            let (_, passed) = ledger.pass(vec![Command::Open(Box::new(case.clone()))], false).await?;
            match passed.answers.into_iter().next() {
                Some(Err(Rejection::AlreadyOpen)) => {}
                Some(Err(rejection)) => return Err(rejection.into()),
                Some(Ok(())) | None => {
                    self.activate(&investigation).await?;
                    return Ok(Opened { investigation, fresh: true });
                }
            }
        }
        Err(HubError::Contended(investigation_id(&case.alert.id, n)))
    }

    /// The run to go on with or to begin, from the `n`th.
    async fn run_of(&self, case: &Case, run: Run, mut n: u32) -> Result<(u32, InvestigationId), HubError> {
        loop {
            let id = investigation_id(&case.alert.id, n);
            if run == Run::Once {
                return Ok((n, id));
            }
            let state = archive::replay(self.env.store.as_ref(), &id).await?;
            match &state.case {
                Some(before) if state.closed.is_some() || before.evidence != case.evidence => n += 1,
                _ => return Ok((n, id)),
            }
        }
    }

    async fn activate(&self, investigation: &InvestigationId) -> Result<InvestigationAddr, HubError> {
        self.hub.send(Activate(investigation.clone())).await.map_err(|_| HubError::Stopped)?
    }

    /// Goes on with an investigation. No effect on one that is worked on or closed.
    ///
    /// # Errors
    /// When there is none of this id, its log is not intact, the store fails, or the Hub is
    /// suspended.
    pub async fn resume(&self, investigation: &InvestigationId) -> Result<(), HubError> {
        archive::state(self.env.store.as_ref(), investigation).await?;
        self.activate(investigation).await.map(drop)
    }

    /// Lets an investigation go to its report as soon as the tasks under way have ended.
    ///
    /// # Errors
    /// When it is closed or stopping already, and as [`HubHandle::resume`].
    pub async fn stop(&self, investigation: &InvestigationId, reason: &str) -> Result<(), HubError> {
        self.resume(investigation).await?;
        let addr = self.activate(investigation).await?;
        let (reply, answer) = oneshot::channel();
        addr.send(Take(Work::Stop(reason.to_owned(), reply)))
            .await
            .map_err(|_| HubError::NotRunning(investigation.clone()))?;
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(_) => self.why_not(investigation).await,
        }
    }

    /// Hands out no more tasks and answers when all that was decided is recorded. Tasks under way may
    /// end; their outcomes are recorded and wait for whoever resumes.
    ///
    /// # Errors
    /// When the Hub has stopped.
    pub async fn suspend(&self) -> Result<(), HubError> {
        for addr in self.hub.send(SuspendAll).await.map_err(|_| HubError::Stopped)? {
            let (reply, done) = oneshot::channel();
            if addr.send(Suspend(reply)).await.is_ok() {
                // No answer: it has ended in the meantime.
                let _ = done.await;
            }
        }
        Ok(())
    }

    /// The report, when the investigation is closed.
    ///
    /// # Errors
    /// When nobody works on it and it is not closed, when the store failed, or when the Hub was
    /// suspended.
    pub async fn wait(&self, investigation: &InvestigationId) -> Result<Report, HubError> {
        if let Some(addr) = self.hub.send(Find(investigation.clone())).await.map_err(|_| HubError::Stopped)?? {
            let (reply, ending) = oneshot::channel();
            if addr.send(Wait(reply)).await.is_ok()
                && let Ok(ending) = ending.await
            {
                return ending.map(|report| *report);
            }
        }
        let state = archive::state(self.env.store.as_ref(), investigation).await?;
        if state.closed.is_none() {
            return self.why_not(investigation).await;
        }
        archive::report(self.env.store.as_ref(), investigation).await
    }

    async fn why_not<T>(&self, investigation: &InvestigationId) -> Result<T, HubError> {
        self.hub.send(Find(investigation.clone())).await.map_err(|_| HubError::Stopped)??;
        Err(HubError::NotRunning(investigation.clone()))
    }

    /// Says to every open investigation which domains have an Expert at the moment.
    ///
    /// # Errors
    /// When the Hub has stopped.
    pub async fn attend(&self, present: BTreeSet<Domain>) -> Result<(), HubError> {
        let present = Arc::new(present);
        let (_, everyone) = self.hub.send(Everyone).await.map_err(|_| HubError::Stopped)?;
        for addr in everyone {
            // One that is busy hears it the next time.
            let _ = addr.try_send(Take(Work::Attend(Arc::clone(&present))));
        }
        Ok(())
    }

    /// Every investigation, the latest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self) -> Result<Vec<Summary>, HubError> {
        archive::summaries(self.env.store.as_ref()).await
    }

    /// The state of an investigation as its log has it.
    ///
    /// # Errors
    /// When there is none of this id, its log is not intact, or the store fails.
    pub async fn state(&self, investigation: &InvestigationId) -> Result<State, HubError> {
        archive::state(self.env.store.as_ref(), investigation).await
    }

    /// How the Hub is.
    ///
    /// # Errors
    /// When it has stopped.
    pub async fn observe(&self) -> Result<HubObservation, HubError> {
        let (suspended, everyone) = self.hub.send(Everyone).await.map_err(|_| HubError::Stopped)?;
        let mut open = Vec::new();
        for addr in everyone {
            if let Ok(Ok(one)) = addr.send(ObserveOne).await {
                open.push(one);
            }
        }
        Ok(HubObservation { suspended, open })
    }
}
