//! The tables of `index.db`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use casebook_protocol::event::EVENT_VERSION;
use casebook_protocol::{InvestigationId, Severity, Timestamp, Verdict};
use casebook_runtime::store::{Appended, Feed};
use rusqlite::{Connection, OptionalExtension, params};

use crate::row::{Folded, Rest, Row};
use crate::short::{self, Shorts};

/// Raise this if the tables or the fold change: the index is then made again.
const TABLES: i64 = 9;
/// A newer program reads events that an older one could not.
const BUILD: i64 = TABLES * 1000 + EVENT_VERSION as i64;

/// `n` is the order in which investigations first appear in the feed. `progress` has one row: the position in the feed,
/// and the position and hash of the last append before it, by which another store is recognised. Bodies have a table of
/// their own, so that a look at every row reads little. `newest` has all that [`crate::brief`] reads.
const CREATE: &str = "
CREATE TABLE progress (position INTEGER NOT NULL, at INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO progress VALUES (0, 0, '');
CREATE TABLE investigations (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, open INTEGER NOT NULL, closed INTEGER NOT NULL, idle INTEGER NOT NULL, trouble INTEGER NOT NULL, severity INTEGER NOT NULL, verdict TEXT, opened INTEGER NOT NULL, last INTEGER NOT NULL, cost INTEGER NOT NULL, evidence TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE bodies (n INTEGER PRIMARY KEY, row TEXT NOT NULL, rest TEXT NOT NULL);
CREATE INDEX newest ON investigations (opened, n, last, severity, verdict, open, closed, idle, trouble);
CREATE INDEX latest ON investigations (last, n);
CREATE INDEX urgent ON investigations (open, severity, opened, n);
CREATE INDEX costly ON investigations (cost, n);
CREATE INDEX by_verdict ON investigations (verdict, opened, n);
CREATE INDEX by_severity ON investigations (severity, opened, n);
CREATE INDEX urgent_verdict ON investigations (verdict, open, severity, opened, n);
CREATE INDEX urgent_severity ON investigations (severity, open, opened, n);
CREATE INDEX broken ON investigations (n) WHERE trouble;
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='trigram');
";
const DROP: &str = "DROP TABLE IF EXISTS progress; DROP TABLE IF EXISTS investigations; DROP TABLE IF EXISTS bodies; DROP TABLE IF EXISTS words;";

/// Where the fold is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) position: u64,
    pub(crate) at: u64,
    pub(crate) hash: String,
}

pub(crate) fn prepare(db: &Connection) -> Result<(), rusqlite::Error> {
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    let _: String = db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    // A lost transaction is folded again.
    db.pragma_update(None, "synchronous", "NORMAL")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    Current,
    /// Nothing is there yet.
    None,
    Other,
}

pub(crate) fn tables(db: &Connection) -> Result<Tables, rusqlite::Error> {
    Ok(match db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? {
        BUILD => Tables::Current,
        0 => Tables::None,
        _ => Tables::Other,
    })
}

/// Makes empty tables.
pub(crate) fn reset(db: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = db.transaction()?;
    transaction.execute_batch(DROP)?;
    transaction.execute_batch(short::DROP)?;
    transaction.execute_batch(CREATE)?;
    transaction.execute_batch(short::CREATE)?;
    transaction.pragma_update(None, "user_version", BUILD)?;
    transaction.commit()
}

pub(crate) fn progress(db: &Connection) -> Result<Progress, rusqlite::Error> {
    db.query_row("SELECT position, at, hash FROM progress", [], |row| {
        let number = |n: i64| n.unsigned_abs();
        Ok(Progress { position: number(row.get(0)?), at: number(row.get(1)?), hash: row.get(2)? })
    })
}

/// The hash by which an append is recognised.
pub(crate) fn hash(appended: &Appended) -> String {
    let last = appended.entries.as_ref().ok().and_then(|entries| entries.last());
    last.map_or_else(String::new, |entry| entry.hash.clone())
}

