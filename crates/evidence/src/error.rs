//! What can go wrong with evidence, in words a person can act on.

use std::io;
use std::path::PathBuf;

/// Why a folder of evidence cannot be loaded. Nothing of the evidence was changed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder does not exist.
    #[error("evidence folder {} does not exist", .0.display())]
    NoFolder(PathBuf),
    /// There is something at the path, but it is no folder.
    #[error("{} is a file, not a folder: give the folder that holds the evidence files", .0.display())]
    NotAFolder(PathBuf),
    /// The folder was read and holds no record at all.
    #[error("evidence folder {} holds no usable log file: {why}", folder.display())]
    NothingUsable {
        /// The folder.
        folder: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The folder itself, or a file in it while being loaded, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file beside the index, or the index's folder, cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The index cannot be written or read.
    #[error("evidence index {}: {source}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A file changed while it was being loaded.
    #[error("{0} changed while it was being loaded: load it again when nothing writes to it")]
    Changed(String),
    /// The loading thread ended without saying why.
    #[error("loading stopped without a reason: a defect of Casebook")]
    Stopped,
}

/// Why a record or a query cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No record starts there.
    #[error("no record at {file}:{line}{hint}")]
    NoRecord {
        /// The file as asked for.
        file: String,
        /// The line as asked for.
        line: u64,
        /// What to do instead; empty or starting with a separator.
        hint: String,
    },
    /// The bytes that were indexed are no longer the bytes in the file.
    #[error("{0} changed since it was loaded: what was indexed is no longer there. Load the evidence again")]
    Changed(String),
    /// The file cannot be read any more.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Relative to the evidence folder.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The index cannot be read.
    #[error("evidence index: {0}")]
    Index(#[from] rusqlite::Error),
    /// The question itself cannot be answered; the text says what to ask instead.
    #[error("{0}")]
    Query(String),
}
