use casebook_cli::failure::{Exit, Failure};
use casebook_cli::{args::Cli, screen};
use clap::Parser;

fn main() {
    casebook_runtime::process::abort_on_panic();
    if let Err(error) = casebook_cli::run(Cli::parse()) {
        screen::complain(&Failure::failed(format!("cannot start: {error}"), "free some memory or threads"));
        std::process::exit(Exit::Failed.code().into());
    }
}
