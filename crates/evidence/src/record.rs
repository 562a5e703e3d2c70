use casebook_protocol::{Precision, TimeBasis, Timestamp};

use super::fields::{self, Shape};

#[derive(Debug, Clone)]
pub struct Record {
    /// Its number in the index, from 1, in order of file and place.
    pub id: u64,
    pub source: String,
    /// Relative to the evidence folder.
    pub file: String,
    /// The line on which it starts, from 1.
    pub line: u64,
    /// Which of the records that start on this line, from 1.
    pub nth: u32,
    pub time: Option<Timestamp>,
    pub time_basis: TimeBasis,
    pub time_field: Option<String>,
    pub precision: Option<Precision>,
    /// When a collector received it, if known.
    pub ingested: Option<Timestamp>,
    pub malformed: bool,
    pub oversize: bool,
    /// Bytes in the file; `bytes` may be shorter.
    pub length: u64,
    /// All bytes, or the first 64 KiB of an oversize record.
    pub bytes: Vec<u8>,
    pub(crate) shape: std::sync::Arc<Shape>,
    /// The other lines of the event, for formats that write an event in several lines.
    pub(crate) others: Vec<Vec<u8>>,
}

impl Record {
    /// Invalid UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Path and value of every field, in the order of the record. Paths are `a.b.0.c`. Fields packed into a
    /// value (JSON, XML, `key=value` text) have its path as prefix. A path may occur twice. What other lines of the
    /// same event say comes last.
    pub fn fields(&self) -> Vec<(String, String)> {
        let mut fields = fields::parse(&self.shape, &self.bytes).fields;
        fields::auditd::event::join(&mut fields, &self.others.iter().map(Vec::as_slice).collect::<Vec<_>>());
        fields
    }
}
