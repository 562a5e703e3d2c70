//! Decides which fields are times and what each means, by name and by values.

use std::collections::{HashMap, HashSet};

use super::clock::QUARTER;
use super::names::{self, Class};
use super::text::{Moment, Reading, parse};
use crate::source::{TimeField, TimeRole};

type Fields = Vec<(String, String)>;

pub(crate) const SECOND: i64 = 1_000_000_000;
/// Nanoseconds. A smaller difference means the same clock, read at two moments of an event.
const SAME_EVENT: i64 = 2 * SECOND;

/// A field in which nearly all values are times.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) path: String,
    pub(crate) class: Class,
    pub(crate) role: TimeRole,
    pub(crate) note: String,
    pub(crate) score: f64,
    /// One for each record of the sample.
    pub(crate) moments: Vec<Option<Moment>>,
    pub(crate) filled: usize,
}

impl Candidate {
    pub(crate) fn at(&self, record: usize) -> Option<&Moment> {
        self.moments.get(record).and_then(Option::as_ref)
    }

    /// `self - other` in nanoseconds, for records with both.
    pub(crate) fn minus(&self, other: &Self) -> Vec<i64> {
        let both = self.moments.iter().zip(&other.moments);
        both.filter_map(|(a, b)| Some(a.as_ref()?.ns - b.as_ref()?.ns)).collect()
    }
}

pub(crate) fn assign(sample: &[Fields], reading: Reading) -> Vec<Candidate> {
    let mut candidates = collect(sample, reading);
    for candidate in &mut candidates {
        candidate.score = score(candidate, sample.len());
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    prefer_varying(&mut candidates);
    prefer_finer(&mut candidates);
    prefer_earlier(&mut candidates);
    prefer_possible(&mut candidates);
    give_roles(&mut candidates);
    candidates
}

/// Takes the time from `field`, and returns a note about it.
pub(crate) fn choose(candidates: &mut [Candidate], field: &str) -> String {
    match prefer(candidates, field) {
        true => format!("the time is that of {field}, by sources.toml"),
        false => format!("sources.toml sets the time field {field}, but no record looked at has a time there"),
    }
}

/// Takes the time from `field`. False if no record has a time there.
pub(crate) fn prefer(candidates: &mut [Candidate], field: &str) -> bool {
    let is_named = |c: &Candidate| c.path.eq_ignore_ascii_case(field);
    if !candidates.iter().any(is_named) {
        return false;
    }
    for candidate in candidates.iter_mut() {
        candidate.role = if is_named(candidate) { TimeRole::Event } else { TimeRole::Other };
    }
    candidates.sort_by_key(|candidate| !is_named(candidate));
    true
}

/// Whether `05/09/2023` is 5 September. Some value must prove it.
pub(crate) fn day_first(sample: &[Fields]) -> bool {
    sample.iter().flatten().filter(|(_, v)| (8..=32).contains(&v.len())).any(|(_, value)| {
        let mut parts = value.splitn(3, '/');
        let (Some(first), Some(second), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let number = |t: &str| t.parse::<u8>().ok().filter(|_| t.len() <= 2);
        let year = rest.get(..4).is_some_and(|y| y.bytes().all(|b| b.is_ascii_digit()));
        year && number(first).is_some_and(|n| (13..=31).contains(&n)) && number(second).is_some_and(|n| n <= 12)
    })
}

fn collect(sample: &[Fields], reading: Reading) -> Vec<Candidate> {
    struct Tried {
        values: usize,
        moments: Vec<(usize, Moment)>,
    }
    let mut tried: HashMap<&str, Tried> = HashMap::new();
    for (record, fields) in sample.iter().enumerate() {
        for (path, value) in fields {
            let listed = path.split('.').any(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()));
            if value.is_empty() || value == "-" || listed || names::chosen(path) {
                continue;
            }
            let entry = tried.entry(path).or_insert(Tried { values: 0, moments: Vec::new() });
            entry.values += 1;
            if entry.values > 20 && entry.moments.is_empty() {
                continue;
            }
            let reading = Reading { numbers: names::may_count(path), ..reading };
            if let Some(moment) = parse(value, reading)
                && entry.moments.last().is_none_or(|(last, _)| *last != record)
            {
                entry.moments.push((record, moment));
            }
        }
    }
    let mut candidates = Vec::new();
    for (path, tried) in tried {
        let filled = tried.moments.len();
        if filled == 0 || filled * 10 < tried.values * 7 {
            continue;
        }
        let mut moments = vec![None; sample.len()];
        for (record, moment) in tried.moments {
            if let Some(slot) = moments.get_mut(record) {
                *slot = Some(moment);
            }
        }
        candidates.push(Candidate {
            path: path.to_owned(),
            class: names::class(path),
            role: TimeRole::Other,
            note: String::new(),
            score: 0.0,
            moments,
            filled,
        });
    }
    candidates
}

fn score(candidate: &Candidate, records: usize) -> f64 {
    let times: Vec<i64> = candidate.moments.iter().flatten().map(|m| m.ns).collect();
    let coverage = share(candidate.filled, records);
    let steps = times.len().saturating_sub(1);
    let up = times.windows(2).filter(|w| matches!(w, [a, b] if a <= b)).count();
    let down = times.windows(2).filter(|w| matches!(w, [a, b] if a >= b)).count();
    let ordered = if steps == 0 { 1.0 } else { share(up.max(down), steps) };
    let constant = times.len() >= 5 && times.windows(2).all(|w| matches!(w, [a, b] if a == b));
    let dated = candidate.moments.iter().flatten().all(|m| m.dated);
    let day = candidate.moments.iter().flatten().all(|m| m.precision == casebook_protocol::Precision::Day);
    // Depth counts little, because collectors pack the original event into a field.
    let depth = candidate.path.matches('.').count().min(2);
    candidate.class.strength() + 4.0 * coverage + 2.0 * ordered
        - 0.25 * f64::from(u8::try_from(depth).unwrap_or(2))
        - if constant { 3.0 } else { 0.0 }
        - if dated { 0.0 } else { 2.0 }
        - if day { 4.0 } else { 0.0 }
        - if names::of_shipper(&candidate.path) && candidate.class != Class::Weak { 3.0 } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "counts of a sample are small")]
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// If the first field is constant, as when a capture is read later, prefer a field with start times that vary.
fn prefer_varying(candidates: &mut [Candidate]) {
    let distinct = |c: &Candidate| c.moments.iter().flatten().map(|m| m.ns).collect::<HashSet<_>>().len();
    let Some(first) = candidates.first().filter(|c| c.filled >= 10 && distinct(c) == 1) else { return };
    let filled = first.filled;
    let other = candidates.iter().skip(1).position(|other| {
        matches!(names::of_field(&other.path), Class::Own(6..))
            && other.filled * 10 >= filled * 9
            && distinct(other) > 1
    });
    let Some(at) = other else { return };
    raise(candidates, at + 1);
    if let Some(first) = candidates.first_mut() {
        first.class = names::of_field(&first.path);
    }
}

