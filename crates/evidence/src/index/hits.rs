//! Hits of rules in the index.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use casebook_protocol::Timestamp;
use casebook_protocol::coverage::same_host;
use rusqlite::{Connection, Row, params};

use super::blocks::first_after;
use super::{Stored, Writer};
use crate::LoadError;
use crate::rules::hits::{Hit, Kept};
use crate::rules::pass::{Carried, Correlations};
use crate::rules::pattern::Stopped;
use crate::rules::{Group, Place, Rule, RuleSet};

/// Hits that are added together, and how often that many may wait.
const BATCH: usize = 512;
const BATCHES: usize = 8;

impl Writer {
    fn rules<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, LoadError> {
        write(&self.db).map_err(|source| LoadError::Index { path: self.building.clone(), source })
    }

    /// Keeps hits until [`Writer::correlate`] reads them in the order of time.
    pub(crate) fn carry(&self, hits: &[Carried]) -> Result<(), LoadError> {
        if hits.is_empty() {
            return Ok(());
        }
        self.rules(|db| {
            let mut insert = db.prepare_cached("INSERT INTO carried VALUES(?,?,?,?,?)")?;
            for hit in hits {
                insert.execute(params![number(hit.rule), hit.at.source, hit.at.record, hit.at.time, hit.values])?;
            }
            Ok(())
        })
    }

    /// Writes what the rules found in one source.
    pub(crate) fn hits(&self, source: i64, kept: BTreeMap<usize, Kept>) -> Result<(), LoadError> {
        self.rules(|db| kept.into_iter().try_for_each(|(rule, kept)| write(db, rule, source, kept)))
    }

    /// Evaluates the correlations, and writes the rules with hits. Returns the hash of the rules.
    pub(crate) fn correlate(&self, rules: &RuleSet, sources: &mut [Stored]) -> Result<String, LoadError> {
        const REMARK: &str = "there were too many groups for the correlation rules: some hits may be missing";
        self.rules(|db| {
            if let Some(correlations) = Correlations::of(rules) {
                let correlations = correlated(db, correlations)?;
                let (kept, forgot) = correlations.finish(|at, host| silent(db, sources, at, host))?;
                kept.into_iter().try_for_each(|((rule, source), kept)| write(db, rule, source, kept))?;
                let remarked = sources.first_mut().filter(|_| forgot);
                remarked.into_iter().for_each(|first| first.source.notes.push(REMARK.to_owned()));
            }
            db.execute_batch("DROP TABLE temp.carried")?;
            let mut insert = db.prepare("INSERT INTO rule VALUES(?,?)")?;
            let mut hit = db.prepare("SELECT DISTINCT rule FROM rule_total ORDER BY rule")?;
            for found in hit.query_map([], |row| row.get::<_, i64>(0))? {
                let found = found?;
                let rule = usize::try_from(found).ok().and_then(|found| rules.rule(found));
                insert.execute(params![found, serde_json::to_string(&rule).unwrap_or_default()])?;
            }
            Ok(rules.hash().to_owned())
        })
    }
}

/// Adds all hits in the order of time. Nothing else is left to do, so one thread reads them while another adds them.
fn correlated<'r>(db: &Connection, mut correlations: Correlations<'r>) -> rusqlite::Result<Correlations<'r>> {
    std::thread::scope(|scope| {
        let (give, hits) = sync_channel::<Vec<Carried>>(BATCHES);
        let adding = scope.spawn(move || {
            hits.into_iter().flatten().for_each(|hit| correlations.add(&hit));
            correlations
        });
        let mut all = db.prepare("SELECT rule, source, record, time, held FROM carried ORDER BY time, record")?;
        let (mut rows, mut batch) = (all.query([])?, Vec::new());
        while let Some(row) = rows.next()? {
            batch.push(carried(row)?);
            if batch.len() >= BATCH {
                let _ = give.send(std::mem::take(&mut batch));
            }
        }
        let _ = give.send(batch);
        drop(give);
        adding.join().map_err(|_| rusqlite::Error::UserFunctionError("a thread stopped".into()))
    })
}

