//! Measures the index of investigations on generated ones: making it, following it, and pages of each filter.
//! Asserts nothing, because timings vary.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_hub::SqliteStore;
use casebook_index::{Index, Sort, Status, Wanted};
use casebook_protocol::{Severity, Timestamp, Verdict};
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_tests::Result;
use casebook_tests::load::measure;
use casebook_tests::many;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How many investigations to generate, of eight events each
    #[arg(default_value_t = 100_000)]
    investigations: u32,
}

/// How often each page is read.
const TIMES: usize = 200;

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    process::run(measured(arguments.investigations))??;
    Ok(ExitCode::SUCCESS)
}

async fn measured(investigations: u32) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path())?);
    many::fill(&store, investigations).await?;
    let started = Instant::now();
    let index = Index::open(folder.path())?;
    index.catch_up(store.as_ref()).await?;
    let took = started.elapsed().as_secs_f64();
    println!(
        "make the index       {took:>8.1} s   {investigations} investigations, {:.0} events/s, {:.1} MB, peak memory {} MB",
        f64::from(investigations) * 8.0 / took,
        std::fs::metadata(folder.path().join("index.db"))?.len() as f64 / 1e6,
        measure::peak_kib(std::process::id()) / 1024
    );
    let started = Instant::now();
    index.catch_up(store.as_ref()).await?;
    println!("nothing new          {:>8.2} ms", millis(started.elapsed()));
    many::write(Arc::clone(&store), investigations).await?;
    let started = Instant::now();
    index.catch_up(store.as_ref()).await?;
    println!("one new              {:>8.2} ms", millis(started.elapsed()));
    for (name, wanted) in pages() {
        let (mut times, mut wanted, mut items) = (Vec::new(), wanted, 0);
        for _ in 0..TIMES {
            let started = Instant::now();
            let page = index.page(&wanted, Timestamp::now())?;
            times.push(started.elapsed());
            items = items.max(page.items.len());
            wanted.cursor = page.next;
        }
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().map_or(0.0, millis);
        println!("page {name:<15} {:>8.2} ms p50   {:.2} ms p95   {items} rows", at(50), at(95));
    }
    let started = Instant::now();
    index.figures(None, None)?;
    println!("sum of all figures   {:>8.2} ms", millis(started.elapsed()));
    Ok(())
}

fn pages() -> Vec<(&'static str, Wanted)> {
    let usual = Wanted { limit: 50, ..Wanted::default() };
    let search = |text: &str| Wanted { search: Some(text.into()), ..usual.clone() };
    let mut pages: Vec<(&str, Wanted)> = Sort::ALL.map(|sort| (sort.name(), Wanted { sort, ..usual.clone() })).into();
    pages.extend([
        ("open", Wanted { statuses: vec![Status::Open], ..usual.clone() }),
        ("quiet", Wanted { statuses: vec![Status::Quiet], ..usual.clone() }),
        ("critical", Wanted { severities: vec![Severity::Critical], ..usual.clone() }),
        ("true positive", Wanted { verdicts: vec![Verdict::TruePositive], ..usual.clone() }),
        ("source", Wanted { source: Some("site-7".into()), ..usual.clone() }),
        ("one host", search("web-04242")),
        ("common word", search("module")),
        ("no hit", search("absent-name")),
        ("short word", search("zz")),
    ]);
    pages
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
