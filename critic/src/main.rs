use std::process::ExitCode;
use std::sync::Arc;

use casebook_agent::reasoner::Analyst;
use casebook_agent::service::RoleOptions;
use casebook_critic::actor::{AT_ONCE, worker};
use casebook_critic::{analyst, brief::CriticBrief};
use casebook_protocol::Role;
use casebook_protocol::subject::Queue;
use casebook_runtime::service::work::{Assignment, work};
use casebook_runtime::service::{self, Failure, Program, Service};

const PROGRAM: Program = Program {
    name: "casebook-critic",
    about: "A Critic as a separate process: scores findings and keeps the Timeline. Start as many as you like; they share the work.",
};

fn main() -> ExitCode {
    service::run(&PROGRAM, "critic", serve)
}

async fn serve(service: Service, options: RoleOptions) -> Result<(), Failure> {
    let reasoner =
        casebook_agent::service::reasoner(&options, Role::Critic, Arc::new(CriticBrief), Analyst(analyst::think))?;
    let post = Assignment {
        queue: Queue::new(Role::Critic, None),
        member: None,
        at_once: options.at_once.unwrap_or(AT_ONCE),
        worker: Box::new(move |env| Arc::new(worker(env, reasoner))),
    };
    work(&service, vec![post]).await
}
