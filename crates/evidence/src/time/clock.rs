//! Detects wrong clocks: records with the same moment in two fields, one of them certainly UTC.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::one_line;
use serde::{Deserialize, Serialize};

use super::names::{self, Class};
use super::roles::{Candidate, SECOND, modal};

pub(crate) const QUARTER: i64 = 15 * 60 * SECOND;
/// At least this many records of a host must agree.
const LEAST: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offset {
    /// Lower case; empty if records name no host.
    pub(crate) host: String,
    /// The last part of the path, as [`names::key`] gives it.
    pub(crate) field: String,
    pub(crate) path: String,
    pub(crate) zoned: bool,
    /// Nanoseconds to add to get UTC.
    pub(crate) add: i64,
    /// The field in UTC.
    pub(crate) by: String,
    /// Records that agree, and records with both fields.
    pub(crate) agree: usize,
    pub(crate) of: usize,
    /// A class of records whose clock is right: a field and its values.
    #[serde(default)]
    pub(crate) except: Option<(String, Vec<String>)>,
}

impl Offset {
    /// False for a record of a class whose clock is right.
    pub(crate) fn applies(&self, get: impl Fn(&str) -> Option<String>) -> bool {
        let Some((path, values)) = &self.except else { return true };
        get(path).is_none_or(|value| !values.contains(&value))
    }
}

/// Fields that tell kinds of records apart, as [`names::key`] gives them.
const CLASSES: [&str; 14] = [
    "eventid",
    "channel",
    "providername",
    "provider",
    "sourcename",
    "eventtype",
    "type",
    "category",
    "program",
    "app",
    "product",
    "dataset",
    "module",
    "logname",
];
/// The most values of such a field.
const VALUES_MAX: usize = 24;

/// A field that tells kinds of records apart, with its value in each record.
pub(crate) type Classes = Vec<(String, Vec<Option<String>>)>;

pub(crate) fn classes(sample: &[Vec<(String, String)>]) -> Classes {
    let paths: BTreeSet<&String> = sample
        .iter()
        .flatten()
        .map(|(path, _)| path)
        .filter(|path| CLASSES.contains(&names::key(path).as_str()))
        .collect();
    let of = |path: &String| {
        let value = |fields: &Vec<(String, String)>| fields.iter().find(|(p, _)| p == path).map(|(_, v)| v.clone());
        (path.clone(), sample.iter().map(value).collect::<Vec<_>>())
    };
    let few = |(_, values): &(String, Vec<Option<String>>)| {
        (2..=VALUES_MAX).contains(&values.iter().flatten().collect::<BTreeSet<_>>().len())
    };
    paths.into_iter().map(of).filter(few).collect()
}

/// The differences of one host, each with its record.
type Diffs = Vec<(usize, i64)>;

/// Takes out the records of a class whose clock is right, if the others are off by about `add`.
fn without_class(
    diffs: &mut Diffs,
    add: i64,
    near: std::ops::RangeInclusive<i64>,
    classes: &Classes,
) -> Option<(String, Vec<String>)> {
    let right = |diff: i64| near.contains(&diff);
    let off = |diff: i64| near.contains(&(diff - add));
    let most = |count: usize, of: usize| count * 10 >= of * 9;
    for (path, values) in classes {
        let mut groups: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (record, diff) in &*diffs {
            let value = values.get(*record).and_then(Option::as_deref).unwrap_or_default();
            groups.entry(value).or_default().push(*diff);
        }
        let of_class =
            |all: &Vec<i64>| all.len() >= LEAST && most(all.iter().filter(|d| right(**d)).count(), all.len());
        let (except, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(value, all)| !value.is_empty() && of_class(all));
        let others: Vec<i64> = others.into_iter().flat_map(|(_, all)| all).collect();
        if except.is_empty() || others.len() < LEAST || !most(others.iter().filter(|d| off(**d)).count(), others.len())
        {
            continue;
        }
        let except: Vec<String> = except.into_iter().map(|(value, _)| value.to_owned()).collect();
        let is_of =
            |record: usize| values.get(record).and_then(Option::as_ref).is_some_and(|value| except.contains(value));
        diffs.retain(|(record, _)| !is_of(*record));
        return Some((path.clone(), except));
    }
    None
}

