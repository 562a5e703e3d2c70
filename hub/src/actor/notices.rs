//! Forwards notices from the bus to investigations. Notices are only hints: the sweep finds in the store what a
//! lost or malformed notice was about.

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{InvestigationId, TaskId};
use casebook_protocol::{OutcomeNotice, StepNotice};
use casebook_runtime::Env;
use casebook_runtime::bus::{self, Message};
use casebook_runtime::wire;

use super::{Find, HubAddr, Take};
use crate::batch::Input;

/// Forwards notices about investigations that are open in this Hub.
pub(super) async fn listen(env: Env, hub: HubAddr) {
    for pattern in [subject::OUTCOMES, subject::STEPS] {
        match env.bus.subscribe(pattern).await {
            Ok(mut messages) => {
                let hub = hub.clone();
                tokio::spawn(async move {
                    while let Some(message) = messages.next().await {
                        let Some((investigation, work)) = read(&message) else { continue };
                        if !deliver(&hub, investigation, work).await {
                            return;
                        }
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, pattern, "could not subscribe to workers; the sweep finds their results")
            }
        }
    }
}

/// Reads a notice. The subject identifies the queue of the sender; notices about tasks of other queues are
/// ignored.
fn read(message: &Message) -> Option<(InvestigationId, Input)> {
    let owned = |task: &TaskId, subject: fn(&Queue) -> String| {
        Queue::of(task).is_some_and(|queue| subject(&queue) == message.subject)
    };
    if bus::matches(subject::STEPS, &message.subject) {
        match wire::decode::<StepNotice>(&message.bytes) {
            Ok(notice) if owned(&notice.task, subject::steps) && notice.step.is_of(&notice.task) => {
                return Some((notice.investigation, Input::Step(notice.task, Box::new(notice.step))));
            }
            Ok(notice) => {
                tracing::warn!(task = %notice.task, subject = message.subject, "ignored a step that belongs to another queue")
            }
            Err(error) => tracing::warn!(%error, "could not read step; the outcome repeats it"),
        }
        return None;
    }
    match wire::decode::<OutcomeNotice>(&message.bytes) {
        Ok(notice) if owned(&notice.task, subject::outcomes) => {
            return Some((notice.investigation, Input::Outcome(notice.task)));
        }
        Ok(notice) => {
            tracing::warn!(task = %notice.task, subject = message.subject, "ignored an outcome that belongs to another queue")
        }
        Err(error) => tracing::warn!(%error, "could not read notice; the sweep finds the outcome"),
    }
    None
}

/// Returns false if the Hub has stopped.
async fn deliver(hub: &HubAddr, investigation: InvestigationId, work: Input) -> bool {
    let Ok(found) = hub.send(Find(investigation)).await else { return false };
    match (found, work) {
        // A live step may be lost; its outcome repeats it.
        (Ok(Some(addr)), work @ Input::Step(..)) => drop(addr.try_send(Take(work))),
        (Ok(Some(addr)), work) => drop(addr.send(Take(work)).await),
        // The investigation is not open in this Hub.
        (Ok(None) | Err(_), _) => {}
    }
    true
}
