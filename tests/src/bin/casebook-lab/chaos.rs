//! Kills and pauses processes of a team over NATS, such as `casebook-lab chaos --investigations 200 --minutes
//! 30 --seed 1`. Exits with 1 if a check at the end fails.

use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::Result;
use casebook_tests::chaos::Order;
use casebook_tests::chaos::each::each;
use casebook_tests::chaos::run::run as chaos;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Alerts, sent during the first three quarters of the time
    #[arg(long, default_value_t = 60)]
    investigations: usize,
    /// How long to kill and pause processes
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Seed of the random kills and pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The lease of jobs, in seconds
    #[arg(long, default_value_t = 3)]
    lease: u64,
    /// Instead, run single investigations and kill a process after one model call, for this many calls
    #[arg(long)]
    each: Option<usize>,
    /// How long the investigations may take after the last kill or pause, in seconds
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let survived = match arguments.each {
        Some(kills) => {
            let mut order = Order::of_one_each(arguments.seed);
            order.shape.lease = arguments.lease;
            let found = each(&order, kills)?;
            println!("{found}");
            found.survived
        }
        None => {
            let mut order = Order::small(arguments.seed);
            order.investigations = arguments.investigations;
            order.length = Duration::from_secs(arguments.minutes.saturating_mul(60));
            order.patience = Duration::from_secs(arguments.patience);
            order.shape.lease = arguments.lease;
            let (team, survived) = chaos(&order)?;
            if !survived.faults.is_empty() {
                eprintln!("{}", team.tails());
            }
            println!("{survived}");
            survived
        }
    };
    Ok(if survived.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
