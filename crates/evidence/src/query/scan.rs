//! Reads the records of a query block by block.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use crate::catalog::{Catalog, Inner, kept, read_part};
use crate::fields::{self, Shape, Wanted};
use crate::index::{self, ENTRY, Entry};
use crate::readings::{Term, Terms, holds, may_hold};
use crate::{ReadError, Source};

use super::condition::{Condition, is_named, is_settled, may_be, may_have};

/// Bytes that one query may read. The answer says if the limit was reached.
const SCAN_MAX: u64 = 8 << 30;

#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Source numbers, ascending.
    pub(crate) sources: Vec<usize>,
    pub(crate) terms: Terms,
    pub(crate) conditions: Vec<Condition>,
    /// Nanoseconds, inclusive. Records without a time are outside every window.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// The first record is enough: whether there is any.
    pub(crate) first: bool,
}

impl Filter {
    pub(crate) const fn by_time_only(&self) -> bool {
        self.terms.is_empty() && self.conditions.is_empty()
    }

    pub(crate) const fn whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// A condition on the columns `early` and `late`; pass `time` for both to test single records.
    pub(crate) fn window(&self, early: &str, late: &str) -> String {
        let from = self.from.map_or(String::new(), |from| format!(" AND {late} >= {from}"));
        let to = self.to.map_or(String::new(), |to| format!(" AND {early} <= {to}"));
        from + &to
    }

    fn may_be_in(&self, filter: &[u8]) -> bool {
        self.terms.may_be_in(filter)
            && self.conditions.iter().filter_map(Condition::implied).all(|t| may_hold(filter, t))
    }
}

pub(crate) struct Hit<'a> {
    pub(crate) entry: &'a Entry,
    /// Filled if `parsed` was requested or a condition needs them.
    pub(crate) fields: &'a [(String, String)],
    pub(crate) shape: &'a Shape,
    /// Filled if the query depends on the content.
    pub(crate) raw: &'a [u8],
    /// The bytes of the block, and where the record is in it.
    pub(crate) block: (&'a [u8], Range<usize>),
}

impl Hit<'_> {
    /// All fields, with what other lines of the event say.
    pub(crate) fn parsed(&self) -> Vec<(String, String)> {
        fields::parse_in(self.shape, self.block.0, self.block.1.clone())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The scan stopped at its limit.
    pub(crate) stopped: bool,
    /// Sources whose files changed or cannot be read, with the reason.
    pub(crate) unread: Vec<(usize, String)>,
}

impl Scanned {
    pub(crate) fn whole(&self) -> bool {
        !self.stopped && self.unread.is_empty()
    }
}

/// Passes every matching record to `sink`, in order of file and place, with the fields in `needed`.
pub(crate) fn scan(
    catalog: &Catalog,
    filter: &Filter,
    needed: Option<&str>,
    sink: &mut dyn FnMut(&Hit<'_>),
) -> Result<Scanned, ReadError> {
    let mut left = SCAN_MAX;
    let mut scanned = Scanned::default();
    let any = Cell::new(false);
    let sink: &mut dyn FnMut(&Hit<'_>) = &mut |hit| {
        any.set(true);
        sink(hit);
    };
    catalog.with_index(|db| {
        for place in &filter.sources {
            let number = i64::try_from(*place).unwrap_or(i64::MAX);
            let (source, inner) = catalog.inner(number)?;
            if !filter.conditions.iter().all(|c| c.of_missing() || has_field(source, c.field())) {
                continue;
            }
            let needed = needed.filter(|field| has_field(source, field));
            let look = Look::new(filter, needed, inner);
            let mut file = match catalog.text(number) {
                Ok(file) => file,
                Err(error) => {
                    scanned.unread.push((*place, error.to_string()));
                    continue;
                }
            };
            let sql = format!(
                "SELECT first, last, filter FROM block WHERE source=?1{} ORDER BY id",
                filter.window("early", "late")
            );
            let mut blocks = db.prepare_cached(&sql)?;
            let mut rows = blocks.query([number])?;
            while let Some(row) = rows.next()? {
                if !filter.may_be_in(row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?) {
                    continue;
                }
                let sql =
                    format!("SELECT {ENTRY} FROM rec WHERE id BETWEEN ?1 AND ?2{}", filter.window("time", "time"));
                let mut wanted = db.prepare_cached(&sql)?;
                let entries = wanted
                    .query_map([row.get::<_, i64>(0)?, row.get::<_, i64>(1)?], index::entry)?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                let size = match look.block(&mut file, &entries, sink) {
                    Ok(size) => size,
                    Err(error) => {
                        let error = ReadError::Read { file: source.file.clone(), source: error };
                        scanned.unread.push((*place, error.to_string()));
                        break;
                    }
                };
                if filter.first && any.get() {
                    return Ok(scanned);
                }
                match left.checked_sub(size) {
                    Some(rest) => left = rest,
                    None => {
                        scanned.stopped = true;
                        return Ok(scanned);
                    }
                }
            }
        }
        Ok(scanned)
    })
}

/// Whether any record of the source may have the field.
pub(crate) fn has_field(source: &Source, field: &str) -> bool {
    source.more_fields || may_have(source.fields.iter().map(|f| f.name.as_str()), field)
}

/// Whether a record of the source has the field, as far as its profile knows.
pub(crate) fn names_field(source: &Source, field: &str) -> bool {
    source.more_fields || source.fields.iter().any(|known| is_named(&known.name, field))
}

struct Look<'a> {
    filter: &'a Filter,
    inner: &'a Inner,
    /// Terms that occur in the bytes of every matching record.
    implied: Vec<Term>,
    fields: Vec<&'a str>,
}

