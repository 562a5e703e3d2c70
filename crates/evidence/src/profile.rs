//! Counts the values of each field during loading, in bounded memory.

use std::collections::{HashMap, HashSet};

use ahash::AHashMap;

use super::fields::json::is_number;
use super::source::{FieldProfile, ValueCount};

const FIELDS_MAX: usize = 1_500;
/// Values counted for one field.
const VALUES_MAX: usize = 1_000;
/// Values counted for all fields.
const TOTAL_MAX: usize = 60_000;
const VALUE_BYTES: usize = 200;
const TOP: usize = 10;

/// The values of one block of records.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By path: its place in `fields`.
    paths: AHashMap<String, usize>,
    names: HashMap<String, usize>,
    fields: Vec<Counted>,
    /// The paths of the record before and their places, since the next one is mostly alike.
    before: Vec<(String, usize)>,
    record: u64,
}

/// What a block has of one field.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counted {
    name: String,
    there: bool,
    filled: u64,
    /// The last record with the field, so that a list counts once.
    last: u64,
    /// The values are not counted.
    unique: bool,
    values: AHashMap<Box<str>, u64>,
}

impl Tally {
    /// Counts the fields of the next record, including empty ones.
    pub(crate) fn add(&mut self, fields: &[(String, String)]) {
        self.record += 1;
        for (nth, (path, value)) in fields.iter().enumerate() {
            let place = self.place(nth, path);
            let Some(field) = self.fields.get_mut(place) else { continue };
            field.there = true;
            if value.is_empty() {
                continue;
            }
            if field.last != self.record {
                field.last = self.record;
                field.filled += 1;
            }
            if field.unique {
                continue;
            }
            let value = cut(value, VALUE_BYTES);
            match field.values.get_mut(value) {
                Some(count) => *count += 1,
                None => drop(field.values.insert(value.into(), 1)),
            }
        }
    }

    fn place(&mut self, nth: usize, path: &str) -> usize {
        if let Some((before, place)) = self.before.get(nth)
            && before == path
        {
            return *place;
        }
        let place = match self.paths.get(path) {
            Some(known) => *known,
            None => {
                let name = if has_position(path) { folded(path) } else { path.to_owned() };
                let place = *self.names.entry(name.clone()).or_insert(self.fields.len());
                if place == self.fields.len() {
                    self.fields.push(Counted { name, ..Counted::default() });
                }
                self.paths.insert(path.to_owned(), place);
                place
            }
        };
        match self.before.get_mut(nth) {
            Some(before) => *before = (path.to_owned(), place),
            None => self.before.push((path.to_owned(), place)),
        }
        place
    }

    /// The counts of the block, in order of name. Of the fields in `unique`, the next block does not count values.
    pub(crate) fn take(&mut self, unique: &HashSet<String>) -> Vec<Counted> {
        let mut block = Vec::new();
        for field in &mut self.fields {
            let next = Counted { name: field.name.clone(), unique: unique.contains(&field.name), ..Counted::default() };
            let counted = std::mem::replace(field, next);
            block.extend(Some(counted).filter(|counted| counted.there));
        }
        // A record may have keys that are data.
        if self.paths.len() > 4 * FIELDS_MAX {
            *self = Self::default();
        }
        self.record = 0;
        block.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        block
    }
}

/// The values of all blocks.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    fields: HashMap<String, Stat>,
    kept: usize,
    more: bool,
}

#[derive(Debug, Default)]
struct Stat {
    filled: u64,
    values: AHashMap<Box<str>, u64>,
    full: bool,
    /// Too many values, all different: counting stopped.
    unique: bool,
    numbers: bool,
    booleans: bool,
    texts: bool,
}

impl Profile {
    /// Adds the next block, and returns the fields whose values need not be counted any more.
    pub(crate) fn add(&mut self, block: Vec<Counted>) -> Vec<String> {
        let mut unique = Vec::new();
        for counted in block {
            if !self.fields.contains_key(&counted.name) {
                if self.fields.len() >= FIELDS_MAX {
                    self.more = true;
                    continue;
                }
                self.fields.insert(counted.name.clone(), Stat::default());
            }
            let Some(stat) = self.fields.get_mut(&counted.name) else { continue };
            stat.filled += counted.filled;
            if stat.unique {
                continue;
            }
            let mut values: Vec<(Box<str>, u64)> = counted.values.into_iter().collect();
            // The same values must be kept in each run.
            values.sort_unstable();
            let mut over = false;
            for (value, times) in values {
                match &*value {
                    "true" | "false" => stat.booleans = true,
                    number if is_number(number) => stat.numbers = true,
                    _ => stat.texts = true,
                }
                if let Some(count) = stat.values.get_mut(&value) {
                    *count += times;
                } else if stat.values.len() < VALUES_MAX && self.kept < TOTAL_MAX {
                    stat.values.insert(value, times);
                    self.kept += 1;
                } else {
                    over = true;
                }
            }
            stat.full |= over;
            if over && stat.values.values().all(|n| *n == 1) {
                stat.unique = true;
                unique.push(counted.name);
            }
        }
        unique
    }

    /// The counts in order of name, and whether there are more. `times` are the names of time fields.
    pub(crate) fn finish(self, times: &[String]) -> (Vec<FieldProfile>, bool) {
        let mut fields: Vec<FieldProfile> = self
            .fields
            .into_iter()
            .map(|(name, stat)| {
                let kind = stat.kind(times.contains(&name));
                let distinct = stat.values.len() as u64;
                let mut top: Vec<(String, u64)> = stat.values.into_iter().map(|(value, n)| (value.into(), n)).collect();
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
        let (mut profile, mut tally, mut unique) = (Profile::default(), Tally::default(), HashSet::new());
        for i in 1..=3_000u64 {
            let fields = [
                ("id".to_owned(), format!("n{i}")),
                ("ok".to_owned(), (i % 3 == 0).to_string()),
                ("tags.0".to_owned(), "a".to_owned()),
                ("tags.1".to_owned(), "b".to_owned()),
            ];
            tally.add(&fields);
            if i % 500 == 0 {
                unique.extend(profile.add(tally.take(&unique)));
            }
        }
        assert_eq!(unique.into_iter().collect::<Vec<_>>(), ["id"]);
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
