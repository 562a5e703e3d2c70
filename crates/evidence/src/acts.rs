//! Lists the acts that a dismissal must account for (rule "verdict"): the alerted occurrence, what the alerted process
//! and the processes below it did, records of the kind that the alert claims, and writes to the scripts and programs
//! that explain the activity.
//!
//! The list errs on the side of more: a record that nothing places elsewhere is an act.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError};

use casebook_protocol::{Act, ActKind, ActPart, Acts, Alert, MAX_ACTS, RecordRef};

use crate::facet::Class;
use crate::query::{Filter, Window, scan};
use crate::readings::Terms;
use crate::{Catalog, ReadError, pointed};

mod alerted;
mod claim;
mod keys;
mod kind;
mod origin;
pub(crate) mod related;
mod row;

use keys::keys;
use kind::{claimed, kind_of, kind_of_class};
use row::Row;

/// Alerts whose acts are kept.
const ALERTS_MAX: usize = 256;
const SECOND: i64 = 1_000_000_000;
/// A record may be written a little after its process ended.
const SLACK: i64 = SECOND / 2;
/// A process id may be given to another process after this time.
const LIFE_MAX: i64 = 3600 * SECOND;
/// The alert may have an earlier time than the record, by this much.
const LATE: i64 = 60 * SECOND;
/// Records of the claimed kind count in this time before and after the activity.
const AROUND: i64 = 600 * SECOND;
/// Further records of one search are not read. The list then says that it is not complete.
const ROWS_MAX: usize = 50_000;
/// Processes on the way up, and levels below.
const DEPTH_MAX: usize = 64;
/// Keys of the list, and the length of one.
const KEYS_MAX: usize = 200;
const KEY_MAX: usize = 300;

/// From the start of a process to its end, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Life {
    start: i64,
    end: i64,
}

impl Life {
    const fn has(self, at: i64) -> bool {
        at >= self.start.saturating_sub(SLACK) && at <= self.end.saturating_add(SLACK)
    }
}

struct Lister<'a> {
    catalog: &'a Catalog,
    sources: Vec<usize>,
    /// A search found more records than it may read.
    cut: bool,
    acts: BTreeMap<(String, u64, String), Act>,
}

impl Catalog {
    /// The acts of an alert. It reads all sources, including those that an Expert may not see.
    ///
    /// Errors: A file has changed or cannot be read.
    pub fn acts(&self, alert: &Alert) -> Result<Acts, ReadError> {
        let known = {
            let mut all = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= ALERTS_MAX {
                all.clear();
            }
            Arc::clone(all.entry(alert.body.clone()).or_default())
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(acts) = &*known {
            return Ok(acts.clone());
        }
        let sources = (0..self.sources().len()).collect();
        let mut lister = Lister { catalog: self, sources, cut: false, acts: BTreeMap::new() };
        Ok(known.insert(lister.list(alert)?).clone())
    }
}

impl Lister<'_> {
    fn list(&mut self, alert: &Alert) -> Result<Acts, ReadError> {
        let told = alerted::Told::of(alert);
        let first = self.alerted(&told)?;
        for row in &first {
            self.add(ActPart::Alerted, kind_of_class(row.class()), row);
        }
        let path = self.above(&first)?;
        let below = self.below(&told, &first, &path)?;
        self.on_the_way(&path, &first, &below)?;
        let started: Vec<&Row> = first.iter().chain(&path).chain(&below).filter(|row| row.starts()).collect();
        let begin = first.iter().chain(&path).filter_map(|row| row.at).min();
        let end = first.iter().chain(&below).filter_map(|row| row.at).max();
        let window = begin.zip(end).or_else(|| told.at.map(|at| (at, at)));
        self.origins(&started, window)?;
        let claim = match claimed(alert) {
            Some(kind) => Some(self.claim(kind, &told, &first, window)?),
            None => None,
        };
        let keys = keys(&told, first.iter().chain(&path));
        let mut listed: Vec<Act> = std::mem::take(&mut self.acts).into_values().collect();
        listed.sort_by_key(|act| (act.part, act.time, act.record.clone()));
        let more = listed.len().saturating_sub(MAX_ACTS) + usize::from(self.cut);
        listed.truncate(MAX_ACTS);
        Ok(Acts { listed, more: more as u64, claim, keys, trusted: self.catalog.trusted() })
    }

    fn add(&mut self, part: ActPart, kind: ActKind, row: &Row) {
        let key = row.act();
        let (record, time, what) = (row.record.clone(), row.time(), row.what());
        self.acts.entry(key).or_insert(Act { part, kind, record, time, what });
    }

