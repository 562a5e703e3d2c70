//! What wrote a source, as the configuration states it. Detection only guesses it (rule "verdict").

mod pattern;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use casebook_protocol::hash::sha256_hex;
use casebook_protocol::{ActKind, Domain};

use crate::Source;
use crate::formats::LineFormat;
use crate::rules::RuleSet;
pub use crate::time::zone::Zone;

pub use pattern::FilePattern;

/// `sources.toml`, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Must not be inside the evidence.
    pub file: Option<PathBuf>,
    /// The first that matches a file counts.
    pub rules: Vec<SourceRule>,
    /// Each a prefix of the addresses of trusted packages.
    pub package_sources: Vec<String>,
    /// The Sigma rules that are evaluated during loading. Without them, an index with any rules is used as it is.
    pub rule_set: Option<Arc<RuleSet>>,
    /// `formats.toml`, or nothing: the first that matches a file counts.
    pub formats: Vec<LineFormat>,
    /// Must not be inside the evidence.
    pub formats_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRule {
    pub files: FilePattern,
    /// What wrote the files. Rules with the same sensor are one sensor.
    pub sensor: String,
    /// True if a process on the described host could have written the records.
    pub on_alerted_host: bool,
    /// The kinds of acts that the sensor records in full.
    pub records: Vec<ActKind>,
    /// The hosts that the sensor watches; if empty, those that the records name.
    pub hosts: Vec<String>,
    pub domain: Option<Domain>,
    /// Of times that have none.
    pub zone: Option<Zone>,
    /// Of the first record, if times have none.
    pub year: Option<i16>,
    /// The field that has the time of a record.
    pub time_field: Option<String>,
    /// False for a draft, which counts as a guess.
    pub confirmed: bool,
}

impl Declared {
    pub fn rule(&self, file: &str) -> Option<&SourceRule> {
        self.rules.iter().find(|rule| rule.files.matches(file))
    }

    pub(crate) fn format(&self, file: &str) -> Option<&LineFormat> {
        self.formats.iter().find(|format| format.files.as_ref().is_some_and(|files| files.matches(file)))
    }

    /// Changes if files would be read in another way. Empty without settings.
    pub(crate) fn reading(&self) -> String {
        let of_rule = |rule: &SourceRule| {
            let zone = rule.zone.as_ref().map(ToString::to_string);
            format!("{} {zone:?} {:?} {:?}", rule.files, rule.year, rule.time_field)
        };
        let settings = self.rules.iter().any(|r| r.zone.is_some() || r.year.is_some() || r.time_field.is_some());
        // The first entry that matches a file counts, so that all entries matter.
        let rules: Vec<String> = self.rules.iter().filter(|_| settings).map(of_rule).collect();
        if rules.is_empty() && self.formats.is_empty() {
            return String::new();
        }
        sha256_hex(format!("{rules:?} {:?}", self.formats).as_bytes())
    }

    /// Sets what the configuration states about `source`.
    pub(crate) fn apply(&self, source: &mut Source) {
        let Some(rule) = self.rule(&source.file) else { return };
        source.sensor.clone_from(&rule.sensor);
        source.written_on_subject_host = rule.on_alerted_host;
        source.acts.clone_from(&rule.records);
        source.confirmed = rule.confirmed;
        if !rule.hosts.is_empty() {
            source.hosts.clone_from(&rule.hosts);
        }
        if let Some(domain) = &rule.domain {
            source.domain = domain.clone();
            "set in sources.toml".clone_into(&mut source.domain_reason);
        }
    }
}

impl SourceRule {
    /// What a reader must know about the times.
    pub(crate) fn notes(&self) -> Vec<String> {
        let zone = self.zone.as_ref().map(|zone| format!("times without a zone are read as {zone}, by sources.toml"));
        let year = self.year.map(|year| format!("times without a year begin in {year}, by sources.toml"));
        zone.into_iter().chain(year).collect()
    }
}

/// What [`counted`] needs to know about a source.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'s> {
    pub sensor: &'s str,
    pub confirmed: bool,
    pub hosts: &'s [String],
}

/// The sensor that each source counts as. Unconfirmed sources are one sensor if their records name a common host, also
/// by way of others, or if they name none: one process may have written them all.
pub fn counted<'s>(sources: impl Iterator<Item = Origin<'s>>) -> Vec<String> {
    let sources: Vec<Origin<'s>> = sources.collect();
    let names = |origin: &Origin<'s>| -> Vec<String> {
        origin.hosts.iter().map(|host| host.trim_end_matches('.').to_lowercase()).collect()
    };
    // For each host, the first host of its group.
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for origin in sources.iter().filter(|origin| !origin.confirmed) {
        let hosts = names(origin);
        let known: Vec<String> = hosts.iter().map(|host| first.get(host).unwrap_or(host).clone()).collect();
        let Some(least) = known.iter().min().cloned() else { continue };
        first.extend(hosts.into_iter().map(|host| (host, least.clone())));
        first.values_mut().filter(|one| known.contains(*one)).for_each(|one| one.clone_from(&least));
    }
    let name = |origin: &Origin<'s>| {
        if origin.confirmed {
            return origin.sensor.to_owned();
        }
        match names(origin).first().and_then(|host| first.get(host)) {
            Some(host) => format!("unconfirmed@{host}"),
            None => "unconfirmed".to_owned(),
        }
    };
    sources.iter().map(name).collect()
}

#[cfg(test)]
mod tests;
