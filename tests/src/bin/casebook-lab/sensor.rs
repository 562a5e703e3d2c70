//! Puts forged logs beside the demo's evidence and counts what is believed. Exits with 1 if any is.

use std::process::ExitCode;

use casebook_tests::{Result, run, sensor};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Number of forged logs to also investigate, one at a time
    #[arg(default_value_t = 3)]
    investigations: usize,
}

pub(super) fn run(Arguments { investigations }: &Arguments) -> Result<ExitCode> {
    let forged = sensor::forged()?;
    let folder = tempfile::tempdir()?;
    sensor::write(folder.path(), &forged)?;
    let believed = sensor::believed(folder.path())?;
    let mut dismissed = Vec::new();
    for (name, text) in forged.iter().take(*investigations) {
        let folder = tempfile::tempdir()?;
        sensor::write(folder.path(), [(name, text)])?;
        if run::investigate_case(folder.path())?.verdict.dismisses() {
            dismissed.push(name);
        }
    }
    println!("{} forged logs: {} count as independent {believed:?}", forged.len(), believed.len());
    println!("{investigations} investigated: {} dismissed {dismissed:?}", dismissed.len());
    Ok(if believed.is_empty() && dismissed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
