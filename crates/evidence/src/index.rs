//! The index: one SQLite file with place and time of each record, block by block.
//!
//! It can always be built again. It is therefore written without a journal, under another name, and renamed when
//! complete.

use std::path::{Path, PathBuf};

use casebook_protocol::{Precision, TimeBasis, Timestamp};
use rusqlite::{Connection, OpenFlags, params};
use serde::{Deserialize, Serialize};

use super::LoadError;
use super::fields::Shape;
use super::hint::{Hint, pointed};
use super::private;
use super::source::{Skipped, Source};
use super::time::clock::{Offset, zone};
use super::time::year;

pub(crate) mod blocks;
pub(crate) mod hits;
mod packed;

/// Raise it when the stored data or the way to find it changes.
pub(crate) const VERSION: u32 = 17;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) source: Source,
    pub(crate) shape: Shape,
    /// The fields that times come from. `Entry::field` is an index into this list.
    pub(crate) names: Vec<String>,
    /// None if the text is the evidence file itself.
    pub(crate) cache: Option<String>,
    /// The evidence file that the text is in.
    pub(crate) outer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) file: String,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    /// Empty if the file was skipped without reading it.
    pub(crate) sha256: String,
    pub(crate) inode: (u64, u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) version: u32,
    pub(crate) manifest: Vec<Manifest>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) sources: Vec<Stored>,
    pub(crate) guessed: Guess,
    /// The hash of the evaluated set of rules; empty if there was none.
    pub(crate) rules: String,
    /// What the configuration said about reading; see `Declared::reading`.
    pub(crate) reading: String,
    /// When the files were read.
    pub(crate) read: Timestamp,
}

/// Choices that the evidence does not determine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Guess {
    /// Some times have no year.
    pub(crate) years: bool,
    /// The time that years were chosen by, in nanoseconds. Without it, file modification times were used.
    pub(crate) near: Option<i64>,
    /// Files whose zone nothing in the evidence determines.
    pub(crate) zoneless: Vec<String>,
    /// Of these, the files that state a zone at their start.
    pub(crate) stated: Vec<String>,
    /// What alerts said about such files. Each is used once and kept.
    pub(crate) told: Vec<Looked>,
}

/// A record that an alert pointed to, its time in the alert, and the zone that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Looked {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) at: i64,
    /// The alert gave a zone.
    pub(crate) zoned: bool,
    pub(crate) zone: Option<Offset>,
}

impl Guess {
    /// Whether an index built with `hint` would have the same times. `time` gives the time of a record in this
    /// index.
    pub(crate) fn holds(&self, hint: Option<&Hint>, files: &[&str], time: impl Fn(&str, u64) -> Option<i64>) -> bool {
        let pointed_at = hint.and_then(|hint| hint.record.as_ref()).and_then(|record| {
            let file = pointed(files, &record.file).filter(|file| self.zoneless.iter().any(|z| z == file))?;
            Some((file, record.line, record.ns()?))
        });
        // A record that was already used changes nothing, nor does a difference that is not a zone offset.
        let new = pointed_at.is_some_and(|(file, line, at)| {
            !self.told.iter().any(|l| (l.file.as_str(), l.line, l.at) == (file, line, at))
                && time(file, line).is_some_and(|local| {
                    // The stated zone may be wrong and have to be removed.
                    zone(at, local).is_some() || self.stated.iter().any(|s| s == file) && zone(local, at).is_some()
                })
        });
        self.same_years(hint) && !new
    }

