//! Tests the readers with damaged inputs.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_tests::fuzz::{Inputs, run as fuzz};
use casebook_tests::{Result, run};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Number of damaged inputs
    #[arg(default_value_t = 20_000)]
    rounds: usize,
    /// Seed of the random damage
    #[arg(default_value_t = 1)]
    seed: u64,
    /// The case whose evidence is damaged [default: the demo]
    case: Option<PathBuf>,
}

pub(super) fn run(Arguments { rounds, seed, case }: Arguments) -> Result<ExitCode> {
    let inputs = Inputs::of(&case.unwrap_or_else(run::demo))?;
    fuzz(&inputs, rounds, seed)?;
    println!("{rounds} rounds from seed {seed}: no panic");
    Ok(ExitCode::SUCCESS)
}
