//! Loads a folder of evidence and says how fast that was: `load [--rules RULES] FOLDER [INDEX [TOOL ARGUMENTS]…]`.
//! With `--rules`, the rules that Casebook comes with and those in the folder RULES are evaluated.
//!
//! Prints each source as it was understood, then bytes per second, the largest memory the process had,
//! and the size of the index. Each TOOL is then called, and timed, twice.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use casebook_evidence::rules::{RuleSet, built_in_rules, rule_files};
use casebook_evidence::{Catalog, Declared, EvidenceTools};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let rule_set = arguments.next_if(|first| first == "--rules").and_then(|_| rules(arguments.next()?.as_ref()));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: load [--rules RULES] FOLDER [INDEX [TOOL ARGUMENTS]…]");
        return ExitCode::FAILURE;
    };
    let scratch = std::env::temp_dir().join(format!("casebook-load-{}.sqlite", std::process::id()));
    let given = arguments.next().map(PathBuf::from);
    let index = given.clone().unwrap_or_else(|| scratch.clone());
    let begun = Instant::now();
    let declared = Declared { rule_set, ..Declared::default() };
    let opened = match declared.rule_set {
        Some(_) => Catalog::declared_in(&folder, &index.with_extension("rules"), None, &declared, &mut |_| {}),
        None => Catalog::open(&folder, &index, &mut |_| {}),
    };
    let catalog = match opened {
        Ok(catalog) => catalog,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    show(&catalog);
    let bytes: u64 = catalog.sources().iter().map(|s| s.bytes).sum();
    let records: u64 = catalog.sources().iter().map(|s| s.records).sum();
    #[allow(clippy::cast_precision_loss, reason = "shown to people")]
    let rate = bytes as f64 / 1e6 / seconds;
    let size = std::fs::metadata(&index).map_or(0, |m| m.len());
    println!("{records} records, {bytes} bytes in {seconds:.2} s: {rate:.1} MB/s; index {size} bytes; {}", peak());
    call(catalog, arguments.map(|a| a.to_string_lossy().into_owned()).collect());
    if given.is_none() {
        let _ = std::fs::remove_file(&index);
        let _ = std::fs::remove_dir_all(index.with_extension("rules"));
        let _ = std::fs::remove_dir_all(format!("{}.cache", index.display()));
    }
    ExitCode::SUCCESS
}

fn rules(folder: &Path) -> Option<Arc<RuleSet>> {
    let mut files = built_in_rules();
    files.extend(rule_files(folder).map_err(|fault| eprintln!("{fault}")).unwrap_or_default());
    RuleSet::read(&files).map_err(|faults| eprintln!("{faults:?}")).ok().map(Arc::new)
}

fn call(catalog: Catalog, calls: Vec<String>) {
    let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
    let tools = EvidenceTools::new(Arc::new(catalog), &ids);
    for call in calls.chunks(2) {
        #[allow(clippy::indexing_slicing, reason = "chunks are not empty")]
        let (tool, arguments) = (&call[0], call.get(1).map_or("{}", String::as_str));
        for _ in 0..2 {
            let begun = Instant::now();
            let answer = tools.call(tool, arguments).unwrap_or_else(|e| e);
            println!("{tool} {arguments}: {:.3} s, {:.300}", begun.elapsed().as_secs_f64(), answer);
        }
    }
    println!("{}", peak());
}

fn show(catalog: &Catalog) {
    for s in catalog.sources() {
        let time = |t: Option<casebook_protocol::Timestamp>| t.map_or("-".into(), |t| t.to_string());
        println!(
            "{} [{}] {} · {} · on host: {}",
            s.file,
            s.format.words(),
            s.domain,
            s.sensor,
            s.written_on_subject_host
        );
        println!("    {} ", s.domain_reason);
        println!(
            "    {} records ({} malformed, {} oversize, {} untimed), lines {} = blank {} + format {} + records",
            s.records, s.malformed, s.oversize, s.untimed, s.lines, s.blank_lines, s.format_lines
        );
        println!(
            "    {} … {} from {} ({})",
            time(s.first_time),
            time(s.last_time),
            s.time_field.as_deref().unwrap_or("-"),
            s.time_basis.meaning()
        );
        for field in &s.time_fields {
            println!("      {:?} {}: {}", field.role, field.name, field.note);
        }
        for note in &s.notes {
            println!("    note: {note}");
        }
    }
    for skipped in catalog.skipped() {
        println!("skipped {}: {}", skipped.file, skipped.reason);
    }
}

/// The largest memory of the process so far, as the kernel counts it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}
