//! Reads blocks of records from the index.

use rusqlite::{Connection, OptionalExtension, Row};

use super::{Entry, packed};

/// The columns of a [`Block`].
pub(crate) const BLOCK: &str = "id, source, start, length, apart, records";

/// The records of one source that were read together.
#[derive(Debug)]
pub(crate) struct Block<'r> {
    /// The number of the first record.
    id: i64,
    source: i64,
    /// Where the bytes of the records are in the text.
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// A record is too large for reading the bytes at once.
    pub(crate) apart: bool,
    records: &'r [u8],
}

impl<'r> Block<'r> {
    /// `row` has the columns of [`BLOCK`] first.
    pub(crate) fn of(row: &'r Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            source: row.get(1)?,
            start: unsigned(row, 2)?,
            length: unsigned(row, 3)?,
            apart: row.get(4)?,
            records: row.get_ref(5)?.as_blob()?,
        })
    }

    pub(crate) fn entries(&self) -> rusqlite::Result<Vec<Entry>> {
        let damaged =
            || rusqlite::Error::UserFunctionError("a block is damaged; remove the index and load again".into());
        packed::unpack(self.records, self.source, self.id).ok_or_else(damaged)
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

/// What is known of a block without its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// The number of the first record.
    pub(crate) id: i64,
    /// The number of the last record.
    pub(crate) last: i64,
    /// Records with a time, and the first and the last of these times.
    pub(crate) timed: u64,
    pub(crate) times: Option<(i64, i64)>,
}

impl Extent {
    /// `row` has number, last number, records with a time, and first and last time.
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let times = row.get::<_, Option<i64>>(3)?.zip(row.get(4)?);
        Ok(Self { id: row.get(0)?, last: row.get(1)?, timed: unsigned(row, 2)?, times })
    }

    pub(crate) fn records(&self) -> u64 {
        u64::try_from(self.last - self.id + 1).unwrap_or(0)
    }
}

/// The blocks of `source` in the order of the text. `window` is a further condition, such as ` AND late >= 7`.
pub(crate) fn extents(db: &Connection, source: i64, window: &str) -> rusqlite::Result<Vec<Extent>> {
    let sql = format!("SELECT id, last, timed, early, late FROM block WHERE source=?1{window} ORDER BY id");
    let mut query = db.prepare_cached(&sql)?;
    query.query_map([source], Extent::of)?.collect()
}

/// The block that may have the record with this number.
pub(crate) fn extent_around(db: &Connection, number: i64) -> rusqlite::Result<Option<(i64, Extent)>> {
    let sql = "SELECT id, last, timed, early, late, source FROM block WHERE id<=?1 ORDER BY id DESC LIMIT 1";
    db.prepare_cached(sql)?.query_row([number], |row| Ok((row.get(5)?, Extent::of(row)?))).optional()
}

/// The records of the block with this number.
pub(crate) fn entries(db: &Connection, id: i64) -> rusqlite::Result<Vec<Entry>> {
    let sql = format!("SELECT {BLOCK} FROM block WHERE id=?1");
    db.prepare_cached(&sql)?.query_row([id], |row| Block::of(row)?.entries())
}

/// The records of the block in which the record with this number is, if there is one.
pub(crate) fn around(db: &Connection, number: i64) -> rusqlite::Result<Vec<Entry>> {
    let sql = format!("SELECT {BLOCK} FROM block WHERE id<=?1 ORDER BY id DESC LIMIT 1");
    let block = db.prepare_cached(&sql)?.query_row([number], |row| Block::of(row)?.entries()).optional()?;
    Ok(block.unwrap_or_default())
}

/// The record with this number.
pub(crate) fn entry(db: &Connection, number: i64) -> rusqlite::Result<Option<Entry>> {
    Ok(around(db, number)?.into_iter().find(|entry| entry.id == number))
}

/// The record that starts on `line`, `nth` of those that do.
pub(crate) fn at_line(db: &Connection, source: i64, line: i64, nth: i64) -> rusqlite::Result<Option<Entry>> {
    let sql = format!(
        "SELECT {BLOCK} FROM block WHERE source=?1 AND first_line<=?2 AND last_line>=?2 ORDER BY first_line, id"
    );
    let mut query = db.prepare_cached(&sql)?;
    let mut rows = query.query([source, line])?;
    while let Some(row) = rows.next()? {
        let entries = Block::of(row)?.entries()?;
        if let Some(entry) = entries.into_iter().find(|entry| (entry.line, entry.nth) == (line, nth)) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// The first time of a record of `source` that is later than `after`.
pub(crate) fn first_after(db: &Connection, source: i64, after: i64) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT min(early) FROM block WHERE source=?1 AND early>?2";
    let mut first: Option<i64> = db.prepare_cached(sql)?.query_row([source, after], |row| row.get(0))?;
    let sql = format!("SELECT {BLOCK} FROM block WHERE source=?1 AND early<=?2 AND late>?2");
    let mut query = db.prepare_cached(&sql)?;
    let mut rows = query.query([source, after])?;
    while let Some(row) = rows.next()? {
        let entries = Block::of(row)?.entries()?;
        first = entries.iter().filter_map(|entry| entry.time).filter(|time| *time > after).chain(first).min();
    }
    Ok(first)
}
