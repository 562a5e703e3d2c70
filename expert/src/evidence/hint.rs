//! What is known of a matter before its evidence is read.

use casebook_protocol::Timestamp;

/// What an alert says of when it happened, for logs that do not say it themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// When the alerted activity happened. A log that writes no year lies in the year that brings it nearest.
    pub at: Timestamp,
    /// The record that the alert points to, by its file and line. Where that log writes no zone, and the record is whole
    /// quarters of an hour from `at`, it is in the zone that makes both one moment.
    pub record: Option<(String, u64)>,
}

impl Hint {
    pub(crate) fn ns(&self) -> i64 {
        i64::try_from(self.at.as_nanosecond()).unwrap_or(i64::MAX)
    }

    /// The line that it points to in `file`.
    pub(crate) fn line_of(&self, file: &str) -> Option<u64> {
        self.record.as_ref().filter(|(named, _)| same_file(file, named)).map(|(_, line)| *line)
    }
}

/// Whether `named`, as an alert writes it, is `known`, as it lies in the folder of the evidence.
pub(crate) fn same_file(known: &str, named: &str) -> bool {
    let base = |p: &str| p.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    known == named || named.ends_with(&format!("/{known}")) || base(known) == base(named)
}