/// Prefer a field with the same time and a fraction.
fn prefer_finer(candidates: &mut [Candidate]) {
    let Some(first) = candidates.first() else { return };
    let finer = candidates.iter().position(|other| {
        let diffs = other.minus(first);
        let fraction = diffs.iter().filter(|d| (0..SECOND).contains(*d)).count();
        let coarse = first.moments.iter().flatten().all(|m| m.ns % SECOND == 0);
        let fine = other.moments.iter().flatten().any(|m| m.ns % SECOND != 0);
        let named = matches!(other.class, Class::Utc | Class::Own(6..)) && !names::of_shipper(&other.path);
        named && coarse && fine && other.filled >= first.filled && fraction * 10 >= diffs.len() * 9 && diffs.len() >= 3
    });
    if let Some(at) = finer {
        raise(candidates, at);
    }
}

/// If the first field may be from a shipper and another is nearly always earlier, prefer the other.
fn prefer_earlier(candidates: &mut [Candidate]) {
    let Some(first) = candidates.first() else { return };
    if !matches!(first.class, Class::Weak | Class::Ingestion) && !names::of_shipper(&first.path) {
        return;
    }
    let earlier = candidates.iter().skip(1).position(|other| {
        let diffs = first.minus(other);
        let late = diffs.iter().filter(|d| **d > 0).count();
        let not_early = diffs.iter().filter(|d| **d >= 0 && **d < 86_400 * SECOND).count();
        matches!(other.class, Class::Utc | Class::Own(3..))
            && other.filled * 2 >= first.filled
            && not_early * 100 >= diffs.len() * 95
            && late * 2 >= diffs.len()
            && !diffs.is_empty()
    });
    if let Some(at) = earlier {
        raise(candidates, at + 1);
    }
}

