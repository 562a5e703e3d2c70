//! Damages real inputs for as many rounds as are asked for.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use casebook_tests::fuzz::{Inputs, run};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Gives the citation checker, the parsers of evidence and the decoders of messages damaged inputs")]
struct Arguments {
    /// Inputs that are damaged.
    #[arg(default_value_t = 20_000)]
    rounds: usize,
    /// Decides how.
    #[arg(default_value_t = 1)]
    seed: u64,
    /// The case whose evidence is damaged; the demo unless told.
    case: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Arguments { rounds, seed, case } = Arguments::parse();
    let case = case.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod"));
    let result = Inputs::of(&case).and_then(|inputs| run(&inputs, rounds, seed));
    match result {
        Ok(()) => {
            println!("{rounds} rounds from seed {seed}: no panic");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}
