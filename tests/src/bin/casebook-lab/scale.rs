//! Starts more and more Experts of one domain against the same queue of alerts, and prints a table. Exits with 1 if work
//! is lost or done twice.

use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::Result;
use casebook_tests::chaos::Order;
use casebook_tests::chaos::scale::{HEAD, run as scale};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Experts of each run
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    experts: Vec<usize>,
    /// Alerts, all sent at the beginning
    #[arg(long, default_value_t = 200)]
    investigations: usize,
    /// Latency of the model in milliseconds
    #[arg(long, default_value_t = 2000)]
    latency: u64,
    /// The longest time of a run, in seconds
    #[arg(long, default_value_t = 1800)]
    patience: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut order = Order::small(1);
    order.investigations = arguments.investigations;
    order.patience = Duration::from_secs(arguments.patience);
    order.shape.latency = Duration::from_millis(arguments.latency);
    order.shape.lease = 30;
    order.shape.sweep = 15;
    println!("{HEAD}");
    let mut whole = true;
    for experts in &arguments.experts {
        let scaled = scale(&order, *experts)?;
        println!("{scaled}");
        scaled.faults.iter().for_each(|fault| eprintln!("WRONG: {fault}"));
        whole &= scaled.faults.is_empty() && scaled.lost == 0;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
