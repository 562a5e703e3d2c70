//! What comes in from the bus, on its way to whoever works on the investigation here. All of it is a
//! hint: what is lost, malformed or not for this Hub stands in the store, where the sweep finds it.

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{InvestigationId, TaskId};
use casebook_protocol::{OutcomeNotice, StepNotice};
use casebook_runtime::Env;
use casebook_runtime::bus::{self, Message};
use casebook_runtime::wire;

use super::{Find, HubAddr, Take};
use crate::batch::Input;

/// Takes notices to whoever works on the investigation in this Hub; other Hubs have theirs.
pub(super) async fn listen(env: Env, hub: HubAddr) {
    for pattern in [subject::OUTCOMES, subject::STEPS] {
        match env.bus.subscribe(pattern).await {
            Ok(mut told) => {
                let hub = hub.clone();
                tokio::spawn(async move {
                    while let Some(message) = told.next().await {
                        let Some((investigation, work)) = read(&message) else { continue };
                        if !deliver(&hub, investigation, work).await {
                            return;
                        }
                    }
                });
            }
            Err(error) => tracing::warn!(%error, pattern, "cannot follow the workers live: the sweep finds it all"),
        }
    }
}

/// The work in a notice. A worker speaks for its own queue alone: the subject says who it is, and the
/// server lets nobody publish to another's.
fn read(message: &Message) -> Option<(InvestigationId, Input)> {
    let owned = |task: &TaskId, subject: fn(&Queue) -> String| {
        Queue::of(task).is_some_and(|queue| subject(&queue) == message.subject)
    };
    if bus::matches(subject::STEPS, &message.subject) {
        match wire::decode::<StepNotice>(&message.bytes) {
            Ok(notice) if owned(&notice.task, subject::steps) && notice.step.is_of(&notice.task) => {
                return Some((notice.investigation, Input::Step(notice.task, Box::new(notice.step))));
            }
            Ok(notice) => tracing::warn!(task = %notice.task, subject = message.subject, "a step of another queue"),
            Err(error) => tracing::warn!(%error, "a step cannot be read: it comes with its outcome"),
        }
        return None;
    }
    match wire::decode::<OutcomeNotice>(&message.bytes) {
        Ok(notice) if owned(&notice.task, subject::outcomes) => {
            return Some((notice.investigation, Input::Outcome(notice.task)));
        }
        Ok(notice) => tracing::warn!(task = %notice.task, subject = message.subject, "an outcome of another queue"),
        Err(error) => tracing::warn!(%error, "a notice cannot be read: the sweep finds the outcome"),
    }
    None
}

/// False when the Hub is gone.
async fn deliver(hub: &HubAddr, investigation: InvestigationId, work: Input) -> bool {
    let Ok(found) = hub.send(Find(investigation)).await else { return false };
    match (found, work) {
        // A full mailbox loses a live step, no more.
        (Ok(Some(addr)), work @ Input::Step(..)) => drop(addr.try_send(Take(work))),
        (Ok(Some(addr)), work) => drop(addr.send(Take(work)).await),
        // Another Hub works on it, or nobody until somebody takes it over.
        (Ok(None) | Err(_), _) => {}
    }
    true
}
