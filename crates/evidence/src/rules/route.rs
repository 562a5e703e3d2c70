//! Which rules a record meets, by its log source.

use std::sync::Arc;

use ahash::AHashMap;

use super::RuleSet;
use super::matching::Matchers;
use super::taxonomy::{Entry, LogSources, Pattern, TAXONOMY};
use super::view::View;

/// Kinds of records of one source whose rules are remembered.
const KNOWN_MAX: usize = 4096;
/// Values of one field that are remembered, and bytes of each.
const VALUES_MAX: usize = 1024;
const VALUE_MAX: usize = 256;

/// A field that decides about the log source, and the values that the table knows.
#[derive(Debug)]
struct Key {
    slot: usize,
    values: Vec<&'static str>,
    patterns: Vec<Pattern>,
    /// What a value fitted.
    known: AHashMap<String, u64>,
    /// The same of the record before, since neighbours are alike.
    last: (String, u64),
}

/// Finds the rules for the records of one source.
#[derive(Debug)]
pub(super) struct Router {
    live: Vec<&'static Entry>,
    keys: Vec<Key>,
    known: AHashMap<Vec<u64>, Option<Arc<Matchers>>>,
    found: Vec<u64>,
    /// What the record before fitted, and its rules, since neighbours are alike.
    last: Option<(Vec<u64>, Option<Arc<Matchers>>)>,
}

impl Router {
    /// None if no rule can meet a record of this source.
    pub(super) fn new(rules: &RuleSet, sensor: &str, file: &str) -> Option<Self> {
        let sensor = sensor.split('@').next().unwrap_or(sensor);
        let live: Vec<&'static Entry> = TAXONOMY.logsource.iter().filter(|entry| entry.may_fit(sensor, file)).collect();
        let mut all = LogSources::default();
        live.iter().for_each(|entry| all.add(entry));
        if !rules.any_meets(&all) {
            return None;
        }
        let mut keys: Vec<Key> = Vec::new();
        for (field, values) in live.iter().flat_map(|entry| &entry.when) {
            let slot = rules.slot(field)?;
            let values = values.iter().map(String::as_str);
            match keys.iter_mut().find(|key| key.slot == slot) {
                Some(key) => key.values.extend(values),
                None => {
                    let (known, last) = Default::default();
                    keys.push(Key { slot, values: values.collect(), patterns: Vec::new(), known, last });
                }
            }
        }
        for key in &mut keys {
            key.values.sort_unstable();
            key.values.dedup();
            key.patterns = key.values.iter().map(|value| Pattern::new(value)).collect();
            key.last.1 = key.looked("");
        }
        Some(Self { live, keys, known: AHashMap::new(), found: Vec::new(), last: None })
    }

    /// None if no rule meets the record.
    pub(super) fn matchers(&mut self, rules: &RuleSet, view: View<'_>) -> Option<&Matchers> {
        self.found.clear();
        for key in &mut self.keys {
            self.found.push(view.at(key.slot).fold(0, |all, value| all | key.fits(value)));
        }
        if self.last.as_ref().is_none_or(|(found, _)| *found != self.found) {
            let found = match self.known.get(&self.found) {
                Some(known) => known.clone(),
                None => {
                    if self.known.len() >= KNOWN_MAX {
                        self.known.clear();
                    }
                    let found = rules.matchers(&self.log_sources(rules));
                    self.known.insert(self.found.clone(), found.clone());
                    found
                }
            };
            self.last = Some((self.found.clone(), found));
        }
        self.last.as_ref()?.1.as_deref()
    }

    /// The log sources of the record that was looked at last.
    pub(super) fn log_sources(&self, rules: &RuleSet) -> LogSources {
        let has = |field: &str, values: &[String]| {
            let slot = rules.slot(field);
            let key = self.keys.iter().zip(&self.found).find(|(key, _)| Some(key.slot) == slot);
            key.is_some_and(|(key, found)| {
                let wanted = |value: &&str| values.iter().any(|one| one == value);
                key.values.iter().enumerate().any(|(bit, value)| wanted(value) && found & bit_of(bit) != 0)
            })
        };
        let mut sources = LogSources::default();
        for entry in self.live.iter().filter(|entry| entry.when.iter().all(|(field, values)| has(field, values))) {
            sources.add(entry);
        }
        sources
    }
}

impl Key {
    /// A bit for each pattern that the value fits.
    fn fits(&mut self, value: &str) -> u64 {
        if self.last.0 != value {
            value.clone_into(&mut self.last.0);
            self.last.1 = self.looked(value);
        }
        self.last.1
    }

    fn looked(&mut self, value: &str) -> u64 {
        if let Some(known) = self.known.get(value) {
            return *known;
        }
        let fits = self.patterns.iter().enumerate().filter(|(_, pattern)| pattern.matches(value));
        let bits = fits.fold(0, |all, (bit, _)| all | bit_of(bit));
        if self.known.len() < VALUES_MAX && value.len() <= VALUE_MAX {
            self.known.insert(value.to_owned(), bits);
        }
        bits
    }
}

fn bit_of(bit: usize) -> u64 {
    u32::try_from(bit).ok().and_then(|bit| 1u64.checked_shl(bit)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn each_known_value_has_a_bit() {
        let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (field, all) in TAXONOMY.logsource.iter().flat_map(|entry| &entry.when) {
            values.entry(field).or_default().extend(all.iter().map(String::as_str));
        }
        for (field, all) in values {
            assert!(all.len() <= 64, "{field} has {} values", all.len());
        }
    }
}
