//! The default roster: it follows the evidence. One Expert for each domain that the sources belong
//! to, each with its own sources alone, so that corroboration means something.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::results;
use casebook_agent::tools::Tools;
use casebook_protocol::{Domain, Member, SourceInfo, Timestamp, Toolset, one_line};
use tokio::sync::Semaphore;

use crate::evidence::{Catalog, EvidenceTools, Source};

/// An Expert with its tools.
pub struct Seat {
    /// What the roster says of it.
    pub member: Member,
    /// What it can call.
    pub tools: Arc<dyn Tools>,
}

/// One Expert for each domain of the catalog's sources, in order of domain.
#[must_use]
pub fn seats(catalog: &Arc<Catalog>) -> Vec<Seat> {
    let mut domains: BTreeMap<Domain, Vec<&Source>> = BTreeMap::new();
    for source in catalog.sources() {
        domains.entry(source.domain.clone()).or_default().push(source);
    }
    domains.into_iter().map(|(domain, sources)| seat(catalog, domain, &sources)).collect()
}

fn seat(catalog: &Arc<Catalog>, domain: Domain, sources: &[&Source]) -> Seat {
    let ids: Vec<String> = sources.iter().map(|s| s.id.clone()).collect();
    let tools = EvidenceTools::new(Arc::clone(catalog), &ids);
    let toolset = results::with(tools.toolset());
    let seen: Vec<String> = sources.iter().map(|s| format!("{} ({})", one_line(&s.id, 80), about(s))).collect();
    let description = format!("Reads what {domain} sources recorded: {}.", seen.join("; "));
    let sources = sources.iter().map(|s| info(s)).collect();
    Seat { member: Member { domain, description, sources, toolset }, tools: Arc::new(Offloaded(tools)) }
}

fn info(source: &Source) -> SourceInfo {
    SourceInfo {
        source: source.id.clone(),
        sensor: source.sensor.clone(),
        on_subject_host: source.written_on_subject_host,
        records: source.records,
        about: about(source),
    }
}

fn about(source: &Source) -> String {
    let period = match (source.first_time, source.last_time) {
        (Some(first), Some(last)) => format!("{} to {}", second(first), second(last)),
        _ => "without times".to_owned(),
    };
    let damage = if source.malformed > 0 { format!(", {} of them malformed", source.malformed) } else { String::new() };
    format!(
        "{}{damage}, {}, by {}, {period}",
        records(source.records),
        source.format.words(),
        one_line(&source.sensor, 80)
    )
}

/// A moment to the second.
fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn records(number: u64) -> String {
    if number == 1 { "1 record".to_owned() } else { format!("{number} records") }
}

/// So many searches read evidence at once in the whole process: each may hold many hits, and more of them
/// than cores only hold more memory.
static SEARCHES: Semaphore = Semaphore::const_new(3);

/// Evidence tools block on files; they run where blocking is allowed.
struct Offloaded(EvidenceTools);

#[async_trait]
impl Tools for Offloaded {
    fn toolset(&self) -> Toolset {
        self.0.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        // The semaphore is never closed.
        let _turn = SEARCHES.acquire().await;
        let (tools, tool, arguments) = (self.0.clone(), tool.to_owned(), arguments.to_owned());
        match tokio::task::spawn_blocking(move || tools.call(&tool, &arguments)).await {
            Ok(answer) => answer,
            // The runtime shuts down. An answer now would be recorded for ever as the call's failure.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            Err(error) => Err(format!("the tool stopped: {error}")),
        }
    }
}
