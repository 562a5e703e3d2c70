//! Compares the evidence with the roster that an investigation began with.

use std::collections::BTreeMap;

pub use casebook_expert::roster::{TeamMember, members};
use casebook_protocol::Member;

/// Why the evidence differs from the one an investigation began with: citations would be wrong.
pub fn difference(before: &[Member], now: &[Member]) -> Option<String> {
    let list = |members: Vec<&Member>| -> BTreeMap<String, u64> {
        members
            .iter()
            .flat_map(|m| m.sources.iter().map(|s| (format!("{} for {}", s.source, m.domain), s.records)))
            .collect()
    };
    let (before, now) = (list(before.iter().collect()), list(now.iter().collect()));
    for (source, records) in &before {
        match now.get(source) {
            None => return Some(format!("source {source} is gone")),
            Some(found) if found != records => {
                return Some(format!("source {source} had {records} records and has {found}"));
            }
            Some(_) => {}
        }
    }
    now.keys().find(|source| !before.contains_key(*source)).map(|source| format!("source {source} is new"))
}
