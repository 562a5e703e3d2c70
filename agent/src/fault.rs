//! What is wrong with a configuration file: file, line, and what to write instead.

use std::path::PathBuf;

/// A fault of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}", file.display())]
pub struct ConfigFault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead. Never a secret's value.
    pub what: String,
}
