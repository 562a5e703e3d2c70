//! The `casebook-hub` program: a Hub as a process of its own, over NATS.

use std::process::ExitCode;

use casebook_hub::program;
use casebook_runtime::service;

fn main() -> ExitCode {
    service::run(&program::PROGRAM, "hub", program::serve)
}