/// Whether the log with the record at `at` is silent after it, while other logs go on.
fn silent(db: &Connection, sources: &[Stored], at: Place, host: &str) -> rusqlite::Result<bool> {
    let nanoseconds = |time: Timestamp| i64::try_from(time.as_nanosecond()).ok();
    let place = usize::try_from(at.source).unwrap_or(usize::MAX);
    let Some(own) = sources.get(place).map(|stored| &stored.source) else { return Ok(false) };
    let of_others = sources.iter().enumerate().filter(|(n, _)| *n != place).filter_map(|(_, s)| s.source.last_time);
    let in_log = own.coverage.iter().filter(|one| !host.is_empty() && !same_host(&one.host, host));
    let others = of_others.chain(in_log.filter_map(|one| one.last)).filter_map(nanoseconds).max();
    let stopped = Stopped { at: at.time, host, coverage: &own.coverage, others };
    stopped.silent(|after| first_after(db, at.source, after))
}

fn number(rule: usize) -> i64 {
    i64::try_from(rule).unwrap_or(i64::MAX)
}

fn carried(row: &Row<'_>) -> rusqlite::Result<Carried> {
    let at = Place { source: row.get(1)?, record: row.get(2)?, time: row.get(3)? };
    let rule = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
    Ok(Carried { rule, at, values: row.get(4)? })
}

fn write(db: &Connection, rule: usize, source: i64, kept: Kept) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO rule_total VALUES(?,?,?,?,?)")?.execute(params![
        number(rule),
        source,
        i64::try_from(kept.count).unwrap_or(i64::MAX),
        kept.earliest,
        kept.latest
    ])?;
    let mut insert = db.prepare_cached("INSERT INTO rule_hit VALUES(?,?,?,?,?)")?;
    for Hit { at, timed, group, .. } in kept.hits() {
        let group = group.and_then(|group| serde_json::to_string(&group).ok());
        insert.execute(params![number(rule), source, at.record, timed.then_some(at.time), group])?;
    }
    Ok(())
}

/// A rule with what it found in one source.
#[derive(Debug, Clone)]
pub(crate) struct Total {
    pub(crate) number: i64,
    pub(crate) rule: Rule,
    pub(crate) source: i64,
    pub(crate) hits: u64,
    /// In nanoseconds.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

pub(crate) fn totals(db: &Connection) -> rusqlite::Result<Vec<Total>> {
    let sql = "SELECT t.rule, r.value, t.source, t.hits, t.first, t.last FROM rule_total t JOIN rule r ON r.id=t.rule
        ORDER BY t.rule, t.source";
    let mut all = db.prepare_cached(sql)?;
    let rows = all.query_map([], |row| {
        let rule: Option<Rule> = serde_json::from_str(&row.get::<_, String>(1)?).ok();
        let hits = u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0);
        Ok(rule.map(|rule| (rule, hits, row.get(0), row.get(2), row.get(4), row.get(5))))
    })?;
    let mut found = Vec::new();
    for row in rows {
        if let Some((rule, hits, number, source, first, last)) = row? {
            found.push(Total { number: number?, rule, source: source?, hits, first: first?, last: last? });
        }
    }
    Ok(found)
}

/// A stored hit: number of the record, its time in nanoseconds, and the group of a correlation.
pub(crate) type StoredHit = (i64, Option<i64>, Option<Group>);

pub(crate) fn stored(db: &Connection, rule: i64, source: i64) -> rusqlite::Result<Vec<StoredHit>> {
    let sql = "SELECT record, time, grp FROM rule_hit WHERE rule=? AND source=? ORDER BY rowid";
    let mut all = db.prepare_cached(sql)?;
    let rows = all.query_map([rule, source], |row| {
        let group: Option<String> = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, group.and_then(|text| serde_json::from_str(&text).ok())))
    })?;
    rows.collect()
}
