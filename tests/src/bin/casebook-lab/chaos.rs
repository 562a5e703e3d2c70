//! Chaos for as long as you like: `casebook-lab chaos --investigations 200 --minutes 30 --seed 1`. Kills and
//! pauses a team of processes over NATS again and again; ends with 1 when anything is wrong at the end.

use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::Result;
use casebook_tests::chaos::Order;
use casebook_tests::chaos::each::each;
use casebook_tests::chaos::run::run as chaos;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Alerts, over the first three quarters of the time
    #[arg(long, default_value_t = 60)]
    investigations: usize,
    /// How long processes are struck
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Decides what is struck when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The lease of jobs, in seconds
    #[arg(long, default_value_t = 3)]
    lease: u64,
    /// In place of all that, kill after this many single model calls of an investigation
    #[arg(long)]
    each: Option<usize>,
    /// How long all may take to end after the last strike, in seconds
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
