//! The table `records` of the SQL tool: the visible records, read block by block.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::Value;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use super::find::stamp;
use crate::catalog::{Catalog, kept};
use crate::index::Entry;
use crate::index::blocks::{self, entries, extents};
use crate::query::{Order, Ordered, Window};
use crate::{ReadError, Record};

const DECLARED: &CStr = c"CREATE TABLE x(id INTEGER, source TEXT, file TEXT, line INTEGER, nth INTEGER, time TEXT,
    time_ns INTEGER, time_basis TEXT, raw TEXT)";
const ID: c_int = 0;
const SOURCE: c_int = 1;
const TIME: c_int = 6;

/// Orders in which SQLite does not have to sort.
const BY_TIME: c_int = 1;
const BY_TIME_DESC: c_int = 2;

/// The records of the visible sources.
#[derive(Debug, Clone)]
pub(super) struct Records {
    catalog: Arc<Catalog>,
    visible: Arc<[usize]>,
    /// The block that a record was last looked for in.
    block: Arc<Mutex<Vec<Entry>>>,
}

/// Adds the table `records`.
pub(super) fn add(db: &Connection, records: &Records) -> Result<()> {
    const MODULE: Module<'static, Table> = Module::eponymous_only_module();
    db.create_module(c"records", &MODULE, Some(records.clone()))
}

fn failed(error: &ReadError) -> Error {
    Error::ModuleError(error.to_string())
}

impl Records {
    pub(super) fn new(catalog: &Arc<Catalog>, visible: &Arc<[usize]>) -> Self {
        Self { catalog: Arc::clone(catalog), visible: Arc::clone(visible), block: Arc::default() }
    }

    /// None if no visible record has this id.
    pub(super) fn record(&self, id: i64) -> Result<Option<Record>> {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |block: &[Entry]| block.iter().find(|entry| entry.id == id).copied();
        let mut entry = found(&block);
        if entry.is_none() {
            *block = self.catalog.with_index(|db| Ok(blocks::around(db, id)?)).map_err(|e| failed(&e))?;
            entry = found(&block);
        }
        drop(block);
        let seen = |source: i64| usize::try_from(source).is_ok_and(|s| self.visible.contains(&s));
        entry.filter(|entry| seen(entry.source)).map(|entry| self.read(&entry)).transpose()
    }

    fn read(&self, entry: &Entry) -> Result<Record> {
        let bytes = self.catalog.bytes(entry, 0, kept(entry)).map_err(|e| failed(&e))?;
        Ok(self.catalog.record_of(entry, bytes))
    }

    fn ordered(&self, order: Order, wanted: &Wanted) -> Result<Ordered> {
        let mut all = Vec::new();
        // A query may ask for one record after another.
        if let Some(id) = wanted.first.filter(|_| wanted.first == wanted.last) {
            let found = self.catalog.with_index(|db| Ok(blocks::extent_around(db, id)?)).map_err(|e| failed(&e))?;
            let sees = |source: i64| usize::try_from(source).is_ok_and(|place| self.visible.contains(&place));
            all.extend(found.filter(|(source, _)| sees(*source)).map(|(_, extent)| extent));
            return Ok(Ordered::new(order, wanted.window, &all, usize::MAX));
        }
        for place in self.visible.iter() {
            let named = self.catalog.sources().get(*place).is_some_and(|source| wanted.has_source(&source.id));
            if named {
                let number = i64::try_from(*place).unwrap_or(i64::MAX);
                let of = wanted.window.of_blocks() + &wanted.of_blocks();
                all.extend(self.catalog.with_index(|db| Ok(extents(db, number, &of)?)).map_err(|e| failed(&e))?);
            }
        }
        Ok(Ordered::new(order, wanted.window, &all, usize::MAX))
    }
}

/// What a query compares with constants. SQLite compares again.
#[derive(Debug, Default)]
struct Wanted {
    window: Window,
    first: Option<i64>,
    last: Option<i64>,
    source: Option<String>,
}

impl Wanted {
    fn has_source(&self, id: &str) -> bool {
        self.source.as_deref().is_none_or(|source| source == id)
    }

    fn of_blocks(&self) -> String {
        let first = self.first.map_or(String::new(), |first| format!(" AND last >= {first}"));
        let last = self.last.map_or(String::new(), |last| format!(" AND id <= {last}"));
        first + &last
    }

    /// `test` is a code of [`code`].
    fn add(&mut self, test: char, value: Value) {
        let (column, compared) = match test {
            'a'..='c' => (&mut self.window.from, &mut self.window.to),
            _ => (&mut self.first, &mut self.last),
        };
        match (test, value) {
            ('s', Value::Text(text)) => self.source = Some(text),
            ('a' | 'i', Value::Integer(least)) => *column = (*column).max(Some(least)),
            ('b' | 'j', Value::Integer(most)) => *compared = Some(compared.map_or(most, |known| known.min(most))),
            ('c' | 'k', Value::Integer(exact)) => (*column, *compared) = (Some(exact), Some(exact)),
            _ => {}
        }
    }
}

