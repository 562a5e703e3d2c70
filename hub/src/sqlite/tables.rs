//! The tables, and the encoding of events in rows.

use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::store::{StoreError, Versioned, read_events};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::packed::{self, Packed};

pub(super) const VERSION: i64 = 2;

/// Rows refer to an investigation by number, which is shorter than its id. `form` is described in [`packed`].
/// Rows are stored in order of arrival and found by an index: ordered by key, each would be on another page.
const CREATE: &str = "
CREATE TABLE investigations (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE results (investigation INTEGER NOT NULL, key TEXT NOT NULL, form INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (investigation, key));
CREATE TABLE artifacts (id BLOB NOT NULL PRIMARY KEY, form INTEGER NOT NULL, bytes BLOB NOT NULL);
";

/// One writer appends and nothing is deleted, so `pos` is the order of the commits, without gaps.
const EVENTS: &str = "
CREATE TABLE events (pos INTEGER PRIMARY KEY, investigation INTEGER NOT NULL, seq INTEGER NOT NULL, form INTEGER NOT NULL, entry BLOB NOT NULL, UNIQUE (investigation, seq));
";

/// `VACUUM` does not keep the row id that version 1 relied on.
const FROM_1: &str = "
INSERT INTO events (investigation, seq, form, entry) SELECT investigation, seq, form, entry FROM events_1 ORDER BY rowid;
DROP TABLE events_1;
";

pub(super) fn version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Creates the tables, or converts those of version `found`, in one transaction.
pub(super) fn upgrade(connection: &mut Connection, found: i64) -> Result<(), rusqlite::Error> {
    if found == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    if found == 0 {
        transaction.execute_batch(CREATE)?;
        transaction.execute_batch(EVENTS)?;
    } else {
        transaction.execute_batch("ALTER TABLE events RENAME TO events_1")?;
        transaction.execute_batch(EVENTS)?;
        transaction.execute_batch(FROM_1)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// The fields of an entry that do not follow from its place in the log.
#[derive(Serialize)]
struct Brief<'a> {
    v: u16,
    at: Timestamp,
    hash: &'a str,
    event: &'a Event,
}

#[derive(Deserialize)]
struct Read {
    v: u16,
    at: Timestamp,
    hash: String,
    event: Event,
}

impl Versioned for Read {
    fn version(&self) -> u16 {
        self.v
    }
}

/// Encodes entries that are appended together as one row, keyed by the number of the last.
pub(super) fn write(entries: &[Recorded]) -> Result<Packed, serde_json::Error> {
    let brief: Vec<Brief<'_>> =
        entries.iter().map(|e| Brief { v: e.v, at: e.at, hash: &e.hash, event: &e.event }).collect();
    Ok(packed::pack(&serde_json::to_vec(&brief)?))
}

/// Decodes the row whose last entry has the number `last`; `prev` is the hash before its first.
pub(super) fn read(
    investigation: &InvestigationId,
    last: u64,
    prev: Option<&str>,
    form: i64,
    bytes: Vec<u8>,
) -> Result<Vec<Recorded>, StoreError> {
    let what = || format!("event {last} of {investigation}");
    let bytes = packed::unpack(form, bytes).map_err(|reason| StoreError::Corrupt { what: what(), reason })?;
    let brief: Vec<Read> = read_events(what, &bytes)?;
    let mut prev = prev.map_or_else(|| Recorded::genesis(investigation), str::to_owned);
    let first = (last + 1).saturating_sub(brief.len() as u64);
    let entries = brief.into_iter().zip(first..).map(|(Read { v, at, hash, event }, seq)| {
        let prev = std::mem::replace(&mut prev, hash.clone());
        Recorded { v, investigation: investigation.clone(), seq, at, prev, hash, event }
    });
    Ok(entries.collect())
}
