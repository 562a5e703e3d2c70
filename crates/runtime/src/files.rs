//! Small text files that people write (settings, models, prompts), and files that only their owner may read.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
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

const OF_OWNER: u32 = 0o700;

/// Creates a folder that only its owner may enter, with the folders above it. An existing one is unchanged.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OF_OWNER).create(folder)
}

/// Opens a file to read and write, creates it if it is missing, and takes it away from all but its owner.
pub fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    tighten(path)?;
    Ok(file)
}

/// Creates an empty file for its owner alone, or takes an existing one away from all others. An existing file is not
/// opened: closing it would release the locks that SQLite holds on it in this process.
pub fn create_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => tighten(path),
        created => created.map(drop),
    }
}

/// Takes a file or folder away from all but its owner.
pub fn tighten(path: &Path) -> io::Result<()> {
    match loose(path)? {
        Some(mode) => std::fs::set_permissions(path, Permissions::from_mode(mode & OF_OWNER)),
        None => Ok(()),
    }
}

/// The permissions of `path` if others than its owner have some.
pub fn loose(path: &Path) -> io::Result<Option<u32>> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    Ok((mode & !OF_OWNER != 0).then_some(mode))
}

/// At most `most`, and at most a quarter of the files that this process may have open: the rest is for its work.
pub fn share_of_open_files(most: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit / 4).ok()).map_or(most, |share| most.min(share.max(1)))
}

/// Less free space than this is a full disk: SQLite needs 32 KiB at once.
const ROOM: u64 = 128 * 1024;

/// True if the disk of `path` has no room.
pub fn disk_is_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}
