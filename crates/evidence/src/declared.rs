//! What wrote a source, as the configuration states it. Detection only guesses it (rule "verdict").

mod pattern;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use casebook_protocol::{ActKind, Domain};

use crate::Source;
use crate::rules::RuleSet;

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
    /// False for a draft, which counts as a guess.
    pub confirmed: bool,
}

impl Declared {
    pub fn rule(&self, file: &str) -> Option<&SourceRule> {
        self.rules.iter().find(|rule| rule.files.matches(file))
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
