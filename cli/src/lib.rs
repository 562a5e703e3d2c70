//! The `casebook` program.
//!
//! [`args`] defines the command line, [`commands`] runs it, and [`failure`] reports errors. [`embedded`] runs
//! an investigation in one process with the reasoners that [`models`] opens. [`mcp`] serves MCP clients,
//! [`serve`] investigates for the pages of `casebook-api`, and [`live`] describes recorded events.

pub mod args;
pub mod commands;
pub mod failure;

pub mod cluster;
pub mod doctor;
pub mod embedded;
pub mod home;
pub mod loading;
pub mod mcp;
pub mod models;
pub mod nats;
pub mod reasoners;
pub mod roster;
pub mod serve;
pub mod stop;

pub mod live;
pub mod progress;
pub mod screen;

use args::{Cli, LogForm};
use casebook_runtime::service::environment;
use casebook_runtime::{process, telemetry};
use failure::Failure;

/// Runs a command and exits, without waiting for threads that are still blocked.
pub fn run(cli: Cli) -> std::io::Result<()> {
    let format = match cli.common.log {
        LogForm::Text => telemetry::LogFormat::Text,
        LogForm::Json => telemetry::LogFormat::Json,
    };
    let started = cli.common.collector().and_then(|collector| {
        let advice = "choose another collector, or omit it";
        telemetry::start(format, "casebook", collector.as_deref(), false).map_err(|why| Failure::usage(why, advice))
    });
    if let Err(failure) = started {
        screen::complain(&failure);
        std::process::exit(failure.exit.code().into());
    }
    environment::warn();
    process::run(async {
        let exit = commands::run(cli).await.unwrap_or_else(|failure: Failure| {
            screen::complain(&failure);
            failure.exit
        });
        telemetry::export::end();
        std::process::exit(exit.code().into())
    })
}
