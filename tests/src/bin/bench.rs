//! Measures the embedded mode on generated logs: loading, an investigation, the Hub's cost for each
//! recorded event, peak memory. Prints figures, asserts none: machines are noisy.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_evidence::Catalog;
use casebook_hub::SqliteStore;
use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_tests::{generate, run};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Loads generated logs, investigates them, and appends events: time and memory of each")]
struct Arguments {
    /// Of logs.
    #[arg(default_value_t = 1000)]
    megabytes: u64,
    /// Where the logs are, or are written; a folder that goes again unless told.
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    match bench(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(Arguments { megabytes, folder }: Arguments) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = folder.unwrap_or_else(|| temporary.path().join("logs"));
    let data = temporary.path().join("data");
    if !folder.is_dir() {
        generate::write(&folder, megabytes * 1_000_000, 42).map_err(|e| e.to_string())?;
    }
    let bytes: u64 = std::fs::read_dir(&folder)
        .map_err(|e| e.to_string())?
        .flatten()
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum();
    println!("logs                 {:>10.1} MB", bytes as f64 / 1e6);

    let started = Instant::now();
    let index = temporary.path().join("index.db");
    let catalog = Catalog::open(&folder, &index, &mut |_| {}).map_err(|e| e.to_string())?;
    let took = started.elapsed();
    let records: u64 = catalog.sources().iter().map(|s| s.records).sum();
    let index_bytes = std::fs::metadata(&index).map(|m| m.len()).unwrap_or_default();
    println!(
        "load                 {:>10.1} s   {:.1} MB/s   {records} records   index {:.1} MB   peak memory so far {} MB",
        took.as_secs_f64(),
        bytes as f64 / 1e6 / took.as_secs_f64(),
        index_bytes as f64 / 1e6,
        peak()
    );
    drop(catalog);

    let alert = temporary.path().join("alert.json");
    std::fs::write(&alert, generate::ALERT).map_err(|e| e.to_string())?;
    let started = Instant::now();
    let report = run::investigate_in(&alert, &folder, &data)?;
    let first = started.elapsed();
    let started = Instant::now();
    run::investigate_in(&alert, &folder, &data)?;
    let again = started.elapsed();
    println!(
        "investigation        {:>10.1} s   with loading; {:.1} s with the index there; verdict {}, {} events, {} tool calls, peak memory {} MB",
        first.as_secs_f64(),
        again.as_secs_f64(),
        report.verdict.name(),
        report.timeline.events.len(),
        report.usage.total.tool_calls,
        peak()
    );
    events(&temporary.path().join("events"))
}

/// Appends events one by one, and from sixteen investigations at once, each made durable.
fn events(folder: &std::path::Path) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder).map_err(|e| e.to_string())?);
    let alone = 2000;
    let at_once = 16;
    let (one, many) = process::run(async {
        let one = append(Arc::clone(&store), "alone".into(), alone).await?;
        let started = Instant::now();
        let tasks: Vec<_> =
            (0..at_once).map(|n| tokio::spawn(append(Arc::clone(&store), format!("many-{n}"), alone))).collect();
        for task in tasks {
            task.await.map_err(|e| e.to_string())??;
        }
        Ok::<_, String>((one, started.elapsed()))
    })
    .map_err(|e| e.to_string())??;
    let micros = |took: Duration, events: u32| took.as_secs_f64() * 1e6 / f64::from(events);
    println!(
        "recorded event       {:>10.1} µs alone   {:.1} µs with {at_once} investigations at once, each event durable",
        micros(one, alone),
        micros(many, alone * at_once)
    );
    Ok(())
}

async fn append(store: Arc<dyn Store>, name: String, events: u32) -> Result<Duration, String> {
    let id = InvestigationId::new(name).map_err(|e| e.to_string())?;
    let started = Instant::now();
    let mut last: Option<Recorded> = None;
    for n in 0..events {
        let event = Event::BudgetNear { limit: format!("limit {n}") };
        let entry = Recorded::next(&id, last.as_ref(), Timestamp::now(), event);
        store.append(&id, u64::from(n), std::slice::from_ref(&entry)).await.map_err(|e| e.to_string())?;
        last = Some(entry);
    }
    Ok(started.elapsed())
}

/// Peak resident memory of this process in MB, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.map_or_else(|| "?".into(), |k| (k / 1024).to_string())
}
