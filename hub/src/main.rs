//! The `casebook-hub` program: a Hub as a process of its own, over NATS.

use std::process::ExitCode;

use casebook_agent::service;
use casebook_hub::program;

fn main() -> ExitCode {
    service::run(&program::PROGRAM, "hub", program::serve)
}