/// A letter for a comparison that saves reading blocks.
fn code(column: c_int, operator: &IndexConstraintOp) -> Option<char> {
    use IndexConstraintOp::{
        SQLITE_INDEX_CONSTRAINT_EQ as EQ, SQLITE_INDEX_CONSTRAINT_GE as GE, SQLITE_INDEX_CONSTRAINT_GT as GT,
        SQLITE_INDEX_CONSTRAINT_LE as LE, SQLITE_INDEX_CONSTRAINT_LT as LT,
    };
    match (column, operator) {
        (TIME, GE | GT) => Some('a'),
        (TIME, LE | LT) => Some('b'),
        (TIME, EQ) => Some('c'),
        (ID, GE | GT) => Some('i'),
        (ID, LE | LT) => Some('j'),
        (ID, EQ) => Some('k'),
        (SOURCE, EQ) => Some('s'),
        _ => None,
    }
}

#[repr(C)]
struct Table {
    base: sqlite3_vtab,
    records: Records,
}

// The trait is unsafe because SQLite reads the first field.
#[allow(unsafe_code, reason = "`Table` is `repr(C)`, and its first field is the base")]
unsafe impl VTab<'_> for Table {
    type Aux = Records;
    type Cursor = Cursor;

    fn connect(
        _: &mut VTabConnection,
        records: Option<&Records>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let records = records.ok_or_else(|| Error::ModuleError("the table has no evidence".to_owned()))?.clone();
        Ok((Cow::Borrowed(DECLARED), Self { base: sqlite3_vtab::default(), records }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let tests: Vec<(usize, char)> = info
            .constraints()
            .enumerate()
            .filter(|(_, one)| one.is_usable())
            .filter_map(|(place, one)| Some((place, code(one.column(), &one.operator())?)))
            .collect();
        let mut codes = String::new();
        for (place, test) in tests {
            // `COLLATE NOCASE` finds other sources, too.
            if test == 's' && info.collation(place)? != "BINARY" {
                continue;
            }
            codes.push(test);
            info.constraint_usage(place).set_argv_index(c_int::try_from(codes.len()).unwrap_or(c_int::MAX));
        }
        let order: Vec<(c_int, bool)> = info.order_bys().map(|by| (by.column(), by.is_order_by_desc())).collect();
        let (number, sorted) = match order.as_slice() {
            [(TIME, false)] | [(TIME, false), (ID, false)] => (BY_TIME, true),
            [(TIME, true)] | [(TIME, true), (ID, true)] => (BY_TIME_DESC, true),
            [(ID, false)] => (0, true),
            _ => (0, false),
        };
        info.set_idx_num(number);
        info.set_order_by_consumed(sorted);
        info.set_estimated_cost(if codes.contains('k') {
            10.0
        } else if codes.contains(['a', 'b', 'c']) {
            1e5
        } else {
            1e7
        });
        info.set_idx_str(&codes);
        Ok(true)
    }

    fn open(&mut self) -> Result<Cursor> {
        let records = self.records.clone();
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), records, ordered: None, entry: None })
    }
}

#[repr(C)]
struct Cursor {
    base: sqlite3_vtab_cursor,
    records: Records,
    ordered: Option<Ordered>,
    entry: Option<Entry>,
}

#[allow(unsafe_code, reason = "`Cursor` is `repr(C)`, and its first field is the base")]
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, number: c_int, codes: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let mut wanted = Wanted::default();
        for (place, test) in codes.unwrap_or_default().chars().enumerate() {
            wanted.add(test, args.get(place)?);
        }
        let order = match number {
            BY_TIME => Order::NullsFirst,
            BY_TIME_DESC => Order::TimeDesc,
            _ => Order::File,
        };
        self.ordered = Some(self.records.ordered(order, &wanted)?);
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        let catalog = &self.records.catalog;
        let mut read = |id| catalog.with_index(|db| Ok(entries(db, id)?));
        self.entry = match &mut self.ordered {
            Some(ordered) => ordered.next(&mut read).map_err(|e| failed(&e))?,
            None => None,
        };
        Ok(())
    }

    fn eof(&self) -> bool {
        self.entry.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let Some(entry) = &self.entry else { return Ok(()) };
        let source = usize::try_from(entry.source).ok().and_then(|place| self.records.catalog.sources().get(place));
        match column {
            ID => context.set_result(entry.id),
            SOURCE => context.set_result(source.map(|source| source.id.as_str())),
            2 => context.set_result(source.map(|source| source.file.as_str())),
            3 => context.set_result(entry.line),
            4 => context.set_result(entry.nth),
            5 => context.set_result(entry.time.map(stamp)),
            TIME => context.set_result(entry.time),
            7 => context.set_result(entry.basis.name()),
            _ => context.set_result(self.records.read(entry)?.text()),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.entry.map_or(0, |entry| entry.id))
    }
}
