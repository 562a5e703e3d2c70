//! What goes wrong with an SQLite file, in words for the person who has to mend it.

use std::path::{Path, PathBuf};

use casebook_runtime::store::StoreError;
use rusqlite::ErrorCode;

/// Why a data folder cannot be opened. [`OpenError::advice`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("data folder {} is in use by another casebook (process {process})", folder.display())]
    Locked {
        folder: PathBuf,
        /// Its process id, as it wrote it.
        process: String,
    },
    #[error("cannot write to data folder {}: {reason}", folder.display())]
    NotWritable { folder: PathBuf, reason: String },
    #[error("no room is left for data folder {}", folder.display())]
    Full { folder: PathBuf },
    #[error("data folder {} has format {found}, this casebook reads up to {known}", folder.display())]
    Newer { folder: PathBuf, found: i64, known: i64 },
    #[error("{} cannot be read: {reason}", file.display())]
    Corrupt { file: PathBuf, reason: String },
}

impl OpenError {
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "wait for it to end, or use another folder with --data",
            Self::NotWritable { .. } => "make it writable, or use another folder with --data",
            Self::Full { .. } => "free some, then try again",
            Self::Newer { .. } => "use a newer casebook",
            Self::Corrupt { .. } => {
                "move it away, with the files -wal and -shm beside it, and restore it from a copy if there is one"
            }
        }
    }

    pub(super) fn of(folder: &Path, file: &Path, error: &rusqlite::Error) -> Self {
        let (folder, file, reason) = (folder.to_path_buf(), file.to_path_buf(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { file, reason },
            Some(ErrorCode::DiskFull) => Self::Full { folder },
            _ => Self::NotWritable { folder, reason },
        }
    }
}

/// What the store answers when SQLite answers `error`.
pub(super) fn fault(doing: &str, file: &str, error: &rusqlite::Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return StoreError::Corrupt { what: file.to_owned(), reason: error.to_string() };
        }
        Some(ErrorCode::DiskFull) => format!("no room is left for {file}: free some, then resume"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!("{file} cannot be written: {error}: make it writable, then resume")
        }
        _ => format!("{file}: {error}"),
    };
    StoreError::Unavailable { doing: doing.to_owned(), reason }
}
