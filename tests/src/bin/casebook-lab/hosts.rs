//! Cuts off and loses hosts of a team over three NATS servers, such as `casebook-lab hosts --rounds 5 --cut 30`. Needs
//! Linux and root; everything is in a separate network. Exits with 1 if a check at the end fails.

use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::chaos::Order;
use casebook_tests::chaos::partition::{Case, run as partition};
use casebook_tests::{Result, hosts};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The cases; all of them unless set
    #[arg(long = "case")]
    cases: Vec<Case>,
    /// How often to run the cases
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Alerts of each case
    #[arg(long, default_value_t = 3)]
    investigations: usize,
    /// How long a host is cut off, in seconds
    #[arg(long, default_value_t = 10)]
    cut: u64,
    /// How long a frame takes from server to server in the case slow, in milliseconds
    #[arg(long, default_value_t = 50)]
    far: u64,
    /// Seed of the alerts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(status) = hosts::enter()? {
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let cases = if arguments.cases.is_empty() { Case::ALL.to_vec() } else { arguments.cases.clone() };
    let mut order = Order::small(arguments.seed);
    order.investigations = arguments.investigations;
    let parted = partition(
        &order,
        &cases.repeat(arguments.rounds),
        Duration::from_secs(arguments.cut),
        Duration::from_millis(arguments.far),
    )?;
    println!("{parted}");
    Ok(if parted.survived.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
