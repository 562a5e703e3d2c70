use std::process::ExitCode;

use casebook_api::program;
use casebook_runtime::service;

fn main() -> ExitCode {
    service::run(&program::PROGRAM, "api", program::serve)
}
