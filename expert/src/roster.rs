//! The default roster: one Expert for each domain with sources. Each Expert sees only its own sources, so that
//! confirmation by another Expert is independent.

use std::collections::BTreeMap;
use std::sync::Arc;

use casebook_agent::results;
use casebook_agent::tools::Tools;
use casebook_protocol::coverage::bounded;
use casebook_protocol::{ActKind, Domain, HostCoverage, Member, SourceInfo, Timestamp, one_line};
use serde::Deserialize;

use crate::definition::{Definition, preset};
use crate::offloaded::Offloaded;
use casebook_evidence::{Catalog, EvidenceTools, Format, Origin, Source, counted};

/// Hosts of a source, and kinds of records of each, that the roster names.
const COVERED: (usize, usize) = (12, 6);
/// Notes of a source that the roster has, and characters of each.
const NOTES: usize = 3;
const NOTE: usize = 200;

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
    /// The sensor that it counts as.
    pub sensor: String,
    pub written_on_subject_host: bool,
    /// A person has confirmed what wrote it. An evidence server that does not say so only guesses.
    #[serde(default)]
    pub confirmed: bool,
    /// What its content looks like, if it is not confirmed.
    #[serde(default)]
    pub guessed_sensor: Option<String>,
    /// The kinds of acts that its sensor records in full.
    #[serde(default)]
    pub acts: Vec<ActKind>,
    #[serde(default)]
    pub hosts: Vec<String>,
    pub records: u64,
    pub malformed: u64,
    pub first_time: Option<Timestamp>,
    pub last_time: Option<Timestamp>,
    #[serde(default)]
    pub coverage: Vec<HostCoverage>,
    /// What a reader must know: an inferred year or zone, a clock that is off, damage.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Seen {
    /// All sources of the catalog.
    pub fn of(catalog: &Catalog) -> Vec<Self> {
        catalog.with_sensors().map(|(source, sensor)| Self::one(source, sensor)).collect()
    }

    fn one(source: &Source, sensor: &str) -> Self {
        Self {
            source: source.id.clone(),
            domain: source.domain.clone(),
            format: source.format,
            sensor: sensor.to_owned(),
            written_on_subject_host: source.on_subject_host(),
            confirmed: source.confirmed,
            guessed_sensor: (!source.confirmed).then(|| source.sensor.clone()),
            acts: source.acts.clone(),
            hosts: source.hosts.clone(),
            records: source.records,
            malformed: source.malformed,
            first_time: source.first_time,
            last_time: source.last_time,
            coverage: source.coverage.clone(),
            notes: source.notes.clone(),
        }
    }

    /// The sources that an evidence server listed. What it does not confirm counts as written on the described host.
    pub fn served(mut listed: Vec<Self>) -> Vec<Self> {
        let origin = |s: &Self| (s.sensor.clone(), s.confirmed, s.hosts.clone());
        let origins: Vec<_> = listed.iter().map(origin).collect();
        let sensors =
            counted(origins.iter().map(|(sensor, confirmed, hosts)| Origin { sensor, confirmed: *confirmed, hosts }));
        for (seen, sensor) in listed.iter_mut().zip(sensors).filter(|(seen, _)| !seen.confirmed) {
            seen.written_on_subject_host = true;
            let told = std::mem::replace(&mut seen.sensor, sensor);
            seen.guessed_sensor.get_or_insert(told);
        }
        listed
    }

    /// What its content looks like, or what wrote it.
    pub fn known_as(&self) -> &str {
        self.guessed_sensor.as_deref().unwrap_or(&self.sensor)
    }

    pub fn info(&self) -> SourceInfo {
        SourceInfo {
            source: self.source.clone(),
            sensor: self.sensor.clone(),
            on_subject_host: self.written_on_subject_host,
            records: self.records,
            about: self.about(),
            coverage: bounded(&self.coverage, COVERED.0, COVERED.1),
        }
    }

    /// For the Director, who sees the records, hosts and times of all sources elsewhere.
    fn briefly(&self) -> String {
        let id = one_line(&self.source, 80);
        if self.coverage.is_empty() {
            return format!("{id} ({})", self.about());
        }
        let damage = if self.malformed > 0 {
            format!(", {} of {} malformed", self.malformed, records(self.records))
        } else {
            String::new()
        };
        format!("{id} ({}, {}{damage}{})", self.format.words(), self.written_by(), self.noted())
    }

    fn noted(&self) -> String {
        self.notes.iter().take(NOTES).map(|note| format!("; {}", one_line(note, NOTE))).collect()
    }

    fn written_by(&self) -> String {
        let by = one_line(self.known_as(), 80);
        if self.confirmed { format!("by {by}") } else { format!("probably by {by}") }
    }

    fn about(&self) -> String {
        let period = match (self.first_time, self.last_time) {
            (Some(first), Some(last)) => format!("{} to {}", second(first), second(last)),
            _ => "without times".to_owned(),
        };
        let damage = if self.malformed > 0 { format!(", {} of them malformed", self.malformed) } else { String::new() };
        let guess = if self.confirmed { "" } else { " (a guess)" };
        let by = format!("{}{guess}", self.written_by());
        format!("{}{damage}, {}, {by}, {period}{}", records(self.records), self.format.words(), self.noted())
    }
}

