//! One record of the evidence.

use casebook_protocol::{Precision, TimeBasis, Timestamp};

use super::fields::{self, Shape};

/// One record as it stands in its file, with what is known of its time.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its number in the index, from 1, in order of file and place.
    pub id: u64,
    /// The id of its source.
    pub source: String,
    /// Relative to the evidence folder.
    pub file: String,
    /// The line on which it starts, from 1.
    pub line: u64,
    /// Which of the records that start on this line it is, from 1.
    pub nth: u32,
    /// When it happened.
    pub time: Option<Timestamp>,
    /// What the time rests on.
    pub time_basis: TimeBasis,
    /// The field that the time was read from.
    pub time_field: Option<String>,
    /// How exactly the time is known.
    pub precision: Option<Precision>,
    /// When a collector received it, where that is recorded.
    pub ingested: Option<Timestamp>,
    /// It does not follow the format of its source.
    pub malformed: bool,
    /// It is longer than what is indexed.
    pub oversize: bool,
    /// All its bytes in the file, of which `bytes` may be the beginning.
    pub length: u64,
    /// Its bytes: all of them, or the first 64 KiB of an oversize record.
    pub bytes: Vec<u8>,
    pub(crate) shape: std::sync::Arc<Shape>,
}

impl Record {
    /// The bytes as text; what is no UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Path and value of every field, in the order of the record. Paths are `a.b.0.c`; what is packed
    /// into a value (JSON, XML, `key=value` text) follows under that value's path. The same path may
    /// occur twice where the record has it twice.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        fields::parse(&self.shape, &self.bytes).fields
    }
}
