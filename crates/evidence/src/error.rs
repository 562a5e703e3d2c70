use std::io;
use std::path::{Path, PathBuf};

use crate::Skipped;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("evidence folder {} does not exist", .0.display())]
    NoFolder(PathBuf),
    #[error("{} is a file, not a folder: give the folder that holds the evidence files", .0.display())]
    NotAFolder(PathBuf),
    #[error("evidence folder {} holds no usable log file: {why}", folder.display())]
    NothingUsable { folder: PathBuf, why: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("evidence index {}: {source}", path.display())]
    Index { path: PathBuf, source: rusqlite::Error },
    #[error("{0} changed while it was being loaded: load it again when nothing writes to it")]
    Changed(String),
    /// An attacker could have written the configuration.
    #[error("{} is inside the evidence folder {}; move it out of the evidence", file.display(), folder.display())]
    Inside { file: PathBuf, folder: PathBuf },
    #[error("loading stopped without a reason: this is a bug in Casebook")]
    Stopped,
}

impl LoadError {
    /// No file of `root` has records.
    pub(crate) fn nothing(root: &Path, skipped: &[Skipped]) -> Self {
        let why = match skipped {
            [] => "it is empty".to_owned(),
            _ => {
                let listed: Vec<String> =
                    skipped.iter().take(5).map(|s| format!("{} ({})", s.file, s.reason)).collect();
                let more = if skipped.len() > 5 { ", …" } else { "" };
                format!("{}{more}", listed.join(", "))
            }
        };
        Self::NothingUsable { folder: root.to_path_buf(), why }
    }

    /// The disk of the index is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Write { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            Self::Index { source, .. } => source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            _ => false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("no record at {file}:{line}{hint}")]
    NoRecord {
        file: String,
        line: u64,
        /// Advice; empty or starting with a separator.
        hint: String,
    },
    /// The indexed bytes differ from those in the file.
    #[error("{0} changed since it was loaded, so the index does not match it; load the evidence again")]
    Changed(String),
    #[error("cannot read {file}: {source}")]
    Read {
        /// Relative to the evidence folder.
        file: String,
        source: io::Error,
    },
    #[error("evidence index: {0}")]
    Index(#[from] rusqlite::Error),
    #[error("{0}")]
    Query(String),
}
