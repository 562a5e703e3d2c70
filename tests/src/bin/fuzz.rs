//! Damages real inputs for as many rounds as are asked for: `fuzz [ROUNDS [SEED [CASE]]]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use casebook_tests::fuzz::{Inputs, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| match arguments.next() {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| format!("{text:?} is no number: fuzz [ROUNDS [SEED [CASE]]]")),
    };
    let rounds = number(20_000);
    let seed = number(1);
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod");
    let case = std::env::args_os().nth(3).map_or(demo, PathBuf::from);
    let result = rounds.and_then(|rounds| {
        let (rounds, seed) = (usize::try_from(rounds).unwrap_or(usize::MAX), seed?);
        run(&Inputs::of(&case)?, rounds, seed).map(|()| println!("{rounds} rounds from seed {seed}: no panic"))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}
