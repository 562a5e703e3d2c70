//! The first records of a query, in an order, and how many there are.

use std::collections::BTreeMap;

use crate::evidence::ReadError;
use crate::evidence::catalog::Catalog;
use crate::evidence::index::{self, ENTRY, Entry};

use super::scan::{Filter, scan};

/// The order of a page. Records without a time come last; among equals the place decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Time,
    TimeDesc,
    File,
    /// By distance from this moment, in nanoseconds since 1970.
    Near(i64),
}

/// Some records of all that were found.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) total: u64,
    /// `total` counts all; else everything up to a limit of work.
    pub(crate) exact: bool,
}

type Key = (bool, i64, i64);

fn key(order: Order, entry: &Entry) -> Key {
    let (none, time) = (entry.time.is_none(), entry.time.unwrap_or(0));
    match order {
        Order::Time => (none, time, entry.id),
        Order::TimeDesc => (none, -time, -entry.id),
        Order::File => (false, 0, entry.id),
        Order::Near(center) => (none, (time - center).saturating_abs(), entry.id),
    }
}

/// The records from number `offset` on, at most `limit`.
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
    let scanned = scan(catalog, filter, None, &mut |hit| {
        total += 1;
        best.insert(key(order, hit.entry), *hit.entry);
        if best.len() > most {
            best.pop_last();
        }
    })?;
    Ok(Page { entries: best.into_values().skip(offset).collect(), total, exact: scanned.whole })
}

/// A question of time alone is answered by the index.
fn by_index(catalog: &Catalog, filter: &Filter, order: Order, offset: usize, limit: usize) -> Result<Page, ReadError> {
    let sources: Vec<String> = filter.sources.iter().map(ToString::to_string).collect();
    let of = format!("source IN ({}){}", sources.join(","), filter.window("time", "time"));
    // Records without a time are a page of their own, so that the index on time can be used.
    let parts: &[(&str, &str)] = match order {
        Order::File => &[("", "id")],
        Order::TimeDesc => &[(" AND time IS NOT NULL", "time DESC, id DESC"), (" AND time IS NULL", "id DESC")],
        Order::Time | Order::Near(_) => &[(" AND time IS NOT NULL", "time, id"), (" AND time IS NULL", "id")],
    };
    catalog.with_index(|db| {
        let mut page = Page { entries: Vec::new(), total: 0, exact: true };
        let mut skip = u64::try_from(offset).unwrap_or(u64::MAX);
        for (which, sorted) in parts {
            let count: u64 = db
                .prepare_cached(&format!("SELECT COUNT(*) FROM rec WHERE {of}{which}"))?
                .query_row([], |row| row.get::<_, i64>(0))
                .map(|n| u64::try_from(n).unwrap_or(0))?;
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
