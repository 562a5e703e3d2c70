//! Detects wrong clocks: records with the same moment in two fields, one of them certainly UTC.

use std::collections::{BTreeMap, BTreeSet};

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
                "the clock{} in {} is off: {sign}{h}:{m:02}:{s:02} makes it UTC, by {by} ({agree} of {of} records looked at agree)",
                of_hosts(&offsets),
                fields.join(", ")
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
pub(crate) fn offsets(candidates: &[Candidate], hosts: &[String]) -> Vec<Offset> {
    let mut found: Vec<Offset> = Vec::new();
    let usable = |c: &&Candidate| !matches!(c.class, Class::Other | Class::Soft | Class::Ingestion) && has_clock(c);
    for utc in candidates.iter().filter(|c| c.class == Class::Utc) {
        for other in candidates.iter().filter(usable).filter(|c| c.class != Class::Utc) {
            for (host, diffs) in by_host(utc, other, hosts) {
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
                        },
                    );
                }
            }
        }
    }
    for local in candidates.iter().filter(usable).filter(|c| c.class != Class::Utc && without_zone(c)) {
        for zoned in candidates.iter().filter(|c| !matches!(c.class, Class::Other | Class::Soft) && with_zone(c)) {
            for (host, diffs) in by_host(zoned, local, hosts) {
                if let Some((add, agree)) = zone_of(&diffs) {
                    let (field, path, by) = (names::key(&local.path), local.path.clone(), zoned.path.clone());
                    keep(&mut found, Offset { host, field, path, zoned: false, add, by, agree, of: diffs.len() });
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

fn by_host(a: &Candidate, b: &Candidate, hosts: &[String]) -> BTreeMap<String, Vec<i64>> {
    let mut diffs: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (record, host) in hosts.iter().enumerate() {
        if let (Some(a), Some(b)) = (a.at(record), b.at(record))
            && a.dated
            && b.dated
        {
            diffs.entry(host.clone()).or_default().push(a.ns - b.ns);
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
