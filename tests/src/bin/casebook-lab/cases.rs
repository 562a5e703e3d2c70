//! Investigates every case of a folder with the built-in analyst and prints the scores.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_report::save;
use casebook_tests::score::{Score, Summary, score};
use casebook_tests::{Result, run};
use casebook_trust::Backing;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The folder of cases: each case is a folder with alert.json, evidence/ and truth.json
    folder: PathBuf,
    /// The folder for the reports
    out: Option<PathBuf>,
}

pub(super) fn run(Arguments { folder, out }: &Arguments) -> Result<ExitCode> {
    println!(
        "{:<26} {:<13} {:>5} {:>7} {:>7} {:>9} {:>8} {:>6} {:>5}  missed",
        "case", "verdict", "must", "should", "events", "grounded", "ordered", "twice", "gaps"
    );
    let mut all = Vec::new();
    for case in run::cases(folder)? {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let report = run::investigate_case(&case)?;
        if let Some(out) = out {
            save::report(&out.join(&name), &report, &Backing::default())?;
        }
        let score = score(&case, &report)?;
        println!("{}", line(&name, &score));
        all.push(score);
    }
    let Summary { must, right, wrong } = Summary::of(&all);
    println!("\n{} cases: must {must:.2} on average, {right} verdicts right, {wrong} wrong", all.len());
    Ok(ExitCode::SUCCESS)
}

fn line(name: &str, score: &Score) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
    let Score { verdict, events, grounded, duplicates, gaps, .. } = score;
    let (must, should, missed) = (share(score.must), share(score.should), score.missed.join(" "));
    let ordered = if score.ordered { "yes" } else { "NO" };
    format!(
        "{name:<26} {verdict:<13} {must:>5} {should:>7} {events:>7} {grounded:>9.2} {ordered:>8} {duplicates:>6} \
         {gaps:>5}  {missed}"
    )
}
