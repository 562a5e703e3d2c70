//! One page of query results, with the total.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::catalog::Catalog;
use crate::index::{self, ENTRY, Entry};

use super::scan::{Filter, Scanned, scan};

/// Records without a time come last. Records with equal times are in order of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Time,
    TimeDesc,
    File,
    /// By distance from this time, in nanoseconds since 1970.
    Near(i64),
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) total: u64,
    /// `total` is complete if the scan is whole.
    pub(crate) scanned: Scanned,
    /// For each alternative term, the number of records with it.
    pub(crate) held: Vec<u64>,
}

type Key = (bool, i64, i64);

const TIMED: &str = " AND time IS NOT NULL";
const UNTIMED: &str = " AND time IS NULL";

fn key(order: Order, entry: &Entry) -> Key {
    let (none, time) = (entry.time.is_none(), entry.time.unwrap_or(0));
    match order {
        Order::Time => (none, time, entry.id),
        Order::TimeDesc => (none, -time, -entry.id),
        Order::File => (false, 0, entry.id),
        Order::Near(center) => (none, time.saturating_sub(center).saturating_abs(), entry.id),
    }
}

pub(crate) fn page(
    catalog: &Catalog,
    filter: &Filter,
    order: Order,
    offset: usize,
    limit: usize,
) -> Result<Page, ReadError> {
    if filter.by_time_only() && !matches!(order, Order::Near(_)) {
        return by_index(catalog, filter, order, offset, limit);
    }
    let most = offset.saturating_add(limit);
    let mut best: BTreeMap<Key, Entry> = BTreeMap::new();
    let mut total = 0;
    let choice = if filter.terms.is_choice() { filter.terms.len() } else { 0 };
    let (mut held, mut marks) = (vec![0; choice], vec![false; choice]);
    let scanned = scan(catalog, filter, None, &mut |hit| {
        total += 1;
        if choice > 0 {
            marks.fill(false);
            filter.terms.mark(hit.shape, hit.raw, &mut marks);
            held.iter_mut().zip(&marks).for_each(|(count, held)| *count += u64::from(*held));
        }
        best.insert(key(order, hit.entry), *hit.entry);
        if best.len() > most {
            best.pop_last();
        }
    })?;
    Ok(Page { entries: best.into_values().skip(offset).collect(), total, scanned, held })
}

/// The index alone answers a query about time.
fn by_index(catalog: &Catalog, filter: &Filter, order: Order, offset: usize, limit: usize) -> Result<Page, ReadError> {
    let sources: Vec<String> = filter.sources.iter().map(ToString::to_string).collect();
    let of = format!("source IN ({}){}", sources.join(","), filter.window("time", "time"));
    // Records without a time come separately, so that SQLite can use the index on time.
    let parts: &[(&str, &str)] = match order {
        Order::File => &[("", "id")],
        Order::TimeDesc => &[(TIMED, "time DESC, id DESC"), (UNTIMED, "id DESC")],
        Order::Time | Order::Near(_) => &[(TIMED, "time, id"), (UNTIMED, "id")],
    };
    catalog.with_index(|db| {
        let mut page = Page { entries: Vec::new(), total: 0, scanned: Scanned::default(), held: Vec::new() };
        let mut skip = u64::try_from(offset).unwrap_or(u64::MAX);
        for (which, sorted) in parts {
            let count = match filter.whole() {
                true => known(catalog, filter, which),
                false => {
                    let sql = format!("SELECT COUNT(*) FROM rec WHERE {of}{which}");
                    let count: i64 = db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
                    u64::try_from(count).unwrap_or(0)
                }
            };
            page.total += count;
            let room = limit.saturating_sub(page.entries.len());
            if skip < count && room > 0 {
                let sql =
                    format!("SELECT {ENTRY} FROM rec WHERE {of}{which} ORDER BY {sorted} LIMIT {room} OFFSET {skip}");
                let mut query = db.prepare_cached(&sql)?;
                let rows = query.query_map([], index::entry)?;
                for row in rows {
                    page.entries.push(row?);
                }
            }
            skip = skip.saturating_sub(count);
        }
        Ok(page)
    })
}

/// The number of records in any window, with or without a time.
fn known(catalog: &Catalog, filter: &Filter, which: &str) -> u64 {
    let sources = filter.sources.iter().filter_map(|place| catalog.sources().get(*place));
    sources
        .map(|source| match which {
            "" => source.records,
            TIMED => source.records - source.untimed.min(source.records),
            _ => source.untimed,
        })
        .sum()
}
