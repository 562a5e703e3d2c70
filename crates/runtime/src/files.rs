//! Small text files that people write: settings, models, prompts.

use std::path::{Path, PathBuf};

const MAX_FILE: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {what} {}: {reason}", file.display())]
pub struct ReadError {
    pub what: &'static str,
    pub file: PathBuf,
    pub reason: String,
}

/// The text of `file`, whose purpose is `what`.
pub fn text(file: &Path, what: &'static str) -> Result<String, ReadError> {
    let unread = |reason: String| ReadError { what, file: file.to_path_buf(), reason };
    let size = std::fs::metadata(file).map_err(|e| unread(e.to_string()))?;
    if !size.is_file() || size.len() > MAX_FILE {
        return Err(unread(format!("expected a file of at most {MAX_FILE} bytes")));
    }
    std::fs::read_to_string(file).map_err(|e| unread(e.to_string()))
}
