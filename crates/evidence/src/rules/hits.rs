//! The hits of one rule in one source, in bounded memory: the first, the last, a sample, and how many.

use serde::{Deserialize, Serialize};

use super::correlate::Place;

/// Hits that are stored for each rule and source.
pub(crate) const KEPT_MAX: usize = 1000;

/// A hit as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) rule: usize,
    pub(crate) at: Place,
    /// True if the record has a time.
    pub(crate) timed: bool,
    /// Of a correlation.
    pub(crate) group: Option<Box<Group>>,
}

/// What a correlation found, beside its last record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The fields that the records share.
    pub by: Vec<(String, String)>,
    pub count: u64,
    /// Number and time (in nanoseconds) of the first record.
    pub first: (i64, i64),
    /// For each rule that took part, its id and title, how many hits, and the numbers of its first and last record.
    pub parts: Vec<GroupPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPart {
    pub rule: String,
    pub title: String,
    pub count: u64,
    pub first: i64,
    pub last: i64,
}

/// Every hit, until there are too many: then every second one, every fourth one, and so on.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) count: u64,
    pub(crate) earliest: Option<i64>,
    pub(crate) latest: Option<i64>,
    every: u64,
    sample: Vec<Hit>,
    last: Option<Hit>,
}

impl Default for Kept {
    fn default() -> Self {
        Self { count: 0, earliest: None, latest: None, every: 1, sample: Vec::new(), last: None }
    }
}

impl Kept {
    pub(crate) fn add(&mut self, hit: Hit) {
        if hit.timed {
            self.earliest = Some(self.earliest.map_or(hit.at.time, |t| t.min(hit.at.time)));
            self.latest = Some(self.latest.map_or(hit.at.time, |t| t.max(hit.at.time)));
        }
        if self.count.is_multiple_of(self.every) {
            if self.sample.len() >= KEPT_MAX - 1 {
                let mut nth = 0u64;
                self.sample.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.every *= 2;
            }
            if self.count.is_multiple_of(self.every) {
                self.sample.push(hit.clone());
            }
        }
        self.count += 1;
        self.last = Some(hit);
    }

    pub(crate) fn hits(mut self) -> Vec<Hit> {
        let last = self.last.filter(|last| self.sample.last() != Some(last));
        self.sample.extend(last);
        self.sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_the_last_and_a_sample_are_kept() {
        for many in [1, 2, 999, 1000, 1001, 5000, 123_456] {
            let mut kept = Kept::default();
            for record in 1..=many {
                let at = Place { source: 0, record, time: record };
                kept.add(Hit { rule: 0, at, timed: true, group: None });
            }
            assert_eq!(kept.count, u64::try_from(many).unwrap());
            assert_eq!((kept.earliest, kept.latest), (Some(1), Some(many)));
            let hits = kept.hits();
            assert!(hits.len() <= KEPT_MAX && hits.len() >= usize::try_from(many.min(500)).unwrap(), "{}", hits.len());
            assert_eq!((hits[0].at.record, hits[hits.len() - 1].at.record), (1, many));
            assert!(hits.windows(2).all(|pair| pair[0].at.record < pair[1].at.record));
        }
    }
}