/// An event cannot begin after it was received. If the first field is later than the ingestion, it is the start
/// of something else. A difference of whole quarters of an hour is a missing zone instead.
fn prefer_possible(candidates: &mut [Candidate]) {
    let Some(first) = candidates.first().filter(|c| c.class == Class::Own(6)) else { return };
    let received = candidates.iter().position(|other| {
        let diffs = first.minus(other);
        let impossible = |d: &&i64| **d > 10 * SECOND && (**d + SAME_EVENT).rem_euclid(QUARTER) > 2 * SAME_EVENT;
        other.class == Class::Weak
            && other.filled >= first.filled
            && !diffs.is_empty()
            && diffs.iter().filter(impossible).count() * 10 >= diffs.len() * 9
    });
    if let Some(at) = received {
        raise(candidates, at);
    }
}

fn raise(candidates: &mut [Candidate], at: usize) {
    if let Some(part) = candidates.get_mut(..=at) {
        part.rotate_right(1);
    }
}

fn give_roles(candidates: &mut [Candidate]) {
    let Some((own, rest)) = candidates.split_first_mut() else { return };
    match own.class {
        Class::Other => {
            "not the time of an event: a validity or similar".clone_into(&mut own.note);
        }
        Class::Ingestion => {
            own.role = TimeRole::Ingestion;
            "the only time, and it is that of ingestion".clone_into(&mut own.note);
        }
        Class::Soft => {
            own.role = TimeRole::Event;
            "the only time; it gives the state of an object, not an event".clone_into(&mut own.note);
        }
        _ => {
            own.role = TimeRole::Event;
            "used as the event's own time".clone_into(&mut own.note);
        }
    }
    for other in rest {
        let (role, note) = role_beside(own, other);
        other.role = role;
        other.note = note;
    }
}

fn role_beside(own: &Candidate, other: &Candidate) -> (TimeRole, String) {
    let diffs = other.minus(own);
    let all = diffs.len();
    let count = |wanted: &dyn Fn(i64) -> bool| diffs.iter().filter(|d| wanted(**d)).count();
    let same = count(&|d| d == 0);
    let close = count(&|d| d.abs() <= SAME_EVENT);
    let later = count(&|d| d > -SAME_EVENT);
    if matches!(other.class, Class::Other | Class::Soft) {
        return (TimeRole::Other, "state or validity of an object, by its name".into());
    }
    // Few common records prove little.
    if all == 0 || own.filled.saturating_mul(4) < other.filled {
        let role = if other.class == Class::Ingestion { TimeRole::Ingestion } else { TimeRole::Event };
        return (role, format!("used where {} is missing", own.path));
    }
    if same * 10 >= all * 9 {
        return (TimeRole::Event, format!("the same as {}", own.path));
    }
    if other.class == Class::Ingestion {
        return (TimeRole::Ingestion, format!("by its name; {}", behind(&diffs, &own.path)));
    }
    if later * 10 >= all * 9 && (other.class == Class::Weak || names::of_shipper(&other.path)) {
        return (TimeRole::Ingestion, behind(&diffs, &own.path));
    }
    if close * 10 >= all * 8 {
        return (TimeRole::Event, format!("within seconds of {}", own.path));
    }
    if let Some((offset, agree)) = modal(&diffs, SAME_EVENT)
        && agree * 10 >= all * 6
        && offset.abs() >= 15 * 60 * SECOND
    {
        return (TimeRole::Event, format!("differs from {} by {} s in most records", own.path, offset / SECOND));
    }
    (TimeRole::Other, behind(&diffs, &own.path))
}

fn behind(diffs: &[i64], own: &str) -> String {
    let mut sorted = diffs.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let tenths = median / (SECOND / 10);
    let (sign, tenths) = if tenths < 0 { ("before", -tenths) } else { ("after", tenths) };
    format!("{}.{} s {sign} {own} in the median", tenths / 10, tenths % 10)
}

/// The most frequent difference within `width`, and its count.
pub(crate) fn modal(diffs: &[i64], width: i64) -> Option<(i64, usize)> {
    let mut sorted = diffs.to_vec();
    sorted.sort_unstable();
    let mut best: Option<(usize, usize)> = None;
    let mut low = 0;
    for high in 0..sorted.len() {
        while sorted.get(high)?.saturating_sub(*sorted.get(low)?) > width {
            low += 1;
        }
        if best.is_none_or(|(from, to)| high - low > to - from) {
            best = Some((low, high));
        }
    }
    let (from, to) = best?;
    Some((*sorted.get(usize::midpoint(from, to))?, to - from + 1))
}

pub(crate) fn listed(candidates: &[Candidate]) -> Vec<TimeField> {
    candidates.iter().map(|c| TimeField { name: c.path.clone(), role: c.role, note: c.note.clone() }).collect()
}
