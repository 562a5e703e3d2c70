//! The Expert as an actor, one for each domain. Several actors of a domain share its work.

use std::sync::Arc;

use actix::Addr;
use casebook_agent::reasoner::{Analyst, Reasoner, WAITING};
use casebook_agent::results::tools::OwnResults;
use casebook_agent::tools::Tools;
use casebook_agent::worker::Worker;
use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::Env;
use casebook_runtime::process::RoleActor;

/// Concurrent tasks with the built-in analyst.
pub const AT_ONCE: usize = 4;

/// Uses the built-in analyst.
pub fn start(env: Env, domain: &Domain, tools: Arc<dyn Tools>) -> Addr<RoleActor> {
    start_with(env, domain, tools, Arc::new(Analyst(crate::analyst::think)))
}

pub fn start_with(env: Env, domain: &Domain, tools: Arc<dyn Tools>, reasoner: Arc<dyn Reasoner>) -> Addr<RoleActor> {
    // A reasoner that calls a model mostly waits, so it can do more tasks at once.
    let at_once = if reasoner.models().is_some() { WAITING } else { AT_ONCE };
    RoleActor::start_on(Queue::new(Role::Expert, Some(domain)), Arc::new(worker(env, tools, reasoner)), at_once)
}

/// Adds the tools that read earlier results to `tools`.
pub fn worker(env: Env, tools: Arc<dyn Tools>, reasoner: Arc<dyn Reasoner>) -> Worker {
    Worker::new(env, reasoner, Arc::new(OwnResults(tools)))
}