/// Folds the page of the feed after `after` in one transaction. Does nothing if the fold is elsewhere by now.
pub(crate) fn fold(db: &mut Connection, after: u64, feed: &Feed) -> Result<(), rusqlite::Error> {
    let transaction = db.transaction()?;
    if progress(&transaction)?.position != after {
        return Ok(());
    }
    let mut touched: HashMap<&InvestigationId, Folded> = HashMap::new();
    let mut order = Vec::new();
    for appended in &feed.appended {
        let id = &appended.investigation;
        let folded = match touched.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                order.push(id);
                new.insert(load(&transaction, id)?)
            }
        };
        match &appended.entries {
            Ok(entries) => entries.iter().for_each(|entry| folded.apply(entry)),
            Err(error) => folded.broken(error.to_string()),
        }
    }
    let mut shorts = Shorts::default();
    for folded in order.iter().filter_map(|id| touched.get(id)) {
        save(&transaction, folded, &mut shorts)?;
    }
    shorts.save(&transaction)?;
    if let Some(last) = feed.appended.last() {
        let mut update = transaction.prepare_cached("UPDATE progress SET at = ?1, hash = ?2")?;
        update.execute(params![signed(last.position), hash(last)])?;
    }
    transaction.prepare_cached("UPDATE progress SET position = ?1")?.execute(params![signed(feed.position)])?;
    transaction.commit()
}

fn load(db: &Connection, id: &InvestigationId) -> Result<Folded, rusqlite::Error> {
    let mut query = db.prepare_cached("SELECT row, rest FROM investigations JOIN bodies USING (n) WHERE id = ?1")?;
    let found: Option<(String, String)> =
        query.query_row(params![id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match found {
        None => Ok(Folded::new(id)),
        Some((row, rest)) => Ok(Folded { row: parsed(&row)?, rest: parsed(&rest)?, text: None }),
    }
}

fn save(db: &Connection, folded: &Folded, shorts: &mut Shorts) -> Result<(), rusqlite::Error> {
    let Folded { row, rest, text } = folded;
    let text = text.as_ref().map(|text| format!("{text}\n{}", row.investigation).to_lowercase());
    let mut insert = db.prepare_cached(
        "INSERT INTO investigations (id, open, trouble, severity, verdict, evidence, opened, last, cost, text, idle, closed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce(?10, ''), ?11, ?12)
         ON CONFLICT (id) DO UPDATE SET open = ?2, trouble = ?3, severity = ?4, verdict = ?5, evidence = ?6, opened = ?7, last = ?8, cost = ?9, text = coalesce(?10, text), idle = ?11, closed = ?12
         RETURNING n",
    )?;
    let n: i64 = insert.query_row(
        params![
            row.investigation.as_str(),
            row.closed.is_none() && row.trouble.is_none(),
            row.trouble.is_some(),
            row.severity.map_or(0, rank),
            row.verdict.map(Verdict::name),
            row.evidence,
            row.opened.map_or(0, Timestamp::as_microsecond),
            row.last_event.map_or(0, Timestamp::as_microsecond),
            signed(row.usage.cost_micros),
            text,
            row.not_investigated.is_some(),
            row.closed.is_some(),
        ],
        |found| found.get(0),
    )?;
    let mut insert = db.prepare_cached("INSERT OR REPLACE INTO bodies (n, row, rest) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![n, written(row)?, written(rest)?])?;
    if let Some(text) = text {
        db.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?.execute(params![n, text])?;
        shorts.add(db, n, &text)?;
    }
    Ok(())
}

/// From 1, so that 0 is for none.
pub(crate) fn rank(severity: Severity) -> i64 {
    Severity::ALL.into_iter().zip(1..).find(|(one, _)| *one == severity).map_or(0, |(_, rank)| rank)
}

/// What has this rank.
pub(crate) fn severity(rank: i64) -> Option<Severity> {
    Severity::ALL.into_iter().zip(1..).find(|(_, one)| *one == rank).map(|(severity, _)| severity)
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn row(text: &str) -> Result<Row, rusqlite::Error> {
    parsed(text)
}

pub(crate) fn rest(text: &str) -> Result<Rest, rusqlite::Error> {
    parsed(text)
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, rusqlite::Error> {
    let wrong = |error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error));
    serde_json::from_str(text).map_err(wrong)
}

fn written<T: serde::Serialize>(value: &T) -> Result<String, rusqlite::Error> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