/// One sentence for each different offset.
pub(crate) fn notes(offsets: &[Offset]) -> Vec<String> {
    let mut clocks: BTreeMap<(i64, &str), Vec<&Offset>> = BTreeMap::new();
    for offset in offsets {
        clocks.entry((offset.add, &offset.by)).or_default().push(offset);
    }
    clocks
        .into_iter()
        .map(|((add, by), offsets)| {
            let seconds = add / SECOND;
            let (sign, seconds) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
            let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let fields: BTreeSet<&str> = offsets.iter().map(|o| o.path.as_str()).collect();
            let fields: Vec<&str> = fields.into_iter().collect();
            let (agree, of) = offsets.first().map_or((0, 0), |o| (o.agree, o.of));
            format!(
                "the clock{} in {} is off: {sign}{h}:{m:02}:{s:02} makes it UTC, by {by} ({agree} of {of} records looked at agree){}",
                of_hosts(&offsets),
                fields.join(", "),
                offsets.first().and_then(|o| o.except.as_ref()).map_or_else(String::new, |(path, values)| format!(
                    "; it is right in records whose {} is {}",
                    one_line(path, 80),
                    one_line(&values.join(" or "), 120)
                ))
            )
        })
        .collect()
}

fn of_hosts(offsets: &[&Offset]) -> String {
    let hosts: BTreeSet<&str> = offsets.iter().map(|o| o.host.as_str()).filter(|h| !h.is_empty()).collect();
    let named: Vec<&str> = hosts.iter().take(5).copied().collect();
    match hosts.len() {
        0 => String::new(),
        n if n > named.len() => format!(" of {} and {} more hosts", named.join(", "), n - named.len()),
        _ => format!(" of {}", named.join(", ")),
    }
}