/// In order of domain.
pub fn members(catalog: &Arc<Catalog>) -> Vec<TeamMember> {
    let mut domains: BTreeMap<Domain, Vec<Seen>> = BTreeMap::new();
    for seen in Seen::of(catalog) {
        domains.entry(seen.domain.clone()).or_default().push(seen);
    }
    let team_member = |(domain, sources): (Domain, Vec<Seen>)| {
        let tools = over_files(catalog, &sources);
        let toolset = results::with(tools.toolset());
        let description = description(None, &sources);
        let definition = preset(&domain).cloned();
        let sources = sources.iter().map(Seen::info).collect();
        let member = Member { domain, description, sources, toolset, covers: Vec::new(), one_call: None };
        TeamMember { member, tools, definition }
    };
    domains.into_iter().map(team_member).collect()
}

pub(crate) fn over_files(catalog: &Arc<Catalog>, sources: &[Seen]) -> Arc<dyn Tools> {
    let ids: Vec<String> = sources.iter().map(|s| s.source.clone()).collect();
    Arc::new(Offloaded::new(EvidenceTools::new(Arc::clone(catalog), &ids)))
}

/// The text that the Director reads about an Expert. `known` is from its definition.
pub(crate) fn description(known: Option<&str>, sources: &[Seen]) -> String {
    let seen: Vec<String> = sources.iter().map(Seen::briefly).collect();
    let reads = format!("Reads {}.", seen.join("; "));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As an evidence server lists a source.
    fn listed(name: &str, more: &str) -> Seen {
        let text = format!(
            r#"{{"source":"{name}","domain":"network","format":"ndjson","sensor":"{name}@web1",
                "written_on_subject_host":false,"records":3,"malformed":0,"first_time":null,"last_time":null{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn served_source_counts_as_a_guess_unless_it_is_confirmed() {
        let confirmed = r#","confirmed":true,"acts":["connection"],"hosts":["web1"]"#;
        let sources = [
            listed("proxy", confirmed),
            listed("old", ""),
            listed("a", r#","confirmed":false,"hosts":["web1"]"#),
            listed("b", r#","confirmed":false,"hosts":["WEB1"],"guessed_sensor":"zeek""#),
        ];
        let seen = Seen::served(sources.to_vec());
        let infos: Vec<SourceInfo> = seen.iter().map(Seen::info).collect();
        let told: Vec<(&str, bool)> = infos.iter().map(|i| (i.sensor.as_str(), i.on_subject_host)).collect();
        let one = ("unconfirmed@web1", true);
        assert_eq!(told, [("proxy@web1", false), ("unconfirmed", true), one, one]);
        assert_eq!(seen[0].acts, [ActKind::Connection]);
        assert!(infos[0].about.contains(", by proxy@web1, "), "{}", infos[0].about);
        let noted = listed("a", r#","notes":["its times have no year: 2024","its clock is off"]"#);
        assert!(noted.info().about.ends_with("; its times have no year: 2024; its clock is off"), "{noted:?}");
        assert!(infos[1].about.contains(", probably by old@web1 (a guess), "), "{}", infos[1].about);
        assert!(infos[3].about.contains(", probably by zeek (a guess), "), "{}", infos[3].about);
    }
}
