//! What a report states about the log and the evidence that it was made from, so that a later change is found.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The list of evidence files of one Expert holds at most this many.
pub const MAX_FILES: usize = 1_000;

/// The last event of a log. Its hash covers every event before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub seq: u64,
    pub hash: String,
}

/// The text of a cited record as the tool returned it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordHash {
    /// The file within the evidence.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// Which of the records that start on this line, from 1.
    pub nth: u32,
    /// The length of the hashed text. It is UTF-8; bytes that are not became U+FFFD.
    pub bytes: u64,
    /// The record is longer than the hashed text.
    pub cut: bool,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileHash {
    pub file: String,
    /// The hash covers this many bytes from the start. The file may grow after it was read.
    pub bytes: u64,
    pub sha256: String,
}

/// The evidence as it was read: the files with their sizes and hashes, at one time. Files may grow afterwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Snapshot {
    /// SHA-256 over the path, size and hash of every file.
    pub id: String,
    pub read: Timestamp,
}

/// The most notes of one Expert.
pub const MAX_NOTES: usize = 100;

/// The evidence files that an Expert read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub listed: Vec<FileHash>,
    /// Further files, beyond [`MAX_FILES`].
    pub more: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// What is known of the clocks, and of records that are missing or malformed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SourceNote>,
}

/// What a reader of a source must know, such as that its year is inferred.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceNote {
    /// The id of the source, or the name of a file that is not a source.
    pub source: String,
    pub note: String,
    /// Records were not searched, so a reader must know even if no finding rests on the source.
    // Messages between processes do not name their fields, so none may be left out.
    #[serde(default)]
    pub blind: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub head: Head,
    /// The cited records that have a text in the result of a tool.
    pub records: Vec<RecordHash>,
    pub files: Vec<FileHash>,
    /// Evidence files without a hash, because there are too many.
    pub more_files: u64,
    /// What the files were when they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
}