    fn same_years(&self, hint: Option<&Hint>) -> bool {
        let same =
            |hint: &Hint| self.near.is_some_and(|used| hint.ns().is_none_or(|ns| year::of(used) == year::of(ns)));
        !self.years || hint.is_none_or(same)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    /// Index into [`Meta::sources`].
    pub(crate) source: i64,
    pub(crate) line: i64,
    pub(crate) nth: i64,
    pub(crate) offset: i64,
    pub(crate) length: i64,
    /// Nanoseconds since 1970.
    pub(crate) time: Option<i64>,
    pub(crate) basis: TimeBasis,
    pub(crate) precision: Precision,
    pub(crate) field: Option<i64>,
    pub(crate) ingested: Option<i64>,
    pub(crate) malformed: bool,
    pub(crate) oversize: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    pub(crate) entries: Vec<Entry>,
    pub(crate) filter: Vec<u8>,
}

const SCHEMA: &str = "
    CREATE TABLE meta(value TEXT NOT NULL);
    CREATE TABLE block(id INTEGER PRIMARY KEY, last INTEGER NOT NULL, source INTEGER NOT NULL, first_line INTEGER NOT NULL,
        last_line INTEGER NOT NULL, timed INTEGER NOT NULL, early INTEGER, late INTEGER, start INTEGER NOT NULL,
        length INTEGER NOT NULL, apart INTEGER NOT NULL, records BLOB NOT NULL, filter BLOB NOT NULL);
    CREATE TABLE rule(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE rule_total(rule INTEGER NOT NULL, source INTEGER NOT NULL, hits INTEGER NOT NULL, first INTEGER, last INTEGER);
    CREATE TABLE rule_hit(rule INTEGER NOT NULL, source INTEGER NOT NULL, record INTEGER NOT NULL, time INTEGER, grp TEXT);
    CREATE TEMP TABLE carried(rule INTEGER NOT NULL, source INTEGER NOT NULL, record INTEGER NOT NULL, time INTEGER NOT NULL,
        held BLOB NOT NULL);
    CREATE INDEX block_place ON block(source, first_line);
";

#[derive(Debug)]
pub(crate) struct Writer {
    db: Connection,
    building: PathBuf,
    path: PathBuf,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Self, LoadError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".building");
        let building = PathBuf::from(name);
        if let Err(source) = std::fs::remove_file(&building)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            return Err(LoadError::Write { path: building, source });
        }
        // SQLite would let others read a file that it creates.
        private::file(&building).map_err(|source| LoadError::Write { path: building.clone(), source })?;
        let open = || -> rusqlite::Result<Connection> {
            let db = Connection::open(&building)?;
            db.execute_batch("PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-32768;")?;
            db.execute_batch(SCHEMA)?;
            db.execute_batch("BEGIN")?;
            Ok(db)
        };
        match open() {
            Ok(db) => Ok(Self { db, building, path: path.to_path_buf() }),
            Err(source) => Err(LoadError::Index { path: building, source }),
        }
    }

    pub(crate) fn add(&self, block: &Block) -> Result<(), LoadError> {
        self.try_add(block).map_err(|source| LoadError::Index { path: self.building.clone(), source })
    }

    fn try_add(&self, block: &Block) -> rusqlite::Result<()> {
        let (Some(first), Some(last)) = (block.entries.first(), block.entries.last()) else { return Ok(()) };
        let early = block.entries.iter().filter_map(|e| e.time).min();
        let late = block.entries.iter().filter_map(|e| e.time).max();
        let timed = block.entries.iter().filter(|e| e.time.is_some()).count();
        self.db.prepare_cached("INSERT INTO block VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)")?.execute(params![
            first.id,
            last.id,
            first.source,
            first.line,
            last.line,
            i64::try_from(timed).unwrap_or(i64::MAX),
            early,
            late,
            first.offset,
            last.offset + last.length - first.offset,
            block.entries.iter().any(|e| e.oversize),
            packed::pack(&block.entries),
            block.filter
        ])?;
        Ok(())
    }

    /// Completes the index and renames it.
    pub(crate) fn finish(self, meta: &Meta) -> Result<(), LoadError> {
        let json = serde_json::to_string(meta).unwrap_or_default();
        let done = || -> rusqlite::Result<()> {
            self.db.execute("INSERT INTO meta VALUES(?)", [json])?;
            self.db.execute_batch("COMMIT; ANALYZE;")
        };
        done().map_err(|source| LoadError::Index { path: self.building.clone(), source })?;
        drop(self.db);
        std::fs::rename(&self.building, &self.path)
            .map_err(|source| LoadError::Write { path: self.path.clone(), source })
    }
}

pub(crate) fn cache_folder(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(".cache");
    PathBuf::from(name)
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ns = i128::try_from(since.as_nanos()).unwrap_or(0);
    Timestamp::from_nanosecond(ns).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.execute_batch("PRAGMA query_only=ON; PRAGMA cache_size=-8192;")?;
    Ok(db)
}

/// None if it has another version or is not an index.
pub(crate) fn meta(path: &Path) -> Option<Meta> {
    let db = open(path).ok()?;
    let json: String = db.query_row("SELECT value FROM meta", [], |row| row.get(0)).ok()?;
    serde_json::from_str::<Meta>(&json).ok().filter(|meta| meta.version == VERSION)
}
