//! Counts the values of each field during loading, in bounded memory.

use std::collections::HashMap;

use super::fields::json::is_number;
use super::source::{FieldProfile, ValueCount};

const FIELDS_MAX: usize = 1_500;
/// Values counted for one field.
const VALUES_MAX: usize = 1_000;
/// Values counted for all fields.
const TOTAL_MAX: usize = 60_000;
const VALUE_BYTES: usize = 200;
const TOP: usize = 10;

#[derive(Debug, Default)]
pub(crate) struct Profile {
    fields: HashMap<String, Stat>,
    kept: usize,
    more: bool,
}

#[derive(Debug, Default)]
struct Stat {
    filled: u64,
    /// The last record with the field, so that a list counts once.
    last: u64,
    values: HashMap<String, u64>,
    full: bool,
    /// Too many values, all different: counting stopped.
    unique: bool,
    numbers: bool,
    booleans: bool,
    texts: bool,
}

impl Profile {
    /// Counts the fields of record number `record` (from 1), including empty ones.
    pub(crate) fn add(&mut self, record: u64, fields: &[(String, String)]) {
        for (path, value) in fields {
            if has_position(path) {
                self.count(record, &folded(path), value);
            } else {
                self.count(record, path, value);
            }
        }
    }

    fn count(&mut self, record: u64, path: &str, value: &str) {
        if !self.fields.contains_key(path) {
            if self.fields.len() >= FIELDS_MAX {
                self.more = true;
                return;
            }
            self.fields.insert(path.to_owned(), Stat::default());
        }
        let Some(stat) = self.fields.get_mut(path).filter(|_| !value.is_empty()) else { return };
        if stat.last != record {
            stat.last = record;
            stat.filled += 1;
        }
        if stat.unique {
            return;
        }
        match value {
            "true" | "false" => stat.booleans = true,
            _ if is_number(value) => stat.numbers = true,
            _ => stat.texts = true,
        }
        let value = cut(value, VALUE_BYTES);
        if let Some(count) = stat.values.get_mut(value) {
            *count += 1;
        } else if stat.values.len() < VALUES_MAX && self.kept < TOTAL_MAX {
            stat.values.insert(value.to_owned(), 1);
            self.kept += 1;
        } else {
            stat.full = true;
            stat.unique = stat.values.values().all(|n| *n == 1);
        }
    }

    /// The counts in order of name, and whether there are more. `times` are the names of time fields.
    pub(crate) fn finish(self, times: &[String]) -> (Vec<FieldProfile>, bool) {
        let mut fields: Vec<FieldProfile> = self
            .fields
            .into_iter()
            .map(|(name, stat)| {
                let kind = stat.kind(times.contains(&name));
                let distinct = stat.values.len() as u64;
                let mut top: Vec<(String, u64)> = stat.values.into_iter().collect();
                top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                let top = top.into_iter().take(TOP).map(|(value, count)| ValueCount { value, count }).collect();
                FieldProfile {
                    name,
                    kind: kind.to_owned(),
                    filled: stat.filled,
                    distinct,
                    distinct_is_exact: !stat.full,
                    top,
                }
            })
            .collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        (fields, self.more)
    }
}

impl Stat {
    const fn kind(&self, time: bool) -> &'static str {
        match (time, self.numbers, self.booleans, self.texts) {
            (true, ..) => "time",
            (_, true, false, false) => "number",
            (_, false, true, false) => "boolean",
            (_, false, false, true) => "text",
            _ => "mixed",
        }
    }
}

pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn is_position(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit())
}

fn has_position(path: &str) -> bool {
    path.bytes().any(|b| b.is_ascii_digit()) && path.split('.').any(is_position)
}

/// Replaces positions in lists by `*`.
pub(crate) fn folded(path: &str) -> String {
    path.split('.').map(|s| if is_position(s) { "*" } else { s }).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_up_to_a_cap() {
        let mut profile = Profile::default();
        for i in 1..=3_000u64 {
            let fields = [
                ("id".to_owned(), format!("n{i}")),
                ("ok".to_owned(), (i % 3 == 0).to_string()),
                ("tags.0".to_owned(), "a".to_owned()),
                ("tags.1".to_owned(), "b".to_owned()),
            ];
            profile.add(i, &fields);
        }
        let (fields, more) = profile.finish(&[]);
        let line = |f: &FieldProfile| {
            format!("{} {} {} {}{}", f.name, f.kind, f.filled, f.distinct, if f.distinct_is_exact { "" } else { "+" })
        };
        assert_eq!(
            fields.iter().map(line).collect::<Vec<_>>(),
            ["id text 3000 1000+", "ok boolean 3000 2", "tags.* text 3000 2"]
        );
        assert_eq!((fields[1].top[0].value.as_str(), fields[1].top[0].count), ("false", 2000));
        assert!(!more);
    }
}
