//! The `casebook-director` program: a Director as a process of its own, over NATS.

use std::process::ExitCode;
use std::sync::Arc;

use casebook_agent::mind::Analyst;
use casebook_agent::service::work::{Post, work};
use casebook_agent::service::{self, Failure, Program, Service, common};
use casebook_director::actor::{AT_ONCE, worker};
use casebook_director::{analyst, brief::DirectorBrief};
use casebook_protocol::Role;
use casebook_protocol::subject::Queue;

const PROGRAM: Program = Program {
    name: "casebook-director",
    about: "A Director as a process of its own: plans, asks, decides and reports. Start as many as you like; they share the work.",
    keys: &common::WORKER_KEYS,
};

fn main() -> ExitCode {
    service::run(&PROGRAM, "director", serve)
}

async fn serve(service: Service) -> Result<(), Failure> {
    let mind = service.mind(Role::Director, Arc::new(DirectorBrief), Analyst(analyst::think))?;
    let post = Post {
        queue: Queue::new(Role::Director, None),
        member: None,
        at_once: service.at_once(AT_ONCE),
        worker: Box::new(move |env| worker(env, mind)),
    };
    work(&service, vec![post]).await
}
