//! Tries every subject as the address of an answer. Exits with 1 if anything was written.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_tests::{Result, nats, reply};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A nats-server program [default: 2.10.26 and the newest that is tested, both from pip]
    servers: Vec<PathBuf>,
}

pub(super) fn run(Arguments { servers }: &Arguments) -> Result<ExitCode> {
    let usual = || Ok::<_, String>(vec![nats::oldest(), nats::program()?]);
    let servers = if servers.is_empty() { usual()? } else { servers.clone() };
    let mut faults = 0;
    for server in servers {
        let version = casebook_cli::cluster::server::check(&server)?;
        let tried = reply::run(&server)?;
        tried.faults.iter().for_each(|fault| println!("{fault}"));
        println!("nats-server {version}: {} messages, {} faults", tried.messages, tried.faults.len());
        faults += tried.faults.len();
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
