//! The knowledge of the analyst (`behaviours.toml`): behaviours that point to an attack, explain one away, or
//! are worth a look. It is general and must not contain knowledge of an evaluation case.

use memchr::memmem::Finder;
use std::sync::OnceLock;

use casebook_protocol::{Bearing, Weight};
use regex::Regex;
use serde::Deserialize;

use casebook_evidence::facet::{Class, Facet, Facets};

const FILE: &str = include_str!("behaviours.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    behaviour: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    title: String,
    technique: String,
    #[expect(dead_code, reason = "read by people who maintain the book")]
    tactic: String,
    bearing: EntryBearing,
    strength: Strength,
    #[serde(default)]
    class: Vec<Class>,
    #[serde(default)]
    terms: Vec<String>,
    #[serde(default, rename = "where")]
    all_of: Vec<EntryCondition>,
    #[serde(default)]
    any_of: Vec<EntryCondition>,
    #[serde(default)]
    #[expect(dead_code, reason = "read by people who maintain the book")]
    explains: Vec<String>,
    look_next: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "read by people who maintain the book")]
    false_positives: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryBearing {
    Incriminating,
    Exonerating,
    Context,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strength {
    Decisive,
    Strong,
    Moderate,
    Weak,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryCondition {
    facet: Facet,
    matches: Option<String>,
    #[serde(rename = "in")]
    one_of: Option<Vec<String>>,
    at_least: Option<f64>,
    #[serde(default)]
    not: bool,
}

#[derive(Debug)]
struct Condition {
    facet: Facet,
    test: Test,
    not: bool,
}

#[derive(Debug)]
enum Test {
    Matches(Pattern),
    OneOf(Vec<String>),
    AtLeast(f64),
    Present,
}

/// A regular expression, compiled on first use, because most are never used.
#[derive(Debug)]
struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    #[allow(clippy::expect_used, reason = "the tests compile every pattern of the book")]
    fn is_match(&self, value: &str) -> bool {
        let compile = || Regex::new(&self.text).expect("a pattern of the book is a regular expression");
        self.compiled.get_or_init(compile).is_match(value)
    }
}

#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) technique: Option<String>,
    pub(crate) bearing: Bearing,
    pub(crate) weight: Weight,
    pub(crate) terms: Vec<String>,
    /// Prepared, because every record is searched for every term.
    needles: Vec<Finder<'static>>,
    pub(crate) look_next: Option<String>,
    class: Vec<Class>,
    all_of: Vec<Condition>,
    any_of: Vec<Condition>,
}

impl Behaviour {
    pub(crate) fn matches(&self, facets: &Facets, lower_text: &str) -> bool {
        (self.class.is_empty() || facets.class.is_some_and(|c| self.class.contains(&c)))
            && (self.terms.is_empty() || self.needles.iter().any(|n| n.find(lower_text.as_bytes()).is_some()))
            && self.all_of.iter().all(|c| c.holds(facets, self.bearing))
            && (self.any_of.is_empty() || self.any_of.iter().any(|c| c.holds(facets, self.bearing)))
    }
}

impl Behaviour {
    /// The file name, if writing the file is enough to match.
    pub(crate) fn file_name(&self) -> Option<&str> {
        if self.class != [Class::FileCreate] {
            return None;
        }
        self.all_of.iter().find_map(|condition| match &condition.test {
            Test::Matches(pattern) if condition.facet == Facet::Object && !condition.not => Some(pattern.text.as_str()),
            _ => None,
        })
    }
}

impl Condition {
    fn holds(&self, facets: &Facets, bearing: Bearing) -> bool {
        let value = facets.get(self.facet);
        // Forms send in the body what links send in the address. A body never explains anything away.
        let accuses = self.facet == Facet::Url && bearing == Bearing::Incriminating && !self.not;
        let body = accuses.then(|| facets.get(Facet::Body)).flatten();
        let holds = match (&self.test, value) {
            (Test::Matches(regex), Some(value)) => {
                regex.is_match(value) || body.is_some_and(|body| regex.is_match(body))
            }
            (Test::OneOf(values), Some(value)) => values.iter().any(|v| v.eq_ignore_ascii_case(value)),
            (Test::AtLeast(least), Some(value)) => value.parse::<f64>().is_ok_and(|v| v >= *least),
            (Test::Present, value) => value.is_some(),
            (_, None) => false,
        };
        holds != self.not
    }
}

pub(crate) fn all() -> &'static [Behaviour] {
    static BOOK: OnceLock<Vec<Behaviour>> = OnceLock::new();
    BOOK.get_or_init(|| {
        read(FILE).unwrap_or_else(|error| unreachable!("behaviours.toml is tested to be readable: {error}"))
    })
}

fn read(text: &str) -> Result<Vec<Behaviour>, String> {
    let book: Book = toml::from_str(text).map_err(|e| e.to_string())?;
    book.behaviour.into_iter().map(make).collect()
}

fn make(entry: Entry) -> Result<Behaviour, String> {
    let id = entry.id.clone();
    let terms: Vec<String> = entry.terms.iter().map(|t| t.to_lowercase()).collect();
    let conditions =
        |list: Vec<EntryCondition>| list.into_iter().map(|c| condition(&id, c)).collect::<Result<Vec<_>, _>>();
    Ok(Behaviour {
        title: entry.title,
        technique: Some(entry.technique).filter(|t| !t.is_empty()),
        bearing: match entry.bearing {
            EntryBearing::Incriminating => Bearing::Incriminating,
            EntryBearing::Exonerating => Bearing::Exonerating,
            EntryBearing::Context => Bearing::Neutral,
        },
        weight: match entry.strength {
            Strength::Decisive => Weight::Decisive,
            Strength::Strong => Weight::Strong,
            Strength::Moderate => Weight::Moderate,
            Strength::Weak => Weight::Weak,
        },
        needles: terms.iter().map(|t| Finder::new(t).into_owned()).collect(),
        terms,
        look_next: entry.look_next,
        class: entry.class,
        all_of: conditions(entry.all_of)?,
        any_of: conditions(entry.any_of)?,
        id: entry.id,
    })
}

fn condition(id: &str, entry: EntryCondition) -> Result<Condition, String> {
    let test = match (entry.matches, entry.one_of, entry.at_least) {
        (Some(text), None, None) => Test::Matches(Pattern { text, compiled: OnceLock::new() }),
        (None, Some(values), None) => Test::OneOf(values),
        (None, None, Some(least)) => Test::AtLeast(least),
        (None, None, None) => Test::Present,
        _ => return Err(format!("{id}: a condition has one of matches, in, at_least")),
    };
    Ok(Condition { facet: entry.facet, test, not: entry.not })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_book_is_readable_and_each_id_stands_once() {
        let book = read(FILE).unwrap();
        let ids: BTreeSet<&str> = book.iter().map(|b| b.id.as_str()).collect();
        assert_eq!(ids.len(), book.len());
        assert!(book.len() > 100);
        for condition in book.iter().flat_map(|b| b.all_of.iter().chain(&b.any_of)) {
            if let Test::Matches(pattern) = &condition.test {
                Regex::new(&pattern.text).unwrap();
            }
        }
    }

    #[test]
    fn titles_state_nothing_that_evidence_would_have_to_state() {
        for behaviour in all() {
            let faults =
                casebook_trust::claim::faults(&behaviour.title, &casebook_trust::claim::Corpus::default(), &[]);
            assert_eq!(faults, Vec::<String>::new(), "{}", behaviour.id);
        }
    }
}

#[cfg(test)]
mod rare;
#[cfg(test)]
mod windows;
#[cfg(test)]
mod wire;