impl<'a> Look<'a> {
    fn new(filter: &'a Filter, needed: Option<&'a str>, inner: &'a Inner) -> Self {
        let fields: Vec<&str> = filter.conditions.iter().map(Condition::field).chain(needed).collect();
        let implied = filter.conditions.iter().filter_map(Condition::implied).cloned().collect();
        Self { filter, inner, implied, fields }
    }

    /// Returns the number of bytes read.
    fn block(&self, file: &mut File, entries: &[Entry], sink: &mut dyn FnMut(&Hit<'_>)) -> std::io::Result<u64> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(0) };
        if self.filter.by_time_only() && self.fields.is_empty() {
            let shape = &self.inner.shape;
            entries.iter().for_each(|entry| sink(&Hit { entry, fields: &[], shape, raw: &[], block: (&[], 0..0) }));
            return Ok(0);
        }
        let whole = Entry { length: last.offset + last.length - first.offset, ..*first };
        let together = !entries.iter().any(|e| e.oversize);
        let bytes = if together { read_part(file, &whole, 0, u64::MAX)? } else { Vec::new() };
        let mut size = bytes.len() as u64;
        if together && self.filter.terms.cannot_be_in(&bytes) {
            return Ok(size);
        }
        for entry in entries {
            if together {
                let from = usize::try_from(entry.offset - first.offset).unwrap_or(0);
                let length = usize::try_from(entry.length).unwrap_or(0);
                self.record(entry, &bytes, from..from.saturating_add(length), sink);
            } else {
                let apart = read_part(file, entry, 0, kept(entry))?;
                size += apart.len() as u64;
                self.record(entry, &apart, 0..apart.len(), sink);
            }
        }
        Ok(size)
    }

    fn record(&self, entry: &Entry, block: &[u8], own: Range<usize>, sink: &mut dyn FnMut(&Hit<'_>)) {
        let raw = block.get(own.clone()).unwrap_or_default();
        let shape = &self.inner.shape;
        if !self.filter.terms.held(shape, raw) || !holds(shape, raw, &self.implied, false) {
            return;
        }
        let fields = if self.fields.is_empty() { Vec::new() } else { parse_fields(shape, raw, &self.fields) };
        if self.filter.conditions.iter().all(|c| c.is_true(&fields)) {
            sink(&Hit { entry, fields: &fields, shape, raw, block: (block, own) });
        }
    }
}

/// The fields with these names, and maybe others.
pub(crate) fn parse_fields(shape: &Shape, raw: &[u8], names: &[&str]) -> Vec<(String, String)> {
    let wanted = Wanted {
        may_be: &|path| names.iter().any(|name| may_be(path, name)),
        inside: &|value| may_pack(value, names),
        enough: &|fields| names.iter().all(|name| is_settled(fields, name)),
    };
    fields::parse_some(shape, raw, &wanted)
}

/// Whether a value may contain one of the fields: it contains the name, or its format renames fields.
fn may_pack(value: &str, fields: &[&str]) -> bool {
    if ["audit(", "EF:", "<Data", "\\u"].iter().any(|mark| value.contains(mark)) || fields::payload::renames(value) {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    fields.iter().any(|field| lower.contains(&last_name(field)))
}

/// The last part of a path that is not a list position, in lower case.
fn last_name(path: &str) -> String {
    let named = |s: &&str| !s.bytes().all(|b| b.is_ascii_digit());
    path.rsplit('.').find(named).unwrap_or_default().to_ascii_lowercase()
}
