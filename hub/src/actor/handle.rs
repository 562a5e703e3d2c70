//! The public handle of the Hub.

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

/// The Hub of this process. Clones refer to the same Hub.
#[derive(Clone)]
pub struct HubHandle {
    hub: HubAddr,
    env: Env,
}

impl HubHandle {
    /// Starts the Hub on the actix system of `casebook_runtime::process::run`. Every `sweep` (usually 5 s) it
    /// looks for outcomes whose notice was lost and enqueues open tasks again.
    #[must_use]
    pub fn start(env: Env, sweep: Duration) -> Self {
        Self { hub: super::start(env.clone(), sweep), env }
    }

    /// Opens an investigation and works on it. Returns true if it is new.
    pub async fn open(&self, investigation: &InvestigationId, case: Case) -> Result<bool, HubError> {
        let fresh = self.record(investigation, case).await?;
        self.activate(investigation).await?;
        Ok(fresh)
    }

    /// Writes the opening event to the log without starting work. Returns false if the log exists.
    pub async fn record(&self, investigation: &InvestigationId, case: Case) -> Result<bool, HubError> {
        let ledger = Ledger::load(&self.env, investigation).await?;
        if ledger.state().case.is_some() {
            return Ok(false);
        }
        let (_, passed) = ledger.pass(vec![Command::Open(Box::new(case))], false).await?;
        match passed.answers.into_iter().next() {
            // Another Hub opened it first.
            Some(Err(Rejection::AlreadyOpen)) => Ok(false),
            Some(Err(rejection)) => Err(rejection.into()),
            Some(Ok(())) | None => Ok(true),
        }
    }

    async fn activate(&self, investigation: &InvestigationId) -> Result<InvestigationAddr, HubError> {
        self.hub.send(Activate(investigation.clone())).await.map_err(|_| HubError::Stopped)?
    }

    /// Continues an investigation. No effect if it is open in this Hub or closed.
    pub async fn resume(&self, investigation: &InvestigationId) -> Result<(), HubError> {
        archive::state(self.env.store.as_ref(), investigation).await?;
        self.activate(investigation).await.map(drop)
    }

    /// Concludes an investigation as soon as its running tasks have ended.
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

    /// Stops handing out tasks and returns once all decisions are recorded. Running tasks may finish; their
    /// outcomes are recorded for a later resume.
    pub async fn suspend(&self) -> Result<(), HubError> {
        for addr in self.hub.send(SuspendAll).await.map_err(|_| HubError::Stopped)? {
            let (reply, done) = oneshot::channel();
            if addr.send(Suspend(reply)).await.is_ok() {
                // An error means that the investigation has ended.
                let _ = done.await;
            }
        }
        Ok(())
    }

    /// Waits until the investigation is closed and returns its report.
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

    /// Reports to every open investigation which domains have an Expert now.
    pub async fn attend(&self, present: BTreeSet<Domain>) -> Result<(), HubError> {
        let present = Arc::new(present);
        let (_, everyone) = self.hub.send(Everyone).await.map_err(|_| HubError::Stopped)?;
        for addr in everyone {
            // A busy investigation gets the next report.
            let _ = addr.try_send(Take(Input::Attend(Arc::clone(&present))));
        }
        Ok(())
    }

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
