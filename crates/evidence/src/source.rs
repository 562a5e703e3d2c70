use casebook_protocol::{ActKind, Domain, HostCoverage, TimeBasis, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Ndjson,
    /// Elements of a JSON array, or of an array inside one JSON object.
    JsonArray,
    /// JSON objects in sequence, each on several lines.
    JsonObjects,
    /// Values separated by commas, semicolons or bars, with a header.
    Csv,
    Tsv,
    /// Tab separated, with a `#fields` header.
    ZeekTsv,
    /// With a `#Fields` header, such as IIS.
    W3c,
    /// RFC 3164: `Oct 10 13:55:36 host program[pid]: text`, without a year.
    Syslog,
    /// RFC 5424, or RFC 3164 with an ISO time.
    SyslogIso,
    /// `type=EXECVE msg=audit(…): …`
    Auditd,
    AccessLog,
    Cef,
    KeyValue,
    /// Windows events, one `<Event>` for each record.
    XmlEvents,
    /// A Windows event log. Its line numbers are record ids.
    Evtx,
    /// Rows of a table, as JSON. Its line numbers are numbers of rows.
    Parquet,
    /// Configuration Manager and Intune: `<![LOG[text]LOG]!><time="…" date="…" component="…">`.
    CmTrace,
    /// The audit log of ModSecurity: one record for each transaction, in parts between lines such as
    /// `--d67af501-A--`.
    ModSecurity,
    /// By a pattern: built in, or of the user's `formats.toml`.
    Pattern,
    Plain,
}

impl Format {
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
            Self::Evtx => "Windows event log",
            Self::Parquet => "Parquet",
            Self::CmTrace => "Configuration Manager log",
            Self::ModSecurity => "ModSecurity audit log",
            Self::Pattern => "lines by a pattern",
            Self::Plain => "plain lines",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeRole {
    /// When the recorded activity happened.
    Event,
    /// When a collector received or stored the record.
    Ingestion,
    /// A period that the record summarises.
    Aggregation,
    /// Other times, such as the validity of a certificate, the age of a file or the start of a session.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeField {
    pub name: String,
    pub role: TimeRole,
    /// Why it has this role, and other remarks.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCount {
    /// Cut at 200 bytes.
    pub value: String,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProfile {
    /// Positions in arrays are written `*`.
    pub name: String,
    /// `number`, `boolean`, `time`, `text` or `mixed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of records in which the field is not empty.
    pub filled: u64,
    /// Number of different values, up to a limit.
    pub distinct: u64,
    /// False if there are more than `distinct`.
    pub distinct_is_exact: bool,
    /// Most frequent first.
    pub top: Vec<ValueCount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the evidence folder, with `/`.
    pub file: String,
    /// From 1, in the decompressed file.
    pub line: u64,
}

/// One file of the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its relative path without extensions.
    pub id: String,
    /// Relative to the evidence folder, with `/`.
    pub file: String,
    pub format: Format,
    pub domain: Domain,
    pub domain_reason: String,
    /// What wrote it, such as `sysmon@HOST`; a guess unless `confirmed`.
    pub sensor: String,
    /// True if an ordinary process on the described host wrote the records, so that an attacker on the host can
    /// write them too. False for an observer: a kernel sensor, a network sensor or a provider. A guess unless
    /// `confirmed`.
    pub written_on_subject_host: bool,
    /// A person has confirmed in the configuration what wrote the source.
    #[serde(default)]
    pub confirmed: bool,
    /// The kinds of acts that the sensor records in full, by configuration.
    #[serde(default)]
    pub acts: Vec<ActKind>,
    /// The hosts that its records come from, most frequent first, at most ten.
    pub hosts: Vec<String>,
    /// What it has of each host, the host with the most records first.
    #[serde(default)]
    pub coverage: Vec<HostCoverage>,
    pub records: u64,
    /// Records that do not follow the format. They can be searched as text.
    pub malformed: u64,
    /// Records too long to be indexed; only their first 64 KiB are.
    pub oversize: u64,
    pub untimed: u64,
    /// All lines of the decompressed file: records, blank lines and lines of the format.
    pub lines: u64,
    pub blank_lines: u64,
    /// Lines of the format without a record: headers, brackets.
    pub format_lines: u64,
    /// Decompressed.
    pub bytes: u64,
    pub first_time: Option<Timestamp>,
    pub last_time: Option<Timestamp>,
    pub time_field: Option<String>,
    pub time_basis: TimeBasis,
    /// What a reader must know: clock offsets, inferred years, damage.
    pub notes: Vec<String>,
    pub time_fields: Vec<TimeField>,
    pub fields: Vec<FieldProfile>,
    pub more_fields: bool,
    pub malformed_examples: Vec<Place>,
}

impl Source {
    /// What a reader must know, with the records that are not whole.
    pub fn told(&self) -> Vec<String> {
        let of = |many: u64, what: &str| (many > 0).then(|| format!("{many} of {} records {what}", self.records));
        let counted = [
            of(self.malformed, "are malformed"),
            of(self.untimed, "have no time").filter(|_| self.records > self.untimed),
            of(self.oversize, "are too long: only their beginning is searched"),
        ];
        self.notes.iter().cloned().chain(counted.into_iter().flatten()).collect()
    }

    /// True unless a person has confirmed that no process on the described host could have written the records.
    pub fn on_subject_host(&self) -> bool {
        self.written_on_subject_host || !self.confirmed
    }
}

/// A file, or a part of it, without records that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Relative to the evidence folder.
    pub file: String,
    pub reason: String,
    /// Other parts of the file are loaded.
    #[serde(default)]
    pub in_part: bool,
}

impl Skipped {
    pub(crate) fn new(file: &str, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), reason: reason.into(), in_part: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// `decompressing`, `looking at`, `loading` or `finishing`.
    pub step: &'static str,
    /// Relative to the evidence folder; empty between files.
    pub file: &'a str,
    /// Bytes loaded, decompressed.
    pub bytes_done: u64,
    /// Bytes to load, decompressed as far as known.
    pub bytes_total: u64,
}
