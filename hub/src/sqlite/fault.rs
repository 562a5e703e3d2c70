//! Errors of an SQLite file, with advice.

use std::path::{Path, PathBuf};

use casebook_runtime::files::disk_is_full;
use casebook_runtime::store::StoreError;
use rusqlite::ErrorCode;

/// Why a data folder cannot be opened. [`OpenError::advice`] gives the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("data folder {} is in use by another casebook (process {process})", folder.display())]
    Locked {
        folder: PathBuf,
        /// The process id in the lock file.
        process: String,
    },
    #[error("cannot write to data folder {}: {reason}", folder.display())]
    NotWritable { folder: PathBuf, reason: String },
    #[error("the disk of data folder {} is full", folder.display())]
    Full { folder: PathBuf },
    #[error("data folder {} has format {found}, this casebook reads up to {known}", folder.display())]
    Newer { folder: PathBuf, found: i64, known: i64 },
    /// A reader cannot convert it.
    #[error("data folder {} has the older format {found}, this casebook reads {known}", folder.display())]
    Older { folder: PathBuf, found: i64, known: i64 },
    /// A reader creates no database.
    #[error("data folder {} has no investigations yet", folder.display())]
    Empty { folder: PathBuf },
    /// The database needs files beside it that this user may not create.
    #[error("cannot read data folder {}, which you may not write to: {reason}", folder.display())]
    NotReadable { folder: PathBuf, reason: String },
    #[error("{} cannot be read: {reason}", file.display())]
    Corrupt { file: PathBuf, reason: String },
}

impl OpenError {
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "wait for it to end, or use another folder with --data",
            Self::NotWritable { .. } => "make it writable, or use another folder with --data",
            Self::Full { .. } => "free some space, then try again",
            Self::Newer { .. } => "use a newer casebook",
            Self::Older { .. } => "run `casebook list` once as a user who may write to it: that converts it",
            Self::Empty { .. } => "`casebook investigate` starts the first one",
            Self::NotReadable { .. } => {
                "read it while a casebook uses it, ask its owner for a report (`casebook export ID`), or copy the folder"
            }
            Self::Corrupt { .. } => {
                "move it and its -wal and -shm files away, and restore it from a backup if you have one"
            }
        }
    }

    pub(super) fn of_reader(folder: &Path, file: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::NotReadable { folder: folder.to_path_buf(), reason: error.to_string() }
            }
            _ => Self::of(folder, file, error),
        }
    }

    pub(super) fn of(folder: &Path, file: &Path, error: &rusqlite::Error) -> Self {
        let (folder, file, reason) = (folder.to_path_buf(), file.to_path_buf(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { file, reason },
            Some(code) if is_full(code, &file) => Self::Full { folder },
            _ => Self::NotWritable { folder, reason },
        }
    }
}

/// SQLite calls it an I/O error if its shared memory finds no room.
fn is_full(code: ErrorCode, file: &Path) -> bool {
    code == ErrorCode::DiskFull || (code == ErrorCode::SystemIoFailure && disk_is_full(file))
}

pub(super) fn fault(doing: &str, file: &str, error: &rusqlite::Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return StoreError::Corrupt { what: file.to_owned(), reason: error.to_string() };
        }
        Some(code) if is_full(code, Path::new(file)) => {
            format!("the disk of {file} is full; free some space, then resume")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!("{file} is not writable: {error}; make it writable, then resume")
        }
        _ => format!("{file}: {error}"),
    };
    StoreError::Unavailable { doing: doing.to_owned(), reason }
}
