//! Compares the evidence with the roster that an investigation began with.

use std::collections::BTreeSet;

pub use casebook_expert::roster::{TeamMember, members};
use casebook_protocol::Member;

/// Why the evidence cannot serve an investigation that began with `before`. Files may have grown: each task reads the
/// part of them that was read first.
pub fn difference(before: &[Member], now: &[Member]) -> Option<String> {
    let list = |members: &[Member]| -> BTreeSet<String> {
        members.iter().flat_map(|m| m.sources.iter().map(|s| format!("{} for {}", s.source, m.domain))).collect()
    };
    let now = list(now);
    list(before).into_iter().find(|source| !now.contains(source)).map(|source| format!("source {source} is gone"))
}
