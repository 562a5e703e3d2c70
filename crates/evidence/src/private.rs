//! Files that only their owner may read: they hold what the evidence holds.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::LoadError;

pub(crate) fn folder(path: &Path) -> Result<(), LoadError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| LoadError::Write { path: path.to_path_buf(), source })
}

/// An empty file.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
