use casebook_protocol::Timestamp;

use crate::programs::file_name;

/// What an alert says about time, for logs without years or zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// When the alerted activity happened. A log without years gets the year that brings it nearest.
    pub at: Timestamp,
    /// The record that the alert points to, with its time in the alert. If the log has no zone and the two times
    /// differ by exactly a zone offset, the log is in that zone.
    pub record: Option<PointedRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointedRecord {
    pub file: String,
    pub line: u64,
    pub at: Timestamp,
    /// The alert gives a zone. Without one, it may only repeat the text of the record.
    pub zoned: bool,
}

impl Hint {
    /// Nanoseconds; none if out of range.
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

/// The file of `known` that `named` means: an exact match, a path with this end, or the only file with this
/// name.
pub fn pointed<'f>(known: &[&'f str], named: &str) -> Option<&'f str> {
    let ends = |known: &&&str| named.ends_with(&format!("/{known}"));
    let base = |p: &str| file_name(p).to_ascii_lowercase();
    let mut alike = known.iter().filter(|k| base(k) == base(named));
    let only = alike.next().filter(|_| alike.next().is_none());
    known.iter().find(|k| **k == named).or_else(|| known.iter().find(ends)).or(only).copied()
}
