//! What comes in from the bus, on its way to whoever works on the investigation.

use std::time::Duration;

use casebook_agent::bus::BusError;
use casebook_agent::wire;
use casebook_agent::worker::{Env, OutcomeNotice, StepNotice};
use casebook_protocol::subject;

use super::{Activate, Find, HubAddr, Take};
use crate::desk::Work;

/// Takes recorded outcomes from their queue to whoever works on the investigation. Nobody yet: this
/// Hub takes it over, since any Hub can.
pub(super) async fn take_outcomes(env: Env, hub: HubAddr) {
    loop {
        let delivery = match env.bus.pull(subject::OUTCOMES).await {
            Ok(delivery) => delivery,
            Err(BusError::Closed) => return,
            Err(error) => {
                tracing::error!(%error, "cannot pull an outcome");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let notice: OutcomeNotice = match wire::decode(delivery.bytes()) {
            Ok(notice) => notice,
            Err(error) => {
                tracing::error!(%error, "a notice cannot be read and is dropped: the sweep finds the outcome");
                let _ = delivery.done().await;
                continue;
            }
        };
        let Ok(found) = hub.send(Activate { investigation: notice.investigation, asked: false }).await else { return };
        let back = match found {
            Ok(addr) => addr.send(Take(Work::Outcome(notice.task, delivery))).await.is_err(),
            // Suspended or broken: whoever resumes finds the outcome in the store.
            Err(_) => delivery.done().await.is_err(),
        };
        if back {
            tracing::debug!("a notice goes back to its queue");
        }
    }
}

/// Takes live steps to whoever works on the investigation; nobody has to.
pub(super) async fn take_steps(env: Env, hub: HubAddr) {
    let mut steps = match env.bus.subscribe(subject::STEPS).await {
        Ok(steps) => steps,
        Err(error) => {
            tracing::warn!(%error, "cannot follow steps live: they come with the outcomes");
            return;
        }
    };
    while let Some(message) = steps.next().await {
        let Ok(StepNotice { investigation, task, step }) = wire::decode(&message.bytes) else {
            tracing::warn!("a step cannot be read and is left out: it comes with its outcome");
            continue;
        };
        let Ok(found) = hub.send(Find(investigation)).await else { return };
        if let Ok(Some(addr)) = found {
            // A full mailbox loses a live step, no more.
            let _ = addr.try_send(Take(Work::Step(task, Box::new(step))));
        }
    }
}
