//! The default roster: one Expert for each domain with sources. Each Expert sees only its own sources, so that
//! confirmation by another Expert is independent.

use std::collections::BTreeMap;
use std::sync::Arc;

use casebook_agent::results;
use casebook_agent::tools::Tools;
use casebook_protocol::{Domain, Member, SourceInfo, Timestamp, one_line};
use serde::Deserialize;

use crate::definition::{Definition, preset};
use crate::offloaded::Offloaded;
use casebook_evidence::{Catalog, EvidenceTools, Format, Source};

pub struct TeamMember {
    pub member: Member,
    pub tools: Arc<dyn Tools>,
    pub definition: Option<Definition>,
}

/// A source as `list_sources` describes it, in process or over MCP.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Seen {
    pub source: String,
    pub domain: Domain,
    pub format: Format,
    pub sensor: String,
    pub written_on_subject_host: bool,
    pub records: u64,
    pub malformed: u64,
    pub first_time: Option<Timestamp>,
    pub last_time: Option<Timestamp>,
}

impl From<&Source> for Seen {
    fn from(source: &Source) -> Self {
        Self {
            source: source.id.clone(),
            domain: source.domain.clone(),
            format: source.format,
            sensor: source.sensor.clone(),
            written_on_subject_host: source.written_on_subject_host,
            records: source.records,
            malformed: source.malformed,
            first_time: source.first_time,
            last_time: source.last_time,
        }
    }
}

impl Seen {
    pub fn info(&self) -> SourceInfo {
        SourceInfo {
            source: self.source.clone(),
            sensor: self.sensor.clone(),
            on_subject_host: self.written_on_subject_host,
            records: self.records,
            about: self.about(),
        }
    }

    fn about(&self) -> String {
        let period = match (self.first_time, self.last_time) {
            (Some(first), Some(last)) => format!("{} to {}", second(first), second(last)),
            _ => "without times".to_owned(),
        };
        let damage = if self.malformed > 0 { format!(", {} of them malformed", self.malformed) } else { String::new() };
        format!(
            "{}{damage}, {}, by {}, {period}",
            records(self.records),
            self.format.words(),
            one_line(&self.sensor, 80)
        )
    }
}

/// In order of domain.
pub fn members(catalog: &Arc<Catalog>) -> Vec<TeamMember> {
    let mut domains: BTreeMap<Domain, Vec<Seen>> = BTreeMap::new();
    for source in catalog.sources() {
        domains.entry(source.domain.clone()).or_default().push(source.into());
    }
    let team_member = |(domain, sources): (Domain, Vec<Seen>)| {
        let tools = over_files(catalog, &sources);
        let toolset = results::with(tools.toolset());
        let description = description(&domain, None, &sources);
        let definition = preset(&domain).cloned();
        let sources = sources.iter().map(Seen::info).collect();
        TeamMember { member: Member { domain, description, sources, toolset }, tools, definition }
    };
    domains.into_iter().map(team_member).collect()
}

pub(crate) fn over_files(catalog: &Arc<Catalog>, sources: &[Seen]) -> Arc<dyn Tools> {
    let ids: Vec<String> = sources.iter().map(|s| s.source.clone()).collect();
    Arc::new(Offloaded(EvidenceTools::new(Arc::clone(catalog), &ids)))
}

/// The text that the Director reads about an Expert. `known` is from its definition.
pub(crate) fn description(domain: &Domain, known: Option<&str>, sources: &[Seen]) -> String {
    let seen: Vec<String> = sources.iter().map(|s| format!("{} ({})", one_line(&s.source, 80), s.about())).collect();
    let reads = format!("Reads what {domain} sources recorded: {}.", seen.join("; "));
    match known {
        None => reads,
        Some(known) if sources.is_empty() => one_line(known, 1000),
        Some(known) => format!("{} Sees {}.", one_line(known, 1000), seen.join("; ")),
    }
}

fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn records(number: u64) -> String {
    if number == 1 { "1 record".to_owned() } else { format!("{number} records") }
}