/// `hosts` has the host of each record, in lower case.
pub(crate) fn offsets(candidates: &[Candidate], hosts: &[String], classes: &Classes) -> Vec<Offset> {
    let mut found: Vec<Offset> = Vec::new();
    let usable = |c: &&Candidate| !matches!(c.class, Class::Other | Class::Soft | Class::Ingestion) && has_clock(c);
    for utc in candidates.iter().filter(|c| c.class == Class::Utc) {
        for other in candidates.iter().filter(usable).filter(|c| c.class != Class::Utc) {
            for (host, mut diffs) in by_host(utc, other, hosts) {
                let off = modal(&far(&diffs), 2 * SECOND);
                let except = off.and_then(|(add, _)| without_class(&mut diffs, add, -2 * SECOND..=2 * SECOND, classes));
                let diffs: Vec<i64> = diffs.into_iter().map(|(_, diff)| diff).collect();
                if let Some((add, agree)) = modal(&diffs, 2 * SECOND)
                    && add.abs() >= QUARTER
                    && agree >= LEAST
                    && agree * 10 >= diffs.len() * 6
                {
                    keep(
                        &mut found,
                        Offset {
                            host,
                            field: names::key(&other.path),
                            path: other.path.clone(),
                            zoned: with_zone(other),
                            add: rounded(add),
                            by: utc.path.clone(),
                            agree,
                            of: diffs.len(),
                            except,
                        },
                    );
                }
            }
        }
    }
    for local in candidates.iter().filter(usable).filter(|c| c.class != Class::Utc && without_zone(c)) {
        for zoned in candidates.iter().filter(|c| !matches!(c.class, Class::Other | Class::Soft) && with_zone(c)) {
            for (host, mut diffs) in by_host(zoned, local, hosts) {
                let quarters = |(add, _): (i64, usize)| (add + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
                let off = modal(&far(&diffs), 120 * SECOND).map(quarters);
                let except = off.and_then(|add| without_class(&mut diffs, add, -5 * SECOND..=120 * SECOND, classes));
                let diffs: Vec<i64> = diffs.into_iter().map(|(_, diff)| diff).collect();
                if let Some((add, agree)) = zone_of(&diffs) {
                    let (field, path, by) = (names::key(&local.path), local.path.clone(), zoned.path.clone());
                    keep(
                        &mut found,
                        Offset { host, field, path, zoned: false, add, by, agree, of: diffs.len(), except },
                    );
                }
            }
        }
    }
    found
}

/// The first one counts: a field named UTC is tried before one with a zone.
fn keep(found: &mut Vec<Offset>, offset: Offset) {
    if !found.iter().any(|o| o.host == offset.host && o.field == offset.field) {
        found.push(offset);
    }
}

/// The differences that are too large for a delay.
fn far(diffs: &Diffs) -> Vec<i64> {
    diffs.iter().map(|(_, diff)| *diff).filter(|diff| diff.abs() >= QUARTER / 2).collect()
}

fn by_host(a: &Candidate, b: &Candidate, hosts: &[String]) -> BTreeMap<String, Diffs> {
    let mut diffs: BTreeMap<String, Diffs> = BTreeMap::new();
    for (record, host) in hosts.iter().enumerate() {
        if let (Some(a), Some(b)) = (a.at(record), b.at(record))
            && a.dated
            && b.dated
        {
            diffs.entry(host.clone()).or_default().push((record, a.ns - b.ns));
        }
    }
    diffs
}

/// More exact than a day.
fn has_clock(candidate: &Candidate) -> bool {
    candidate.moments.iter().flatten().any(|m| m.precision != casebook_protocol::Precision::Day)
}

fn without_zone(candidate: &Candidate) -> bool {
    candidate.moments.iter().flatten().all(|m| !m.zoned)
}

fn with_zone(candidate: &Candidate) -> bool {
    candidate.moments.iter().flatten().all(|m| m.zoned)
}

/// The zone of times without one, compared with times in UTC: whole quarters of an hour, with a short delay.
fn zone_of(diffs: &[i64]) -> Option<(i64, usize)> {
    if diffs.len() < 5 {
        return None;
    }
    let mut sorted = diffs.to_vec();
    sorted.sort_unstable();
    let median = *sorted.get(sorted.len() / 2)?;
    let add = (median + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
    let near = sorted.iter().filter(|d| (-5 * SECOND..=120 * SECOND).contains(&(**d - add))).count();
    (add != 0 && add.abs() <= 15 * 3600 * SECOND && near * 10 >= sorted.len() * 9).then_some((add, near))
}

/// The zone between two times, if they differ by one to within a second. A rule that runs every hour writes its
/// own time, which is not a zone offset.
pub(crate) fn zone(utc: i64, local: i64) -> Option<i64> {
    const HALVES: [i64; 8] = [-38, -14, 14, 18, 22, 26, 38, 42];
    const QUARTERS: [i64; 3] = [23, 35, 51];
    let apart = utc.checked_sub(local)?;
    let add = apart.checked_add(QUARTER / 2)?.div_euclid(QUARTER) * QUARTER;
    // A zone offset is the negative of what is added to get UTC.
    let quarters = -add / QUARTER;
    let known = (-48..=56).contains(&quarters) && quarters % 4 == 0
        || HALVES.contains(&quarters)
        || QUARTERS.contains(&quarters);
    (add != 0 && known && (apart - add).abs() < SECOND).then_some(add)
}

/// Rounds to whole minutes if close, otherwise to seconds.
fn rounded(add: i64) -> i64 {
    for unit in [60 * SECOND, SECOND] {
        let nearest = (add + unit / 2).div_euclid(unit) * unit;
        if (nearest - add).abs() <= 2 * SECOND {
            return nearest;
        }
    }
    add
}
