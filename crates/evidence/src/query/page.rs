//! One page of query results, with the total.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::catalog::Catalog;
use crate::index::Entry;
use crate::index::blocks::{entries, extents};

use super::ordered::{Key, Order, Ordered};
use super::scan::{Filter, Scanned, scan};

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) total: u64,
    /// `total` is complete if the scan is whole.
    pub(crate) scanned: Scanned,
    /// For each alternative term, the number of records with it.
    pub(crate) held: Vec<u64>,
    /// The number of records by source.
    pub(crate) by_source: BTreeMap<i64, u64>,
}

/// `each`: at most so many records of each source.
pub(crate) fn page(
    catalog: &Catalog,
    filter: &Filter,
    order: Order,
    offset: usize,
    limit: usize,
    each: Option<usize>,
) -> Result<Page, ReadError> {
    if filter.by_time_only() && each.is_none() {
        return by_index(catalog, filter, order, offset, limit);
    }
    let most = offset.saturating_add(limit);
    // One for all sources, or one for each.
    let mut best: BTreeMap<i64, BTreeMap<Key, Entry>> = BTreeMap::new();
    let mut by_source: BTreeMap<i64, u64> = BTreeMap::new();
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
        *by_source.entry(hit.entry.source).or_default() += 1;
        let best = best.entry(each.map_or(0, |_| hit.entry.source)).or_default();
        best.insert(order.key(hit.entry), *hit.entry);
        if best.len() > each.unwrap_or(most).min(most) {
            best.pop_last();
        }
    })?;
    let mut best: Vec<(Key, Entry)> = best.into_values().flatten().collect();
    best.sort_unstable_by_key(|(key, _)| *key);
    let entries = best.into_iter().map(|(_, entry)| entry).skip(offset).take(limit).collect();
    Ok(Page { entries, total, scanned, held, by_source })
}

/// The index alone answers a query about time.
fn by_index(catalog: &Catalog, filter: &Filter, order: Order, offset: usize, limit: usize) -> Result<Page, ReadError> {
    let (window, most) = (filter.window, offset.saturating_add(limit));
    catalog.with_index(|db| {
        let (mut all, mut total) = (Vec::new(), 0);
        for place in &filter.sources {
            let of_source = extents(db, i64::try_from(*place).unwrap_or(i64::MAX), &window.of_blocks())?;
            for extent in &of_source {
                total += match extent.times {
                    _ if window.is_whole() => extent.records(),
                    Some((early, late)) if window.has(Some(early)) && window.has(Some(late)) => extent.timed,
                    _ => entries(db, extent.id)?.iter().map(|entry| u64::from(window.has(entry.time))).sum(),
                };
            }
            all.extend(of_source);
        }
        let mut ordered = Ordered::new(order, window, &all, most);
        let mut found = Vec::new();
        while let Some(entry) = ordered.next(&mut |id| Ok(entries(db, id)?))? {
            found.push(entry);
        }
        Ok(Page {
            entries: found.split_off(offset.min(found.len())),
            total,
            scanned: Scanned::default(),
            held: Vec::new(),
            by_source: BTreeMap::new(),
        })
    })
}
