//! All appends of all investigations in the order of their commit, and the wait for more.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::InvestigationId;
use casebook_runtime::store::{Appended, Feed, News, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use super::tables;

/// A page ends after so many rows or packed bytes, so that no read transaction lasts long.
const ROWS: u32 = 512;
const BYTES: usize = 1024 * 1024;
/// How often to look for the commits of other connections. A look takes 2 µs.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Page {
    rows: Vec<Row>,
    /// The last entry before the page, for each investigation that has one.
    before: HashMap<i64, Entry>,
}

struct Row {
    position: i64,
    number: i64,
    investigation: String,
    entry: Entry,
}

struct Entry {
    seq: i64,
    form: i64,
    bytes: Vec<u8>,
}

pub(super) fn page(db: &Connection, after: u64) -> Result<Page, rusqlite::Error> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut query = db.prepare_cached(
        "SELECT pos, n, id, seq, form, entry FROM events JOIN investigations ON n = investigation WHERE pos > ?1 ORDER BY pos LIMIT ?2",
    )?;
    let mut found = query.query(params![after, ROWS])?;
    let (mut rows, mut size) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let entry = Entry { seq: row.get(3)?, form: row.get(4)?, bytes: row.get(5)? };
        size += entry.bytes.len();
        rows.push(Row { position: row.get(0)?, number: row.get(1)?, investigation: row.get(2)?, entry });
        if size > BYTES {
            break;
        }
    }
    let mut before = HashMap::new();
    let mut earlier = db.prepare_cached(
        "SELECT seq, form, entry FROM events WHERE investigation = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1",
    )?;
    let mut seen = std::collections::HashSet::new();
    for row in rows.iter().filter(|row| seen.insert(row.number)) {
        let entry = earlier.query_row(params![row.number, row.entry.seq], |row| {
            Ok(Entry { seq: row.get(0)?, form: row.get(1)?, bytes: row.get(2)? })
        });
        before.extend(entry.optional()?.map(|entry| (row.number, entry)));
    }
    Ok(Page { rows, before })
}

pub(super) fn unpacked(after: u64, page: Page) -> Feed {
    let Page { rows, mut before } = page;
    let mut feed = Feed { appended: Vec::new(), position: after };
    // The hash that the next entry of each investigation follows.
    let mut hashes: HashMap<i64, Option<String>> = HashMap::new();
    for Row { position, number, investigation, entry } in rows {
        feed.position = position.unsigned_abs();
        let Ok(investigation) = InvestigationId::new(investigation) else { continue };
        let read = |Entry { seq, form, bytes }: Entry, prev: Option<&str>| {
            tables::read(&investigation, seq.unsigned_abs(), prev, form, bytes)
        };
        let prev = hashes.entry(number).or_insert_with(|| {
            let last = before.remove(&number).and_then(|entry| read(entry, None).ok());
            last.and_then(|entries| entries.last().map(|entry| entry.hash.clone()))
        });
        let entries = read(entry, prev.as_deref());
        *prev = entries.as_ref().ok().and_then(|entries| entries.last()).map(|last| last.hash.clone());
        feed.appended.push(Appended { position: feed.position, investigation, entries });
    }
    feed
}

/// Looks at SQLite's counter of the commits of other connections.
pub(super) struct Watching {
    connection: Connection,
    seen: i64,
}

impl Watching {
    pub(super) fn new(connection: Connection) -> Result<Self, rusqlite::Error> {
        let seen = data_version(&connection)?;
        Ok(Self { connection, seen })
    }
}

fn data_version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[async_trait]
impl News for Watching {
    async fn wait(&mut self) -> Result<(), StoreError> {
        loop {
            let now = data_version(&self.connection).map_err(|error| StoreError::Unavailable {
                doing: "listen for news".into(),
                reason: error.to_string(),
            })?;
            if now != self.seen {
                self.seen = now;
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
