//! Hides cases in noise and compares the scores with those of the cases alone.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_tests::{Result, noise, run};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A case, or a folder of cases [default: the demo]
    cases: Option<PathBuf>,
    /// Records of noise
    #[arg(long, default_value_t = 100_000)]
    records: usize,
    /// Write the first case with its noise to this folder instead
    #[arg(long)]
    write: Option<PathBuf>,
}

pub(super) fn run(Arguments { cases, records, write }: &Arguments) -> Result<ExitCode> {
    let cases = run::cases(cases.as_ref().unwrap_or(&run::demo()))?;
    if let (Some(folder), Some(case)) = (write, cases.first()) {
        noise::write(case, folder, *records)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut wrong = 0;
    for case in &cases {
        let (alone, own) = noise::investigate(case, 0)?;
        let (report, score) = noise::investigate(case, *records)?;
        println!(
            "{}: verdict {} -> {}, must {:.2} -> {:.2}, events {} -> {}",
            case.file_name().unwrap_or_default().display(),
            alone.verdict.name(),
            report.verdict.name(),
            own.must.unwrap_or(1.0),
            score.must.unwrap_or(1.0),
            own.events,
            score.events,
        );
        if score.missed != own.missed {
            println!("  missed: {}", score.missed.join(", "));
            wrong += 1;
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
