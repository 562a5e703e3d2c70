use std::process::ExitCode;

use casebook_cli::failure::{Exit, Failure};
use casebook_cli::{args::Cli, screen};
use clap::Parser;

fn main() -> ExitCode {
    if let Some(done) = casebook_evidence::serve_reader() {
        return done;
    }
    casebook_runtime::process::abort_on_panic();
    if let Err(error) = casebook_cli::run(Cli::parse()) {
        screen::complain(&Failure::failed(format!("cannot start: {error}"), "free some memory or threads"));
        return Exit::Failed.code().into();
    }
    ExitCode::SUCCESS
}
