//! The prompt caches of the providers as documented, to count cached tokens. Entries do not expire here, so
//! counts are an upper bound after pauses of five minutes.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

/// Assumed size of a token.
pub const BYTES_A_TOKEN: u64 = 4;
/// The shortest prefix that is cached, in tokens.
const LEAST: u64 = 1024;
/// OpenAI caches in steps of this many tokens.
const STEP: u64 = 128;
/// Anthropic searches this many blocks back from each mark.
const BACK: usize = 20;

/// A possible end of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    hash: u64,
    bytes: u64,
    /// The client asked to cache up to here.
    marked: bool,
}

/// The prompt for a cache: hashes of its prefixes, and its size.
#[derive(Debug, Clone)]
pub struct Prefix {
    edges: Vec<Edge>,
    bytes: u64,
    /// Whether the client marks what to cache; otherwise everything is cached in steps.
    by_marks: bool,
    hasher: DefaultHasher,
}

impl Prefix {
    pub fn new(by_marks: bool) -> Self {
        Self { edges: Vec::new(), bytes: 0, by_marks, hasher: DefaultHasher::new() }
    }

    /// Adds a block; `marked` if the client asked to cache up to its end.
    pub fn add(&mut self, block: &str, marked: bool) {
        if self.by_marks {
            self.hasher.write(block.as_bytes());
            self.hasher.write_u8(0xff);
            self.bytes += block.len() as u64;
            self.edges.push(Edge { hash: self.hasher.finish(), bytes: self.bytes, marked });
            return;
        }
        let step = STEP * BYTES_A_TOKEN;
        let mut rest = block.as_bytes();
        while !rest.is_empty() {
            let room = usize::try_from(step - self.bytes % step).unwrap_or(usize::MAX);
            let (piece, left) = rest.split_at(room.min(rest.len()));
            self.hasher.write(piece);
            self.bytes += piece.len() as u64;
            if self.bytes.is_multiple_of(step) {
                self.edges.push(Edge { hash: self.hasher.finish(), bytes: self.bytes, marked: true });
            }
            rest = left;
        }
    }

    /// Adds something other than text that separates cache entries, such as the choice of tools.
    pub fn part_by(&mut self, what: &impl Hash) {
        what.hash(&mut self.hasher);
    }

    pub fn marks(&self) -> usize {
        if self.by_marks { self.edges.iter().filter(|edge| edge.marked).count() } else { 0 }
    }

    pub const fn tokens(&self) -> u64 {
        self.bytes.div_ceil(BYTES_A_TOKEN)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub input: u64,
    pub read: u64,
    /// Written to the cache; 0 if the provider does not count them.
    pub written: u64,
}

#[derive(Debug, Default)]
pub struct PromptCache {
    known: HashSet<(u64, u64)>,
}

impl PromptCache {
    /// Counts a prompt of `owner` (a hash of key and model) and caches it.
    pub fn count(&mut self, owner: u64, prefix: &Prefix) -> Counted {
        let enough = |edge: &&Edge| edge.bytes / BYTES_A_TOKEN >= LEAST;
        let is_known = |edge: &&Edge| self.known.contains(&(owner, edge.hash));
        let read = if prefix.by_marks {
            let marks = prefix.edges.iter().enumerate().filter(|(_, edge)| edge.marked).map(|(at, _)| at);
            let near = marks.filter_map(|at| prefix.edges.get(at.saturating_sub(BACK)..=at)).flatten();
            near.filter(enough).filter(is_known).map(|edge| edge.bytes).max()
        } else {
            prefix.edges.iter().rev().filter(enough).find(is_known).map(|edge| edge.bytes)
        };
        let read = read.unwrap_or(0);
        let kept: Vec<Edge> = prefix.edges.iter().filter(|edge| edge.marked).filter(enough).copied().collect();
        let upto = kept.last().map_or(0, |edge| edge.bytes);
        self.known.extend(kept.into_iter().map(|edge| (owner, edge.hash)));
        let written = if prefix.by_marks { upto.saturating_sub(read) } else { 0 };
        Counted { input: prefix.tokens(), read: read / BYTES_A_TOKEN, written: written / BYTES_A_TOKEN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(by_marks: bool, blocks: &[(&str, usize, bool)]) -> Prefix {
        let mut prefix = Prefix::new(by_marks);
        for (letter, times, marked) in blocks {
            prefix.add(&letter.repeat(*times), *marked);
        }
        prefix
    }

    #[test]
    fn marks_write_and_read_whole_blocks() {
        let mut cache = PromptCache::default();
        let first = prompt(true, &[("s", 8000, true), ("a", 400, false)]);
        assert_eq!(cache.count(1, &first), Counted { input: 2100, read: 0, written: 2000 });
        let second = prompt(true, &[("s", 8000, true), ("b", 4000, true), ("c", 40, false)]);
        assert_eq!(cache.count(1, &second), Counted { input: 3010, read: 2000, written: 1000 });
        assert_eq!(cache.count(1, &second), Counted { input: 3010, read: 3000, written: 0 });
        assert_eq!(cache.count(2, &first), Counted { input: 2100, read: 0, written: 2000 }, "another key");
        let other = prompt(true, &[("t", 8000, true)]);
        assert_eq!(cache.count(1, &other).read, 0, "another beginning");
    }

    #[test]
    fn unmarked_or_short_prefix_is_not_cached() {
        let mut cache = PromptCache::default();
        for blocks in [&[("s", 8000, false)], &[("s", 4000, true)]] {
            cache.count(1, &prompt(true, blocks));
            assert_eq!(cache.count(1, &prompt(true, blocks)).read, 0, "{blocks:?}");
        }
    }

    #[test]
    fn steps_of_128_tokens_are_cached_by_themselves() {
        let mut cache = PromptCache::default();
        let first = prompt(false, &[("s", 6000, false)]);
        assert_eq!(cache.count(1, &first), Counted { input: 1500, read: 0, written: 0 });
        let longer = prompt(false, &[("s", 6000, false), ("x", 1000, false)]);
        assert_eq!(cache.count(1, &longer).read, 1408, "11 whole steps of 1500 tokens");
        let mut cache = PromptCache::default();
        let short = prompt(false, &[("s", 4000, false)]);
        cache.count(1, &short);
        assert_eq!(cache.count(1, &short).read, 0);
    }
}
