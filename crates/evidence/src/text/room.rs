//! How much may be written when files are unpacked, so that a small file fills neither disk nor memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::LoadError;
use crate::private;

/// Bytes written for all files of a folder.
const FOLDER_MAX: u64 = 64 << 30;
/// Bytes written for one file: this many, and [`RATIO`] times its size. Tests have bombs of a few megabytes.
const FREE: u64 = if cfg!(test) { 256 << 10 } else { 64 << 20 };
const RATIO: u64 = 250;
/// Members of one file, with those of archives inside it.
const MEMBERS_MAX: u64 = if cfg!(test) { 500 } else { 20_000 };
/// Archives inside archives.
pub(super) const DEPTH_MAX: usize = 3;
/// Bytes in the name of a member.
pub(super) const NAME_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Room {
    folder: u64,
    file: u64,
    members: u64,
}

impl Room {
    pub(super) const fn new() -> Self {
        Self { folder: FOLDER_MAX, file: 0, members: 0 }
    }

    /// Begins the next file of the folder.
    pub(super) fn begin(&mut self, size: u64) {
        self.file = size.saturating_mul(RATIO).saturating_add(FREE);
        self.members = MEMBERS_MAX;
    }

    /// False if there were too many members.
    pub(super) fn member(&mut self) -> bool {
        let left = self.members > 0;
        self.members = self.members.saturating_sub(1);
        left
    }

    pub(super) fn full(&self) -> Option<String> {
        if self.file == 0 {
            return Some(format!("unpacked, it is larger than {} KiB plus {RATIO} times its size", FREE >> 10));
        }
        (self.folder == 0).then(|| format!("the unpacked files of the folder are larger than {} GiB", FOLDER_MAX >> 30))
    }

    pub(super) fn too_many() -> String {
        format!("it has more than {MEMBERS_MAX} members")
    }
}

/// A file in the cache folder that takes no more than the room that is left.
#[derive(Debug)]
pub(super) struct Sink<'r> {
    out: BufWriter<File>,
    path: PathBuf,
    room: &'r mut Room,
    pub(super) written: u64,
    /// The disk failed, which ends the load.
    failed: Option<io::Error>,
}

impl<'r> Sink<'r> {
    pub(super) fn create(path: &Path, room: &'r mut Room) -> Result<Self, LoadError> {
        if let Some(folder) = path.parent() {
            private::folder(folder)?;
        }
        let out = private::file(path).map_err(|source| LoadError::Write { path: path.to_path_buf(), source })?;
        let out = BufWriter::with_capacity(256 << 10, out);
        Ok(Self { out, path: path.to_path_buf(), room, written: 0, failed: None })
    }

    /// Why writing stopped before the end.
    pub(super) fn full(&self) -> Option<String> {
        self.room.full()
    }

    /// Errors: The disk cannot be written.
    pub(super) fn finish(mut self) -> Result<u64, LoadError> {
        let flushed = self.out.flush();
        match self.failed.or(flushed.err()) {
            Some(source) => Err(LoadError::Write { path: self.path, source }),
            None => Ok(self.written),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.file.min(self.room.folder);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "no room is left"));
        }
        if let Err(error) = self.out.write_all(bytes.get(..fits).unwrap_or_default()) {
            let kind = error.kind();
            self.failed.get_or_insert(error);
            return Err(kind.into());
        }
        let fits = fits as u64;
        self.room.file -= fits;
        self.room.folder -= fits;
        self.written += fits;
        Ok(usize::try_from(fits).unwrap_or(usize::MAX))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
