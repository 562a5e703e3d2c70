//! Investigates every case of a folder with the built-in analyst and tabulates the scores.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use casebook_tests::run;
use casebook_tests::score::{Score, cases, score};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Investigates every case of a folder with the built-in analyst and tabulates the scores")]
struct Arguments {
    /// The folder of cases: a case is a folder with alert.json, evidence/ and truth.json.
    folder: PathBuf,
    /// Where the report of each case is written.
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Arguments { folder, out } = Arguments::parse();
    match table(&folder, out.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cases: {error}");
            ExitCode::from(2)
        }
    }
}

fn table(root: &Path, out: Option<&Path>) -> Result<(), String> {
    println!(
        "{:<26} {:<13} {:>5} {:>7} {:>7} {:>9} {:>8} {:>6} {:>5}  missed",
        "case", "verdict", "must", "should", "events", "grounded", "ordered", "twice", "gaps"
    );
    let mut all: Vec<Score> = Vec::new();
    for case in cases(root)? {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let report = run::investigate(&case.join("alert.json"), &case.join("evidence"))?;
        if let Some(out) = out {
            let folder = out.join(&name);
            casebook_report::save::report(&folder, &report).map_err(|e| e.to_string())?;
        }
        let score = score(&case, &report)?;
        let share = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
        println!(
            "{name:<26} {:<13} {:>5} {:>7} {:>7} {:>9.2} {:>8} {:>6} {:>5}  {}",
            score.verdict,
            share(score.must),
            share(score.should),
            score.events,
            score.grounded,
            if score.ordered { "yes" } else { "NO" },
            score.duplicates,
            score.gaps,
            score.missed.join(" ")
        );
        all.push(score);
    }
    let must: Vec<f64> = all.iter().filter_map(|s| s.must).collect();
    let right = all.iter().filter(|s| s.verdict == "right").count();
    let wrong = all.iter().filter(|s| s.verdict == "wrong").count();
    println!(
        "\n{} cases: must {:.2} on average, {right} verdicts right, {wrong} wrong",
        all.len(),
        must.iter().sum::<f64>() / must.len().max(1) as f64
    );
    Ok(())
}
