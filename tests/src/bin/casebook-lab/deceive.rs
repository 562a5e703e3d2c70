//! Puts attacks inside an innocent process and counts what is dismissed. Exits with 1 if an attack is, or if a harmless
//! change is not.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_tests::{Result, deceive, run};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folder of further cases, beside whose records attacks are put
    #[arg(long, env = "CASEBOOK_CASES")]
    cases: Option<PathBuf>,
    /// Only variants whose names have this text
    #[arg(default_value = "")]
    only: String,
}

pub(super) fn run(Arguments { cases, only }: &Arguments) -> Result<ExitCode> {
    let mut wrong = 0;
    let demo = [("attacks", deceive::attacks(), false), ("harmless changes", deceive::benign(), true)];
    let others = cases.as_ref().map(|_| ("attacks in other cases", deceive::elsewhere(), false));
    for (what, mut variants, expect) in demo.into_iter().chain(others) {
        variants.retain(|variant| variant.name.contains(only.as_str()));
        let case = |variant: &deceive::Variant| match (what, cases) {
            ("attacks in other cases", Some(cases)) => variant.case(cases),
            _ => run::demo(),
        };
        let reports = deceive::verdicts(&variants, case)?;
        let dismissed = reports.iter().filter(|(_, report)| deceive::dismissed(report)).count();
        println!("{} {what}: {dismissed} dismissed", reports.len());
        for (name, report) in reports.iter().filter(|(_, report)| deceive::dismissed(report) != expect) {
            println!("  {name}: {} {:?}", report.verdict.name(), report.ruling.missing);
            wrong += 1;
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
