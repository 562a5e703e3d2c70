//! What is known of one source of evidence.

use casebook_protocol::{Domain, TimeBasis, Timestamp};
use serde::{Deserialize, Serialize};

/// How the records of a file are written, found by looking at its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One JSON object a line.
    Ndjson,
    /// Records are the elements of a JSON array, or of an array inside one JSON object.
    JsonArray,
    /// JSON objects one after another, each over several lines.
    JsonObjects,
    /// Comma, semicolon or bar separated values with a header line.
    Csv,
    /// Tab separated values with a header line.
    Tsv,
    /// Zeek's own tab separated form with its `#fields` header.
    ZeekTsv,
    /// W3C extended log with its `#Fields` header (IIS).
    W3c,
    /// RFC 3164 lines: `Oct 10 13:55:36 host program[pid]: text`, without a year.
    Syslog,
    /// RFC 5424 lines, or the same layout as RFC 3164 with an ISO time.
    SyslogIso,
    /// The kernel's audit log: `type=EXECVE msg=audit(…): …`.
    Auditd,
    /// Common or combined web access log.
    AccessLog,
    /// CEF or LEEF lines.
    Cef,
    /// Lines of `key=value` pairs.
    KeyValue,
    /// Windows event log exported as XML, one `<Event>` a record.
    XmlEvents,
    /// Lines of Configuration Manager and Intune: `<![LOG[text]LOG]!><time="…" date="…" component="…">`.
    CmTrace,
    /// ModSecurity's audit log: a transaction a record, in parts between lines such as `--d67af501-A--`.
    ModSecurity,
    /// Any other text, a record a line.
    Plain,
}

impl Format {
    /// The format in words for a reader.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ndjson => "JSON lines",
            Self::JsonArray => "JSON array",
            Self::JsonObjects => "JSON objects",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::ZeekTsv => "Zeek TSV",
            Self::W3c => "W3C extended log",
            Self::Syslog => "syslog without year",
            Self::SyslogIso => "syslog with ISO time",
            Self::Auditd => "auditd",
            Self::AccessLog => "web access log",
            Self::Cef => "CEF or LEEF",
            Self::KeyValue => "key=value lines",
            Self::XmlEvents => "Windows events as XML",
            Self::CmTrace => "Configuration Manager log",
            Self::ModSecurity => "ModSecurity audit log",
            Self::Plain => "plain lines",
        }
    }
}

/// What a time field of a source tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeRole {
    /// When the recorded thing happened.
    Event,
    /// When a collector received or stored the record.
    Ingestion,
    /// A period that the record sums up.
    Aggregation,
    /// Something else: validity of a certificate, age of a file, begin of a session.
    Other,
}

/// One field of a source that holds times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeField {
    /// Path of the field.
    pub name: String,
    /// What its times tell.
    pub role: TimeRole,
    /// Why it was given this role, and what else was noticed.
    pub note: String,
}

/// A value with the number of records that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCount {
    /// The value, cut at 200 bytes.
    pub value: String,
    /// Records.
    pub count: u64,
}

/// What one field of a source holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProfile {
    /// Path of the field; positions in arrays are folded to `*`.
    pub name: String,
    /// `number`, `boolean`, `time`, `text` or `mixed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Records in which the field is present and not empty.
    pub filled: u64,
    /// Different values seen, up to a cap.
    pub distinct: u64,
    /// `distinct` is the whole number; else there are more.
    pub distinct_is_exact: bool,
    /// The most frequent values, most frequent first.
    pub top: Vec<ValueCount>,
}

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the evidence folder, with `/`.
    pub file: String,
    /// From 1, in the decompressed file.
    pub line: u64,
}

/// One source: one file of the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its relative path without extensions.
    pub id: String,
    /// Relative to the evidence folder, with `/`.
    pub file: String,
    /// How its records are written.
    pub format: Format,
    /// Which Expert it belongs to.
    pub domain: Domain,
    /// Why.
    pub domain_reason: String,
    /// What wrote it, such as `sysmon@HOST`: two sources are independent only where this differs.
    pub sensor: String,
    /// An ordinary process on the host that the records describe wrote them, so whoever controls that
    /// host can write them too. False for an observer: kernel sensor, network sensor, provider.
    pub written_on_subject_host: bool,
    /// The hosts that its records name as their origin, most frequent first, at most ten.
    pub hosts: Vec<String>,
    /// Records.
    pub records: u64,
    /// Records that do not follow the format; they are kept and can be searched as text.
    pub malformed: u64,
    /// Records too long to be indexed whole; their first 64 KiB are.
    pub oversize: u64,
    /// Records without a time.
    pub untimed: u64,
    /// Lines of the (decompressed) file: those of records, blank ones, and those of the format itself.
    pub lines: u64,
    /// Lines without any text.
    pub blank_lines: u64,
    /// Lines that belong to the format and to no record: headers, brackets around records.
    pub format_lines: u64,
    /// Size in bytes, decompressed.
    pub bytes: u64,
    /// Earliest time of a record.
    pub first_time: Option<Timestamp>,
    /// Latest time of a record.
    pub last_time: Option<Timestamp>,
    /// The field that most times were read from.
    pub time_field: Option<String>,
    /// What most times rest on.
    pub time_basis: TimeBasis,
    /// What a reader of this source has to know: clock offsets, inferred years, damage.
    pub notes: Vec<String>,
    /// Fields with times and what each tells.
    pub time_fields: Vec<TimeField>,
    /// What its fields hold, in order of name.
    pub fields: Vec<FieldProfile>,
    /// There are more fields than are listed.
    pub more_fields: bool,
    /// The first few malformed records.
    pub malformed_examples: Vec<Place>,
}

/// A file of the evidence folder that holds no records for us, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Relative to the evidence folder.
    pub file: String,
    /// Why, in words.
    pub reason: String,
}

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done: `decompressing`, `looking at`, `loading`, `finishing`.
    pub step: &'static str,
    /// The file at hand, relative to the evidence folder; empty between files.
    pub file: &'a str,
    /// Bytes loaded so far, decompressed.
    pub bytes_done: u64,
    /// Bytes to load, decompressed as far as is known yet.
    pub bytes_total: u64,
}
