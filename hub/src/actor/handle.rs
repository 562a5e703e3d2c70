//! What others hold of the Hub: no channel and no actor leaves it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::{Domain, InvestigationId, Report};
use casebook_runtime::Env;
use tokio::sync::oneshot;

use super::{
    Activate, Everyone, Find, HubAddr, HubObservation, InvestigationAddr, ObserveOne, Suspend, SuspendAll, Take, Wait,
};
use crate::archive;
use crate::batch::Input;
use crate::decide::{Command, Rejection};
use crate::error::HubError;
use crate::ledger::Ledger;
use crate::state::Case;

/// The Hub of this process. Clones are the same Hub.
#[derive(Clone)]
pub struct HubHandle {
    hub: HubAddr,
    env: Env,
}

impl HubHandle {
    /// Starts the Hub; to be called on the system of `casebook_runtime::process::run`. Every `sweep` it looks for outcomes that
    /// nobody told of and hands out again what nobody works on; 5 s serves well.
    #[must_use]
    pub fn start(env: Env, sweep: Duration) -> Self {
        Self { hub: super::start(env.clone(), sweep), env }
    }

    /// Opens an investigation and works on it, or goes on with it if it is open already. True if it is new.
    ///
    /// # Errors
    /// When the roster cannot be worked with, the store fails, or the Hub is suspended.
    pub async fn open(&self, investigation: &InvestigationId, case: Case) -> Result<bool, HubError> {
        let fresh = self.record(investigation, case).await?;
        self.activate(investigation).await?;
        Ok(fresh)
    }

    /// Writes the opening of an investigation into its log, and nothing more. False if it was open already.
    ///
    /// # Errors
    /// When the roster cannot be worked with, or the store fails.
    pub async fn record(&self, investigation: &InvestigationId, case: Case) -> Result<bool, HubError> {
        let ledger = Ledger::load(&self.env, investigation).await?;
        if ledger.state().case.is_some() {
            return Ok(false);
        }
        let (_, passed) = ledger.pass(vec![Command::Open(Box::new(case))], false).await?;
        match passed.answers.into_iter().next() {
            // Another Hub was first.
            Some(Err(Rejection::AlreadyOpen)) => Ok(false),
            Some(Err(rejection)) => Err(rejection.into()),
            Some(Ok(())) | None => Ok(true),
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
        addr.send(Take(Input::Stop(reason.to_owned(), reply)))
            .await
            .map_err(|_| HubError::NotRunning(investigation.clone()))?;
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(_) => self.why_not(investigation).await,
        }
    }

    /// Hands out no more tasks and answers when all that was decided is recorded. Tasks under way may
    /// end; their outcomes are recorded and wait for whoever resumes.
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
        let past = archive::read(self.env.store.as_ref(), investigation).await?;
        if past.state.closed.is_none() {
            return self.why_not(investigation).await;
        }
        Ok(past.report)
    }

    async fn why_not<T>(&self, investigation: &InvestigationId) -> Result<T, HubError> {
        self.hub.send(Find(investigation.clone())).await.map_err(|_| HubError::Stopped)??;
        Err(HubError::NotRunning(investigation.clone()))
    }

    /// Says to every open investigation which domains have an Expert at the moment.
    pub async fn attend(&self, present: BTreeSet<Domain>) -> Result<(), HubError> {
        let present = Arc::new(present);
        let (_, everyone) = self.hub.send(Everyone).await.map_err(|_| HubError::Stopped)?;
        for addr in everyone {
            // One that is busy hears it the next time.
            let _ = addr.try_send(Take(Input::Attend(Arc::clone(&present))));
        }
        Ok(())
    }

    /// How the Hub is.
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
