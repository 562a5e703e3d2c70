//! What counts over the newest investigations need of each, read from one index of the table.

use casebook_protocol::{Severity, Timestamp, Verdict};
use rusqlite::{Connection, Row};

use crate::database;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brief {
    pub opened: Option<Timestamp>,
    /// When the last event was recorded.
    pub last: Option<Timestamp>,
    pub severity: Option<Severity>,
    /// The verdict of a closed one, after the rules.
    pub verdict: Option<Verdict>,
    pub closed: bool,
    /// No Expert could examine anything; it pauses.
    pub idle: bool,
    /// The log cannot be relied on.
    pub trouble: bool,
}

impl Brief {
    fn of(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        // 0 is for none.
        let time = |at: i64| Timestamp::from_microsecond(at).ok().filter(|_| at != 0);
        let name = row.get_ref(3)?.as_str_or_null()?;
        let closed = row.get(4)?;
        let verdict = Verdict::ALL.into_iter().find(|one| closed && name == Some(one.name()));
        Ok(Self {
            opened: time(row.get(0)?),
            last: time(row.get(1)?),
            severity: database::severity(row.get(2)?),
            verdict,
            closed,
            idle: row.get(5)?,
            trouble: row.get(6)?,
        })
    }
}

/// So many, the newest first.
pub(crate) fn newest(db: &Connection, limit: u32) -> Result<Vec<Brief>, rusqlite::Error> {
    let text = "SELECT opened, last, severity, verdict, closed, idle, trouble FROM investigations ORDER BY opened DESC, n DESC LIMIT ?1";
    db.prepare_cached(text)?.query_map([limit], Brief::of)?.collect()
}

/// How many there are: rows are numbered from 1, and none is removed.
pub(crate) fn all(db: &Connection) -> Result<u64, rusqlite::Error> {
    let text = "SELECT coalesce(max(n), 0) FROM investigations";
    db.prepare_cached(text)?.query_row([], |row| row.get(0)).map(i64::unsigned_abs)
}
