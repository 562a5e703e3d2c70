use casebook_hub::program;
use casebook_runtime::service;
use std::process::ExitCode;

fn main() -> ExitCode {
    service::run(&program::PROGRAM, "hub", program::serve)
}
