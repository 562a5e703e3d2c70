//! The Director as an actor.

use std::sync::Arc;

use actix::Addr;
use casebook_agent::mind::{Analyst, Mind, WAITING};
use casebook_agent::worker::{Fixed, Worker};
use casebook_protocol::Role;
use casebook_protocol::subject::Queue;
use casebook_runtime::Env;
use casebook_runtime::process::RoleActor;

use crate::journal::JournalTools;

/// Tasks of one Director at once where the built-in analyst thinks; each belongs to another investigation.
pub const AT_ONCE: usize = 8;

/// Starts a Director, played by the built-in analyst.
pub fn start(env: Env) -> Addr<RoleActor> {
    start_with(env, Arc::new(Analyst(crate::analyst::think)))
}

/// Starts a Director, played by `mind`.
pub fn start_with(env: Env, mind: Arc<dyn Mind>) -> Addr<RoleActor> {
    // A mind that asks a model waits, whatever it costs to think there.
    let at_once = if mind.models().is_some() { WAITING } else { AT_ONCE };
    RoleActor::start_on(Queue::new(Role::Director, None), Arc::new(worker(env, mind)), at_once)
}

/// What performs a Director's tasks, pulled from the queue or not.
#[must_use]
pub fn worker(env: Env, mind: Arc<dyn Mind>) -> Worker {
    Worker::new(env, mind, Arc::new(Fixed(Arc::new(JournalTools))))
}