    /// The records with any of the terms, in order of file and place.
    fn rows(&mut self, terms: &[String], from: Option<i64>, to: Option<i64>) -> Result<Vec<Row>, ReadError> {
        let terms: Vec<&str> = terms.iter().map(String::as_str).filter(|term| !term.is_empty()).collect();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let (sources, window) = (self.sources.clone(), Window { from, to });
        let filter = Filter { sources, terms: Terms::new(&terms, true), window, ..Filter::default() };
        let (mut rows, mut cut) = (Vec::new(), false);
        let whole = scan(self.catalog, &filter, None, &mut |hit| {
            // A process number is also a part of many other numbers.
            if !terms.iter().any(|term| row::may_name(hit.raw, term)) {
                return;
            }
            cut |= rows.len() >= ROWS_MAX;
            if !cut {
                rows.extend(Row::of(self.catalog, hit));
            }
        })?;
        self.cut |= cut || !whole.whole();
        Ok(rows)
    }

    fn alerted(&mut self, told: &alerted::Told) -> Result<Vec<Row>, ReadError> {
        let known: Vec<&str> = self.catalog.sources().iter().map(|source| source.file.as_str()).collect();
        let mut found = Vec::new();
        for (named, line) in &told.records {
            let Some(file) = pointed(&known, named) else { continue };
            if let Ok(record) = self.catalog.record(file, *line) {
                found.push(Row::read(&record));
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let rows = self.rows(&told.ids, None, None)?;
        let by_id = |row: &&Row| told.ids.iter().any(|id| row.has(id));
        found.extend(rows.iter().filter(by_id).cloned());
        if !found.is_empty() {
            return Ok(found);
        }
        // A process number is unique only for a time.
        let terms: Vec<String> = told.own.iter().flat_map(|key| row::terms_of(key)).collect();
        let near = |row: &Row| match (row.at, told.at) {
            (Some(at), Some(alert)) => at >= alert.saturating_sub(LIFE_MAX) && at <= alert.saturating_add(LATE),
            _ => false,
        };
        let (from, to) = (told.at.map(|at| at.saturating_sub(LIFE_MAX)), told.at.map(|at| at.saturating_add(LATE)));
        let rows = self.rows(&terms, from, to)?;
        let starts = rows.into_iter().filter(|row| row.starts() && near(row) && row.is_any(&told.own));
        Ok(starts
            .max_by_key(|row| (row.at <= told.at.map(|at| at.saturating_add(2 * SECOND)), row.at))
            .into_iter()
            .collect())
    }

    /// The starts of the processes above, closest first.
    fn above(&mut self, first: &[Row]) -> Result<Vec<Row>, ReadError> {
        let mut path: Vec<Row> = Vec::new();
        // The start of the alerted process is on the path if the alert is about something else that it did.
        let mut wanted: Vec<(Vec<String>, Option<i64>)> = first
            .iter()
            .map(|row| (if row.starts() { row.parents.clone() } else { row.own.clone() }, row.at))
            .collect();
        let mut seen: BTreeSet<RecordRef> = first.iter().map(|row| row.record.clone()).collect();
        while let Some((keys, at)) = wanted.pop() {
            if keys.is_empty() || path.len() >= DEPTH_MAX {
                continue;
            }
            let terms: Vec<String> = keys.iter().flat_map(|key| row::terms_of(key)).collect();
            let rows = self.rows(&terms, None, at.map(|at| at.saturating_add(SLACK)))?;
            let last = rows.into_iter().filter(|row| row.starts() && row.is_any(&keys)).max_by_key(|row| row.at);
            if let Some(row) = last.filter(|row| seen.insert(row.record.clone())) {
                wanted.push((row.parents.clone(), row.at));
                path.push(row);
            }
        }
        Ok(path)
    }

    /// Everything that the alerted processes and sessions did from the alert on, and what the processes below did.
    fn below(&mut self, told: &alerted::Told, first: &[Row], path: &[Row]) -> Result<Vec<Row>, ReadError> {
        let mut lives: BTreeMap<String, Life> = BTreeMap::new();
        let mut frontier: VecDeque<String> = VecDeque::new();
        for row in first {
            let at = row.at.or(told.at).unwrap_or(i64::MIN / 2);
            let begun =
                path.iter().filter(|above| !row.starts() && above.is_any(&row.own)).filter_map(|above| above.at);
            let start = begun.min().map_or(at, |begun| begun.min(at));
            for key in &row.own {
                lives.entry(key.clone()).or_insert(Life { start, end: at.saturating_add(LIFE_MAX) });
                frontier.push_back(key.clone());
            }
        }
        let mut taken: BTreeSet<RecordRef> = first.iter().map(|row| row.record.clone()).collect();
        let mut below = Vec::new();
        let mut orphans = false;
        for _ in 0..DEPTH_MAX {
            if frontier.is_empty() {
                if orphans {
                    break;
                }
                orphans = true;
                let rows = self.orphans(first, path, &below)?;
                self.take(rows, &mut lives, &mut frontier, &mut taken, &mut below);
                continue;
            }
            let keys: Vec<String> = frontier.drain(..).collect();
            let from = keys.iter().filter_map(|key| lives.get(key)).map(|life| life.start).min();
            let terms: Vec<String> = keys.iter().flat_map(|key| row::terms_of(key)).collect();
            let rows = self.rows(&terms, from.map(|at| at.saturating_sub(SLACK)), None)?;
            for key in &keys {
                end(key, &rows, &mut lives);
            }
            let during = |row: &Row, of: &[String]| {
                of.iter().any(|key| {
                    keys.contains(key) && row.at.is_none_or(|at| lives.get(key).is_some_and(|life| life.has(at)))
                })
            };
            let rows =
                rows.into_iter().filter(|row| during(row, &row.own) || row.starts() && during(row, &row.parents));
            let rows: Vec<Row> = rows.collect();
            self.take(rows, &mut lives, &mut frontier, &mut taken, &mut below);
            if below.len() > 4 * MAX_ACTS {
                self.cut = true;
                break;
            }
        }
        Ok(below)
    }

    fn take(
        &mut self,
        rows: Vec<Row>,
        lives: &mut BTreeMap<String, Life>,
        frontier: &mut VecDeque<String>,
        taken: &mut BTreeSet<RecordRef>,
        below: &mut Vec<Row>,
    ) {
        for row in rows {
            let Some(kind) = kind_of(&row) else { continue };
            if !taken.insert(row.record.clone()) {
                continue;
            }
            self.add(ActPart::Below, kind, &row);
            if let (true, Some(at)) = (row.starts(), row.at) {
                for key in row.own.iter().filter(|key| !key.starts_with(row::SESSION)) {
                    if !lives.contains_key(key) {
                        lives.insert(key.clone(), Life { start: at, end: at.saturating_add(LIFE_MAX) });
                        frontier.push_back(key.clone());
                    }
                }
            }
            below.push(row);
        }
    }

    /// Processes that the system adopted while the alerted process ran: their first parent may be one of its own. Also
    /// changes in this time whose author no record names.
    fn orphans(&mut self, first: &[Row], path: &[Row], below: &[Row]) -> Result<Vec<Row>, ReadError> {
        let own: Vec<String> = first.iter().flat_map(|row| row.own.iter().cloned()).collect();
        let mut starts = first.iter().chain(path).filter(|row| row.starts());
        let Some(alerted) = starts.find(|row| row.is_any(&own)) else { return Ok(Vec::new()) };
        let (Some(host), Some(start)) = (alerted.host(), alerted.at) else { return Ok(Vec::new()) };
        let end = below.iter().filter_map(|row| row.at).max().unwrap_or(start).saturating_add(5 * SECOND);
        let adopted = [format!("{}#1", host.to_ascii_lowercase())];
        let rows = self.rows(&[host.to_owned()], Some(start), Some(end))?;
        let begun = |row: &Row| {
            row.starts() && row.parents.iter().any(|key| adopted.contains(key)) && row.may_share_login(alerted)
        };
        let changed = |row: &Row| row.own.is_empty() && kind_of(row).is_some_and(changes);
        Ok(rows.into_iter().filter(|row| begun(row) || changed(row)).collect())
    }

    /// What the scripts on the way to the alerted process did themselves.
    fn on_the_way(&mut self, path: &[Row], first: &[Row], below: &[Row]) -> Result<(), ReadError> {
        let scripted: Vec<&Row> = path.iter().filter(|row| row.script().is_some()).collect();
        let keys: Vec<String> = scripted.iter().flat_map(|row| row.own.iter().cloned()).collect();
        let terms: Vec<String> = keys.iter().flat_map(|key| row::terms_of(key)).collect();
        let from = scripted.iter().filter_map(|row| row.at).min();
        let to = first.iter().chain(below).filter_map(|row| row.at).max().map(|at| at.saturating_add(AROUND));
        for row in self.rows(&terms, from, to)?.iter().filter(|row| !row.starts() && row.is_any(&keys)) {
            if let Some(kind) = kind_of(row).filter(|kind| changes(*kind) || *kind == ActKind::Connection) {
                self.add(ActPart::Below, kind, row);
            }
        }
        Ok(())
    }
}

const fn changes(kind: ActKind) -> bool {
    matches!(
        kind,
        ActKind::ModuleLoad
            | ActKind::FileWrite
            | ActKind::AccountChange
            | ActKind::ServiceChange
            | ActKind::ProcessAccess
    )
}

/// The process ends with its last record, or when its number goes to another process.
fn end(key: &str, rows: &[Row], lives: &mut BTreeMap<String, Life>) {
    let Some(life) = lives.get_mut(key) else { return };
    let own = || rows.iter().filter(|row| row.own.iter().any(|own| own == key));
    let parents: BTreeSet<&String> =
        own().filter(|row| row.starts() && row.at == Some(life.start)).flat_map(|row| &row.parents).collect();
    let ends = own().filter(|row| row.class() == Class::ProcessEnd).filter_map(|row| row.at);
    let again = own()
        .filter(|row| row.starts() && !parents.is_empty() && !row.parents.iter().any(|key| parents.contains(key)))
        .filter_map(|row| row.at)
        .filter(|at| *at > life.start.saturating_add(SECOND));
    if let Some(end) = ends.chain(again).filter(|at| *at >= life.start).min() {
        life.end = end;
    }
}

#[cfg(test)]
mod tests;
