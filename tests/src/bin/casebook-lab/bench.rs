//! Measures the embedded mode on generated logs: loading, an investigation, the cost of a recorded event, and
//! peak memory. Asserts nothing, because timings vary.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_evidence::{Catalog, Declared};
use casebook_hub::SqliteStore;
use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_tests::load::measure;
use casebook_tests::{Result, generate, run};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Size of the logs in megabytes
    #[arg(default_value_t = 1000)]
    megabytes: u64,
    /// The folder of the logs; they are generated if it does not exist [default: a temporary folder]
    folder: Option<PathBuf>,
}

pub(super) fn run(Arguments { megabytes, folder }: Arguments) -> Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let place = |name: &str| temporary.path().join(name);
    let folder = folder.unwrap_or_else(|| place("logs"));
    if !folder.is_dir() {
        generate::write(&folder, megabytes * 1_000_000, 42)?;
    }
    let bytes = measure::bytes_under(&folder);
    println!("logs                 {:>10.1} MB", bytes as f64 / 1e6);

    let without = load("load", &folder, &place("index"), &Declared::default())?;
    let rules = casebook_expert::rules::declared();
    let with = load("load with our rules", &folder, &place("index-rules"), &rules)?;
    println!("ratio                {:>10.2}", with / without);

    std::fs::write(place("alert.json"), generate::ALERT)?;
    let investigate = || -> Result<_> {
        let started = Instant::now();
        let report = run::investigate_in(&place("alert.json"), &folder, &place("data"))?;
        Ok((report, started.elapsed().as_secs_f64()))
    };
    let ((report, first), (_, again)) = (investigate()?, investigate()?);
    println!(
        "investigation        {first:>10.1} s   with loading; {again:.1} s with the index there; verdict {}, {} events, {} tool calls, peak memory {} MB",
        report.verdict.name(),
        report.timeline.events.len(),
        report.usage.total.tool_calls,
        measure::peak_kib(std::process::id()) / 1024
    );
    process::run(events(&place("events")))??;
    Ok(ExitCode::SUCCESS)
}

/// Loads the logs, and returns the seconds that it took.
fn load(name: &str, folder: &Path, index: &Path, declared: &Declared) -> Result<f64> {
    let bytes = measure::bytes_under(folder);
    let started = Instant::now();
    let catalog = Catalog::declared_in(folder, index, None, declared, &mut |_| {})?;
    let took = started.elapsed().as_secs_f64();
    let records: u64 = catalog.sources().iter().map(|s| s.records).sum();
    println!(
        "{name:<20} {took:>10.1} s   {:.1} MB/s   {records} records   index {:.1} MB   peak memory so far {} MB",
        bytes as f64 / 1e6 / took,
        measure::bytes_under(index) as f64 / 1e6,
        measure::peak_kib(std::process::id()) / 1024
    );
    Ok(took)
}

async fn events(folder: &Path) -> Result<()> {
    const EVENTS: u32 = 2000;
    const AT_ONCE: u32 = 16;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder)?);
    let micros = |took: Duration, events: u32| took.as_secs_f64() * 1e6 / f64::from(events);
    let alone = append(Arc::clone(&store), "alone".into(), EVENTS).await?;
    let started = Instant::now();
    let many = (0..AT_ONCE).map(|n| tokio::spawn(append(Arc::clone(&store), format!("many-{n}"), EVENTS)));
    for one in many.collect::<Vec<_>>() {
        one.await??;
    }
    println!(
        "recorded event       {:>10.1} µs alone   {:.1} µs with {AT_ONCE} investigations at once, each event durable",
        micros(alone, EVENTS),
        micros(started.elapsed(), EVENTS * AT_ONCE)
    );
    Ok(())
}

async fn append(store: Arc<dyn Store>, name: String, events: u32) -> Result<Duration> {
    let id = InvestigationId::new(name)?;
    let started = Instant::now();
    let mut last: Option<Recorded> = None;
    for n in 0..events {
        let event = Event::BudgetNear { limit: format!("limit {n}") };
        let entry = Recorded::next(&id, last.as_ref(), Timestamp::now(), event);
        store.append(&id, u64::from(n), std::slice::from_ref(&entry)).await?;
        last = Some(entry);
    }
    Ok(started.elapsed())
}
