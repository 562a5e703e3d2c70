//! Chaos for as long as you like: `chaos --investigations 200 --minutes 30 --seed 1`. Kills and pauses a
//! team of processes over NATS again and again; ends with 1 when anything is wrong at the end.

use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::chaos::Order;
use casebook_tests::chaos::each::each;
use casebook_tests::chaos::run::run;
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Kills and pauses a team of processes over NATS, and checks that nothing is lost or done twice")]
struct Arguments {
    /// Alerts, over the first three quarters of the time.
    #[arg(long, default_value_t = 60)]
    investigations: usize,
    /// How long processes are struck.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Decides what is struck when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The lease of jobs, in seconds.
    #[arg(long, default_value_t = 3)]
    lease: u64,
    /// In place of all that, kill after so many single model calls of an investigation.
    #[arg(long)]
    each: Option<usize>,
    /// How long all may take to end after the last strike, in seconds.
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

fn main() -> ExitCode {
    let told = Arguments::parse();
    if let Some(kills) = told.each {
        return after_each(&told, kills);
    }
    let mut order = Order::small(told.seed);
    order.investigations = told.investigations;
    order.length = Duration::from_secs(told.minutes.saturating_mul(60));
    order.patience = Duration::from_secs(told.patience);
    order.shape.lease = told.lease;
    match run(&order) {
        Ok((team, survived)) => {
            println!("{survived}");
            if survived.faults.is_empty() {
                return ExitCode::SUCCESS;
            }
            eprintln!("{}", team.tails());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

fn after_each(told: &Arguments, kills: usize) -> ExitCode {
    let mut order = Order::of_one_each(told.seed);
    order.shape.lease = told.lease;
    match each(&order, kills) {
        Ok(found) => {
            println!("{} model calls, {:.1} s undisturbed", found.whole.0, found.whole.1.as_secs_f64());
            for killed in &found.killed {
                println!("  {:>3} {:<10} over {:.1} s after", killed.nth, killed.who, killed.to_the_end.as_secs_f64());
            }
            println!("{}", found.survived);
            if found.survived.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}
