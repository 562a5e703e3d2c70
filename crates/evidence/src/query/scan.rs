//! Going through the records block by block.

use std::fs::File;

use crate::catalog::{Catalog, Inner, kept, read_part};
use crate::fields::{self, Shape, Wanted};
use crate::index::{self, ENTRY, Entry};
use crate::readings::{Term, Terms, holds, may_hold};
use crate::{ReadError, Source};

use super::condition::{Condition, is_settled, may_be, may_have};

/// Bytes of records that one query looks at. What lies beyond is said to be left out.
const SCAN_MAX: u64 = 8 << 30;

/// Which records are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Places of the sources, ascending.
    pub(crate) sources: Vec<usize>,
    pub(crate) terms: Terms,
    pub(crate) conditions: Vec<Condition>,
    /// First and last nanosecond; a record without a time is outside of any window.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
}

impl Filter {
    /// Nothing about the content of records is asked.
    pub(crate) const fn by_time_only(&self) -> bool {
        self.terms.is_empty() && self.conditions.is_empty()
    }

    /// No window of time is asked for.
    pub(crate) const fn whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// A condition on the columns `early` and `late`, or on `time` for both.
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

/// A record that is wanted.
pub(crate) struct Hit<'a> {
    pub(crate) entry: &'a Entry,
    /// Only where `parsed` was asked for, or a condition needed them.
    pub(crate) fields: &'a [(String, String)],
    pub(crate) shape: &'a Shape,
    /// Its bytes, where its content was asked about.
    pub(crate) raw: &'a [u8],
}

/// How far a scan went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// It went through everything.
    pub(crate) whole: bool,
}

/// Gives every record that is wanted to `sink`, in order of file and place, with the fields that
/// `needed` may name.
pub(crate) fn scan(
    catalog: &Catalog,
    filter: &Filter,
    needed: Option<&str>,
    sink: &mut dyn FnMut(&Hit<'_>),
) -> Result<Scanned, ReadError> {
    let mut left = SCAN_MAX;
    catalog.with_index(|db| {
        for place in &filter.sources {
            let number = i64::try_from(*place).unwrap_or(i64::MAX);
            let (source, inner) = catalog.inner(number)?;
            if !filter.conditions.iter().all(|c| c.of_missing() || has_field(source, c.field())) {
                continue;
            }
            let needed = needed.filter(|field| has_field(source, field));
            let look = Look::new(filter, needed, inner);
            let mut file = catalog.text(number)?;
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
                let size = look
                    .block(&mut file, &entries, sink)
                    .map_err(|e| ReadError::Read { file: source.file.clone(), source: e })?;
                match left.checked_sub(size) {
                    Some(rest) => left = rest,
                    None => return Ok(Scanned { whole: false }),
                }
            }
        }
        Ok(Scanned { whole: true })
    })
}

/// Whether some record of a source may have the field.
pub(crate) fn has_field(source: &Source, field: &str) -> bool {
    source.more_fields || may_have(source.fields.iter().map(|f| f.name.as_str()), field)
}

/// How the records of one source are looked at.
struct Look<'a> {
    filter: &'a Filter,
    inner: &'a Inner,
    /// What the bytes of a record hold wherever the conditions are true.
    implied: Vec<Term>,
    /// The fields that are asked for.
    fields: Vec<&'a str>,
}

impl<'a> Look<'a> {
    fn new(filter: &'a Filter, needed: Option<&'a str>, inner: &'a Inner) -> Self {
        let fields: Vec<&str> = filter.conditions.iter().map(Condition::field).chain(needed).collect();
        let implied = filter.conditions.iter().filter_map(Condition::implied).cloned().collect();
        Self { filter, inner, implied, fields }
    }

    /// Goes through the records of one block; the bytes that were read.
    fn block(&self, file: &mut File, entries: &[Entry], sink: &mut dyn FnMut(&Hit<'_>)) -> std::io::Result<u64> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(0) };
        if self.filter.by_time_only() && self.fields.is_empty() {
            entries.iter().for_each(|entry| sink(&Hit { entry, fields: &[], shape: &self.inner.shape, raw: &[] }));
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
                self.record(entry, bytes.get(from..from.saturating_add(length)).unwrap_or_default(), sink);
            } else {
                let apart = read_part(file, entry, 0, kept(entry))?;
                size += apart.len() as u64;
                self.record(entry, &apart, sink);
            }
        }
        Ok(size)
    }

    fn record(&self, entry: &Entry, raw: &[u8], sink: &mut dyn FnMut(&Hit<'_>)) {
        let shape = &self.inner.shape;
        if !self.filter.terms.held(shape, raw) || !holds(shape, raw, &self.implied, false) {
            return;
        }
        let fields = if self.fields.is_empty() { Vec::new() } else { parse_fields(shape, raw, &self.fields) };
        if self.filter.conditions.iter().all(|c| c.is_true(&fields)) {
            sink(&Hit { entry, fields: &fields, shape, raw });
        }
    }
}

/// The fields of a record that have one of these names, and perhaps others.
pub(crate) fn parse_fields(shape: &Shape, raw: &[u8], names: &[&str]) -> Vec<(String, String)> {
    let wanted = Wanted {
        may_be: &|path| names.iter().any(|name| may_be(path, name)),
        inside: &|value| may_pack(value, names),
        enough: &|fields| names.iter().all(|name| is_settled(fields, name)),
    };
    fields::parse_some(shape, raw, &wanted)
}

/// Whether a value may pack one of the fields: it holds the name, or its form makes names of its own.
fn may_pack(value: &str, fields: &[&str]) -> bool {
    if ["audit(", "EF:", "<Data", "\\u"].iter().any(|mark| value.contains(mark)) || fields::payload::renames(value) {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    fields.iter().any(|field| lower.contains(&last_name(field)))
}

/// The last part of a path that is no position in a list, in lower case.
fn last_name(path: &str) -> String {
    let named = |s: &&str| !s.bytes().all(|b| b.is_ascii_digit());
    path.rsplit('.').find(named).unwrap_or_default().to_ascii_lowercase()
}
