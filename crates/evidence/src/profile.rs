//! Counts the values of each field during loading, in bounded memory.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::AHashMap;
use smol_str::SmolStr;

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
    counting: Counting,
    kinds: Kinds,
    /// The values that no block had before.
    values: AHashMap<SmolStr, u64>,
    /// The values of earlier blocks, and how often they came again. They are added when there are no more blocks.
    known: AHashMap<SmolStr, u64>,
    /// One of them is in this block.
    again: bool,
}

/// Which values of a field are counted.
#[derive(Debug, Default, Clone)]
pub(crate) enum Counting {
    #[default]
    All,
    These(Arc<[SmolStr]>),
    None,
}

/// What values look like.
#[derive(Debug, Default, Clone, Copy)]
struct Kinds {
    numbers: bool,
    booleans: bool,
    texts: bool,
}

impl Kinds {
    fn add(&mut self, value: &str) {
        match value {
            "true" | "false" => self.booleans = true,
            number if is_number(number) => self.numbers = true,
            _ => self.texts = true,
        }
    }

    const fn join(&mut self, other: Self) {
        self.numbers |= other.numbers;
        self.booleans |= other.booleans;
        self.texts |= other.texts;
    }
}

impl Counted {
    fn count(&mut self, value: &str) {
        if let Some(count) = self.known.get_mut(value) {
            *count += 1;
            self.again = true;
        } else if let Counting::These(_) = self.counting {
            self.kinds.add(value);
        } else if let Some(count) = self.values.get_mut(value) {
            *count += 1;
        } else {
            self.kinds.add(value);
            self.values.insert(value.into(), 1);
        }
    }

    /// What the block has of the field. Prepares for the next block.
    fn take(&mut self, counting: Option<&Counting>) -> Self {
        let mut next = Self { name: self.name.clone(), known: std::mem::take(&mut self.known), ..Self::default() };
        let room = VALUES_MAX.saturating_sub(next.known.len());
        match counting.unwrap_or(&Counting::All) {
            Counting::All => next.known.extend(self.values.keys().take(room).map(|value| (value.clone(), 0))),
            Counting::These(values) => {
                if !matches!(self.counting, Counting::These(_)) {
                    for value in values.iter() {
                        next.known.entry(value.clone()).or_default();
                    }
                }
            }
            Counting::None => next.known.clear(),
        }
        next.counting = counting.cloned().unwrap_or_default();
        std::mem::replace(self, next)
    }
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
            if !matches!(field.counting, Counting::None) {
                field.count(cut(value, VALUE_BYTES));
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
            Some((before, of)) => {
                path.clone_into(before);
                *of = place;
            }
            None => self.before.push((path.to_owned(), place)),
        }
        place
    }

    /// The counts of the block, in order of name. `counting` is how the next blocks count values, by field.
    pub(crate) fn take(&mut self, counting: &HashMap<String, Counting>) -> Vec<Counted> {
        let there = self.fields.iter_mut().filter(|field| field.there);
        let mut block: Vec<Counted> = there.map(|field| field.take(counting.get(&field.name))).collect();
        block.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        // A record may have keys that are data.
        if self.paths.len() > 4 * FIELDS_MAX {
            block.extend(std::mem::take(self).rest());
        }
        self.record = 0;
        block
    }

    /// The values of earlier blocks that came again.
    pub(crate) fn rest(self) -> Vec<Counted> {
        self.fields
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
    values: AHashMap<SmolStr, u64>,
    full: bool,
    /// Too many values, all different: counting stopped.
    unique: bool,
    /// A value came again that is not counted yet.
    again: bool,
    kinds: Kinds,
}

impl Profile {
    /// Adds the next block, and returns the fields of which not all values need to be counted any more.
    pub(crate) fn add(&mut self, block: Vec<Counted>) -> Vec<(String, Counting)> {
        let mut changed = Vec::new();
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
            stat.again |= counted.again;
            stat.kinds.join(counted.kinds);
            for (value, times) in counted.known {
                stat.values.get_mut(&value).into_iter().for_each(|count| *count += times);
            }
            let mut values: Vec<(SmolStr, u64)> = counted.values.into_iter().collect();
            // The same values must be kept in each run.
            values.sort_unstable();
            let mut over = false;
            for (value, times) in values {
                if let Some(count) = stat.values.get_mut(&value) {
                    *count += times;
                } else if stat.values.len() < VALUES_MAX && self.kept < TOTAL_MAX {
                    stat.values.insert(value, times);
                    self.kept += 1;
                } else {
                    over = true;
                }
            }
            if over && !stat.full {
                stat.full = true;
                stat.unique = !stat.again && stat.values.values().all(|n| *n == 1);
                let kept = || Counting::These(stat.values.keys().cloned().collect());
                changed.push((counted.name, if stat.unique { Counting::None } else { kept() }));
            }
        }
        changed
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
        match (time, self.kinds.numbers, self.kinds.booleans, self.kinds.texts) {
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

    /// `threads` share the blocks.
    fn profile(threads: usize) -> (Vec<FieldProfile>, bool, Vec<String>) {
        let (mut profile, mut counting) = (Profile::default(), HashMap::new());
        let mut tallies: Vec<Tally> = (0..threads).map(|_| Tally::default()).collect();
        for block in 0..6u64 {
            let tally = &mut tallies[usize::try_from(block).unwrap() % threads];
            for i in block * 500 + 1..=(block + 1) * 500 {
                tally.add(&[
                    ("id".to_owned(), format!("n{i}")),
                    ("ok".to_owned(), (i % 3 == 0).to_string()),
                    ("port".to_owned(), if i % 2 == 0 { "22".to_owned() } else { i.to_string() }),
                    ("seen".to_owned(), if i % 500 == 1 { "s".to_owned() } else { format!("s{i}") }),
                    ("tags.0".to_owned(), "a".to_owned()),
                    ("tags.1".to_owned(), if i > 2_900 { "c" } else { "b" }.to_owned()),
                ]);
            }
            counting.extend(profile.add(tally.take(&counting)));
        }
        tallies.into_iter().for_each(|tally| drop(profile.add(tally.rest())));
        let not_counted = counting.into_iter().filter(|(_, how)| matches!(how, Counting::None)).map(|(name, _)| name);
        let not_counted = not_counted.collect();
        let (fields, more) = profile.finish(&[]);
        (fields, more, not_counted)
    }

    #[test]
    fn counts_are_exact_up_to_a_cap() {
        for threads in [1, 2, 5] {
            let (fields, more, not_counted) = profile(threads);
            assert_eq!(not_counted, ["id"]);
            let line = |f: &FieldProfile| {
                let more = if f.distinct_is_exact { "" } else { "+" };
                format!("{} {} {} {}{more} {} {}", f.name, f.kind, f.filled, f.distinct, f.top[0].value, f.top[0].count)
            };
            assert_eq!(
                fields.iter().map(line).collect::<Vec<_>>(),
                [
                    "id text 3000 1000+ n1 1",
                    "ok boolean 3000 2 false 2000",
                    "port number 3000 1000+ 22 1500",
                    "seen text 3000 1000+ s 6",
                    "tags.* text 3000 3 a 3000",
                ]
            );
            assert_eq!(fields[4].top[2].count, 100);
            assert!(!more);
        }
    }
}
