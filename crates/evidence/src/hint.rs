//! What is known of a matter before its evidence is read.

use casebook_protocol::Timestamp;

/// What an alert says of when it happened, for logs that do not say it themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// When the alerted activity happened. A log that writes no year lies in the year that brings it nearest.
    pub at: Timestamp,
    /// The record that the alert points to, by its file and line, and its time as the alert itself tells it. Where that
    /// log writes no zone, and the record is a zone away from that time to the second, it is in that zone.
    pub record: Option<PointedRecord>,
}

/// A record and when it happened, as an alert tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointedRecord {
    /// The file, as the alert writes it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The alert says the zone of that time; else it may be a copy of what the record says.
    pub zoned: bool,
}

impl Hint {
    /// Nanoseconds; none outside the years that they reach.
    pub(crate) fn ns(&self) -> Option<i64> {
        nanoseconds(self.at)
    }
}

impl PointedRecord {
    pub(crate) fn ns(&self) -> Option<i64> {
        nanoseconds(self.at)
    }
}

fn nanoseconds(at: Timestamp) -> Option<i64> {
    i64::try_from(at.as_nanosecond()).ok()
}

/// Which of `known` an alert means by `named`: that file, or the one whose path ends so, or the only one of that name.
pub fn pointed<'f>(known: &[&'f str], named: &str) -> Option<&'f str> {
    let ends = |known: &&&str| named.ends_with(&format!("/{known}"));
    let base = |p: &str| p.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let mut alike = known.iter().filter(|k| base(k) == base(named));
    let only = alike.next().filter(|_| alike.next().is_none());
    known.iter().find(|k| **k == named).or_else(|| known.iter().find(ends)).or(only).copied()
}
