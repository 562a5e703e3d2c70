//! Reads the records of a query block by block.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use crate::catalog::{Catalog, Inner, kept, read_at, read_part};
use crate::fields::{self, Shape, Wanted};
use crate::index::Entry;
use crate::index::blocks::{BLOCK, Block};
use crate::readings::{Terms, Text, may_hold};
use crate::{ReadError, Source};

use super::condition::{Condition, is_named, is_settled, may_be, may_have};

/// Bytes that one query may read. The answer says if the limit was reached.
const SCAN_MAX: u64 = 8 << 30;

/// Nanoseconds since 1970, inclusive. Records without a time are outside every window that has an edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
}

impl Window {
    pub(crate) const fn is_whole(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    pub(crate) fn has(self, time: Option<i64>) -> bool {
        self.is_whole() || time.is_some_and(|t| self.from.is_none_or(|f| f <= t) && self.to.is_none_or(|to| t <= to))
    }

    /// A condition in SQL on blocks that may have records in the window.
    pub(crate) fn of_blocks(self) -> String {
        let from = self.from.map_or(String::new(), |from| format!(" AND late >= {from}"));
        let to = self.to.map_or(String::new(), |to| format!(" AND early <= {to}"));
        from + &to
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Source numbers, ascending.
    pub(crate) sources: Vec<usize>,
    pub(crate) terms: Terms,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) window: Window,
    /// The first record is enough: whether there is any.
    pub(crate) first: bool,
}

impl Filter {
    pub(crate) const fn by_time_only(&self) -> bool {
        self.terms.is_empty() && self.conditions.is_empty()
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
            let look = Look::new(filter, needed, (source, inner));
            let mut file = match catalog.text(number) {
                Ok(file) => file,
                Err(error) => {
                    scanned.unread.push((*place, error.to_string()));
                    continue;
                }
            };
            let sql =
                format!("SELECT {BLOCK}, filter FROM block WHERE source=?1{} ORDER BY id", filter.window.of_blocks());
            let mut blocks = db.prepare_cached(&sql)?;
            let mut rows = blocks.query([number])?;
            while let Some(row) = rows.next()? {
                if !filter.may_be_in(row.get_ref("filter")?.as_blob().map_err(rusqlite::Error::from)?) {
                    continue;
                }
                let size = match look.block(&mut file, &Block::of(row)?, sink) {
                    Ok(size) => size,
                    Err(error @ ReadError::Read { .. }) => {
                        scanned.unread.push((*place, error.to_string()));
                        break;
                    }
                    Err(error) => return Err(error),
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
    source: &'a Source,
    inner: &'a Inner,
    /// Terms that occur in the bytes of every matching record.
    implied: Terms,
    fields: Vec<&'a str>,
}

impl<'a> Look<'a> {
    fn new(filter: &'a Filter, needed: Option<&'a str>, (source, inner): (&'a Source, &'a Inner)) -> Self {
        let fields: Vec<&str> = filter.conditions.iter().map(Condition::field).chain(needed).collect();
        let implied = Terms::all(filter.conditions.iter().filter_map(Condition::implied).cloned().collect());
        Self { filter, source, inner, implied, fields }
    }

    /// Returns the number of bytes read.
    fn block(&self, file: &mut File, block: &Block<'_>, sink: &mut dyn FnMut(&Hit<'_>)) -> Result<u64, ReadError> {
        let wanted = |entry: &Entry| self.filter.window.has(entry.time);
        if self.filter.by_time_only() && self.fields.is_empty() {
            let shape = &self.inner.shape;
            for entry in block.entries()?.iter().filter(|entry| wanted(entry)) {
                sink(&Hit { entry, fields: &[], shape, raw: &[], block: (&[], 0..0) });
            }
            return Ok(0);
        }
        let failed = |source| ReadError::Read { file: self.source.file.clone(), source };
        let bytes = if block.apart { Vec::new() } else { read_at(file, block.start, block.length).map_err(failed)? };
        let mut size = bytes.len() as u64;
        // Without terms nothing is compared with it.
        let compared = !self.filter.terms.is_empty() || !self.implied.is_empty();
        let made = |bytes: &[u8]| if compared { Text::new(bytes) } else { Text::default() };
        let text = made(&bytes);
        let may_be = |terms: &Terms| block.apart || terms.may_be_in_text(&text);
        if !may_be(&self.filter.terms) || !may_be(&self.implied) {
            return Ok(size);
        }
        for entry in block.entries()?.iter().filter(|entry| wanted(entry)) {
            if block.apart {
                let apart = read_part(file, entry, 0, kept(entry)).map_err(failed)?;
                size += apart.len() as u64;
                self.record(entry, &apart, &made(&apart), 0..apart.len(), sink);
            } else {
                let start = i64::try_from(block.start).unwrap_or(i64::MAX);
                let from = usize::try_from(entry.offset - start).unwrap_or(0);
                let length = usize::try_from(entry.length).unwrap_or(0);
                self.record(entry, &bytes, &text, from..from.saturating_add(length), sink);
            }
        }
        Ok(size)
    }

    fn record(&self, entry: &Entry, block: &[u8], text: &Text, own: Range<usize>, sink: &mut dyn FnMut(&Hit<'_>)) {
        let raw = block.get(own.clone()).unwrap_or_default();
        let shape = &self.inner.shape;
        let has = |terms: &Terms| terms.held_in(text, own.clone(), shape, raw);
        if !has(&self.filter.terms) || !has(&self.implied) {
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
