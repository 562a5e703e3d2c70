//! The list: any filter and any page of many generated investigations.

use std::sync::Arc;
use std::time::Instant;

use casebook_hub::SqliteStore;
use casebook_runtime::store::Store;

use super::{Asker, Figures, Times};
use crate::load::measure;
use crate::web::Server;
use crate::{Result, many};

/// Of an answer, in milliseconds.
const GOAL: f64 = 50.0;
/// Pages of each filter, one after the other.
const PAGES: usize = 60;
const CLIENTS: usize = 16;
/// Answers that each of the clients gets.
const ASKED: usize = 40;
const STREAMS: usize = 256;
/// Of the server, in MiB.
const MEMORY: f64 = 150.0;
const FILTERS: [&str; 14] = [
    "",
    "status=open",
    "status=quiet",
    "status=closed",
    "severity=critical",
    "severity=low",
    "verdict=true_positive",
    "verdict=inconclusive",
    "status=closed&severity=high&verdict=benign_positive",
    "q=web-04242",
    "q=module",
    "q=Password+spray&severity=medium",
    "q=absent-name",
    "q=zz",
];

/// # Errors
/// A goal that is missed.
pub async fn check(investigations: u32) -> Result<String> {
    let data = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(data.path())?);
    many::fill(&store, investigations).await?;
    drop(store);
    let server = Server::serve(data.path(), &[])?;
    let asker = Arc::new(Asker::of(&server)?);
    let mut figures = Figures::default();
    let index = asker.timed("/").await?.as_secs_f64();
    figures.say(format!("{investigations} investigations, the first page made the index in {index:.1} s"));
    figures.say(format!("{:<34} {:>7} {:>7} {:>7}", "", "p50", "p95", "most"));
    let mut paths = Vec::new();
    for filter in FILTERS {
        let (times, pages) = pages(&asker, filter).await?;
        figures.times(if filter.is_empty() { "no filter" } else { filter }, &times, GOAL);
        paths.extend(pages);
    }
    let begun = Instant::now();
    let many = at_once(&asker, Arc::new(paths)).await?;
    let rate = many.0.len() as f64 / begun.elapsed().as_secs_f64();
    figures.times(&format!("{CLIENTS} clients at once"), &many, GOAL);
    figures.say(format!("{rate:.0} answers a second"));
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(asker.request("/api/v1/events").send().await?.error_for_status()?);
    }
    let memory = measure::peak_kib(server.pid()) as f64 / 1024.0;
    figures.say(format!("peak memory of the server with {} streams: {memory:.0} MiB", streams.len()));
    figures.judge("memory", memory, MEMORY, "MiB");
    figures.done()
}

/// The pages of a filter from the first on, and again from the first when they end.
async fn pages(asker: &Asker, filter: &str) -> Result<(Times, Vec<String>)> {
    let first = format!("/?{filter}");
    let (mut times, mut paths, mut path) = (Times::default(), Vec::new(), first.clone());
    for _ in 0..PAGES {
        times.add(asker.timed(&path).await?);
        let page = asker.request(&path).send().await?.text().await?;
        paths.push(path);
        path = next(&page).unwrap_or_else(|| first.clone());
    }
    Ok((times, paths))
}

/// Where the button for older investigations leads.
fn next(page: &str) -> Option<String> {
    let before = page.split_once("\">More")?.0;
    let href = before.rsplit_once("href=\"")?.1;
    Some(href.replace("&amp;", "&"))
}

/// Other pages for each client.
async fn some(asker: Arc<Asker>, paths: Arc<Vec<String>>, client: usize) -> Result<Times> {
    let mut times = Times::default();
    for path in paths.iter().cycle().skip(client * 53).step_by(17).take(ASKED) {
        times.add(asker.timed(path).await?);
    }
    Ok(times)
}

async fn at_once(asker: &Arc<Asker>, paths: Arc<Vec<String>>) -> Result<Times> {
    let clients = (0..CLIENTS).map(|client| tokio::spawn(some(Arc::clone(asker), Arc::clone(&paths), client)));
    let mut all = Times::default();
    for client in clients.collect::<Vec<_>>() {
        all.0.extend(client.await??.0);
    }
    Ok(all)
}
