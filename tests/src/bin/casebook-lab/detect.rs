//! Counts the records of ordinary logs in which the detector sees a text that addresses the investigator.

use std::path::PathBuf;
use std::process::ExitCode;

use casebook_evidence::Catalog;
use casebook_protocol::one_line;
use casebook_tests::Result;
use clap::Args;

/// Characters of a record that is shown.
const SHOWN: usize = 200;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folders of logs, one for each kind of log
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Read at most this many records of each folder
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
}

/// Fails if more than one record in 100,000 is reported.
pub(super) fn run(Arguments { folders, records }: &Arguments) -> Result<ExitCode> {
    let (mut all, mut reported) = (0u64, 0u64);
    for folder in folders {
        let index = tempfile::tempdir()?;
        let catalog = Catalog::open_in(folder, index.path(), None, &mut |_| {})?;
        let (mut read, mut found) = (0u64, 0u64);
        for source in catalog.sources() {
            for line in 1..=source.lines {
                let of_line = (1..).map_while(|nth| catalog.record_nth(&source.file, line, nth).ok());
                for record in of_line.take(usize::try_from(records.saturating_sub(read)).unwrap_or(usize::MAX)) {
                    read += 1;
                    let text = record.text();
                    if let Some(what) = casebook_trust::injection::wants(&text) {
                        found += 1;
                        println!("  {}:{line}: {what}: {}", source.file, one_line(&text, SHOWN));
                    }
                }
                if read >= *records {
                    break;
                }
            }
        }
        println!("{}: {found} of {read} records", folder.display());
        (all, reported) = (all + read, reported + found);
    }
    println!("in all {reported} of {all} records");
    Ok(if reported.saturating_mul(100_000) <= all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
