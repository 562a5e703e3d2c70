use std::sync::Arc;

use actix::Addr;
use casebook_agent::reasoner::{Analyst, Reasoner, WAITING};
use casebook_agent::worker::{Fixed, Worker};
use casebook_protocol::Role;
use casebook_protocol::subject::Queue;
use casebook_runtime::Env;
use casebook_runtime::process::RoleActor;

use crate::journal::JournalTools;

/// Concurrent tasks with the built-in analyst. Each belongs to another investigation.
pub const AT_ONCE: usize = 8;

pub fn start(env: Env) -> Addr<RoleActor> {
    start_with(env, Arc::new(Analyst(crate::analyst::think)))
}

pub fn start_with(env: Env, reasoner: Arc<dyn Reasoner>) -> Addr<RoleActor> {
    // A reasoner that calls a model mostly waits, so it can do more tasks at once.
    let at_once = if reasoner.models().is_some() { WAITING } else { AT_ONCE };
    RoleActor::start_on(Queue::new(Role::Director, None), Arc::new(worker(env, reasoner)), at_once)
}

pub fn worker(env: Env, reasoner: Arc<dyn Reasoner>) -> Worker {
    Worker::new(env, reasoner, Arc::new(Fixed(Arc::new(JournalTools))))
}
