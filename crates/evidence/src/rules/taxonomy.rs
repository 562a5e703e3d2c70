//! The names of Sigma's fields in our records, and the log source of each record. Both are data: `taxonomy.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use wildmatch::WildMatchPattern;

use crate::facet::{Facet, names_of};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Taxonomy {
    fields: BTreeMap<String, Names>,
    pub(super) logsource: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Names {
    names: String,
    facet: Option<Facet>,
    part: Option<Part>,
}

/// A part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    Path,
    Query,
}

impl Part {
    pub(super) fn of(self, value: &str) -> Option<&str> {
        match self {
            Self::Path => Some(value.split_once('?').map_or(value, |(path, _)| path)),
            Self::Query => value.split_once('?').map(|(_, query)| query),
        }
    }
}

/// What a record must have to be of a log source, and what it adds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Entry {
    sensor: Vec<String>,
    file: Vec<String>,
    pub(super) when: BTreeMap<String, Vec<String>>,
    pub(super) product: Option<String>,
    pub(super) service: Option<String>,
    pub(super) category: Vec<String>,
}

impl Entry {
    /// Whether records of this file can fit. `sensor` has no host.
    pub(super) fn may_fit(&self, sensor: &str, file: &str) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|p| Pattern::new(p).matches(text))
        };
        any(&self.sensor, sensor) && any(&self.file, file.rsplit('/').next().unwrap_or(file))
    }
}

/// A value in the table: `*` is any characters; case is ignored.
#[derive(Debug)]
pub(super) enum Pattern {
    Any,
    Exact(String),
    Wild(WildMatchPattern<'*', '\0'>),
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        match text {
            "*" => Self::Any,
            _ if text.contains('*') => Self::Wild(WildMatchPattern::new_case_insensitive(text)),
            _ => Self::Exact(text.to_owned()),
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => !text.is_empty(),
            Self::Exact(known) => known.eq_ignore_ascii_case(text),
            Self::Wild(pattern) => pattern.matches(text),
        }
    }
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
pub(super) static TAXONOMY: LazyLock<Taxonomy> =
    LazyLock::new(|| toml::from_str(include_str!("../../taxonomy.toml")).expect("taxonomy.toml is valid"));

/// The names of fields that hold a Sigma field, best first, in the form of [`plain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) names: Vec<String>,
    pub(super) part: Option<Part>,
    /// A field of the parent process may hold it.
    pub(super) of_parent: bool,
}

impl Wanted {
    pub(super) fn of(field: &str) -> Self {
        let own = plain(field);
        let known = TAXONOMY.fields.get(field);
        let of_parent = own.contains("parent") || own.contains('.');
        let mut names = vec![own];
        for name in known.iter().flat_map(|k| k.names.split_whitespace()).map(str::to_owned) {
            names.push(name);
        }
        let of_facet = known.and_then(|k| k.facet).map(names_of).unwrap_or_default();
        names.extend(of_facet.iter().map(|name| (*name).to_owned()));
        Self { names, part: known.and_then(|k| k.part), of_parent }
    }
}

/// The parts of a path in lower case with only letters and digits, without positions in lists.
pub(super) fn plain(path: &str) -> String {
    crate::facet::last(path, usize::MAX)
}

/// What a record is evidence of, in the words of Sigma's log sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LogSources {
    pub(super) products: Vec<String>,
    pub(super) services: Vec<String>,
    pub(super) categories: Vec<String>,
}

impl LogSources {
    pub(super) fn add(&mut self, entry: &Entry) {
        let put = |all: &mut Vec<String>, one: &String| {
            if !all.contains(one) {
                all.push(one.clone());
            }
        };
        entry.product.iter().for_each(|product| put(&mut self.products, product));
        entry.service.iter().for_each(|service| put(&mut self.services, service));
        entry.category.iter().for_each(|category| put(&mut self.categories, category));
    }
}

impl std::fmt::Display for LogSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |name: &str, all: &[String]| (!all.is_empty()).then(|| format!("{name} {}", all.join(", ")));
        let parts = [of("product", &self.products), of("category", &self.categories), of("service", &self.services)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "no log source that Sigma knows" } else { "" })?;
        f.write_str(&parts.join("; "))
    }
}

/// The `logsource` of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LogSource {
    pub(super) product: Option<String>,
    pub(super) service: Option<String>,
    pub(super) category: Option<String>,
}

impl LogSource {
    pub(super) fn meets(&self, record: &LogSources) -> bool {
        let among = |wanted: &Option<String>, all: &[String]| {
            wanted.as_ref().is_none_or(|wanted| all.iter().any(|one| one.eq_ignore_ascii_case(wanted)))
        };
        among(&self.product, &record.products)
            && among(&self.service, &record.services)
            && among(&self.category, &record.categories)
    }

    /// Whether any record can meet it, by the table.
    pub(super) fn known(&self) -> bool {
        let mut all = LogSources::default();
        TAXONOMY.logsource.iter().for_each(|entry| all.add(entry));
        self.meets(&all)
    }
}

impl std::fmt::Display for LogSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<&str> =
            [&self.product, &self.category, &self.service].into_iter().flatten().map(String::as_str).collect();
        f.write_str(if parts.is_empty() { "every log" } else { "" })?;
        f.write_str(&parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_valid() {
        assert!(TAXONOMY.logsource.len() > 50);
        for entry in &TAXONOMY.logsource {
            assert!(entry.product.is_some() || entry.service.is_some() || !entry.category.is_empty(), "{entry:?}");
        }
        for names in TAXONOMY.fields.values() {
            for name in names.names.split_whitespace() {
                assert_eq!(name, plain(name), "names are in lower case with only letters, digits and dots");
            }
        }
    }

    #[test]
    fn a_part_of_an_address() {
        assert_eq!(Part::Path.of("/a?b=c"), Some("/a"));
        assert_eq!(Part::Query.of("/a?b=c"), Some("b=c"));
        assert_eq!(Part::Query.of("/a"), None);
    }
}
