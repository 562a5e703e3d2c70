//! The files of the evidence: parts of them, and whether they are unchanged.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant, UNIX_EPOCH};

use casebook_protocol::hash::sha256_hex;

use super::{Catalog, Inner};
use crate::ReadError;
use crate::index::cache_folder;
use crate::index::{Entry, Manifest, Meta};
use crate::split::OVERSIZE_KEPT;
use crate::text::Hashing;
use crate::walk::{Found, inode};

/// Room that is reserved for what is read.
const READ_AT_ONCE: usize = 1 << 20;

pub(crate) fn kept(entry: &Entry) -> u64 {
    let length = u64::try_from(entry.length).unwrap_or(0);
    if entry.oversize { length.min(OVERSIZE_KEPT as u64) } else { length }
}

pub(crate) fn read_part(file: &mut File, entry: &Entry, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let whole = u64::try_from(entry.length).unwrap_or(0);
    let start = u64::try_from(entry.offset).unwrap_or(0);
    let offset = offset.min(whole);
    read_at(file, start + offset, length.min(whole - offset))
}

pub(crate) fn read_at(file: &mut File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(READ_AT_ONCE));
    let read = file.take(length).read_to_end(&mut bytes)?;
    if (read as u64) < length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than when it was loaded"));
    }
    Ok(bytes)
}

pub(crate) fn changed(meta: &fs::Metadata) -> i64 {
    let since = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    since.and_then(|d| i64::try_from(d.as_nanos()).ok()).unwrap_or(0)
}

pub(crate) fn hash_of(path: &Path, size: u64) -> io::Result<String> {
    Hashing::new(File::open(path)?.take(size)).finish()
}

pub(super) fn fingerprint(manifest: &[Manifest]) -> String {
    let lines: Vec<String> = manifest.iter().map(|m| format!("{}\t{}\t{}\n", m.file, m.size, m.sha256)).collect();
    sha256_hex(lines.concat().as_bytes())
}

pub(super) fn unchanged(meta: &Meta, found: &[Found], index: &Path) -> bool {
    let cache = cache_folder(index);
    let cached = meta.sources.iter().all(|s| {
        let size = |name: &String| fs::metadata(cache.join(name)).map(|m| m.len()).ok();
        s.cache.as_ref().is_none_or(|name| size(name) == Some(s.source.bytes))
    });
    cached
        && meta.manifest.len() == found.len()
        && meta.manifest.iter().zip(found).all(|(known, now)| {
            known.file == now.file
                && known.size == now.size
                && (known.mtime == now.mtime
                    || (!known.sha256.is_empty()
                        && hash_of(&now.path, now.size).is_ok_and(|hash| hash == known.sha256)))
        })
}

impl Catalog {
    /// Where the indexed bytes of the file are. A file may grow, and a rotation may rename it.
    pub(crate) fn place(&self, evidence: &Manifest) -> Result<PathBuf, ReadError> {
        let path = self.root.join(&evidence.file);
        let meta = fs::metadata(&path);
        if meta.as_ref().is_ok_and(|meta| (meta.len(), changed(meta)) == (evidence.size, evidence.mtime)) {
            return Ok(path);
        }
        let known = self.checked.lock().unwrap_or_else(PoisonError::into_inner).get(&evidence.file).cloned();
        if let Some(place) = known.and_then(|known| known.still(evidence)) {
            return Ok(place);
        }
        let found = Checked::find(&path, evidence);
        match (found, meta) {
            (Some(found), _) => {
                let place = found.path.clone();
                self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(evidence.file.clone(), found);
                Ok(place)
            }
            (None, Err(source)) => Err(ReadError::Read { file: evidence.file.clone(), source }),
            (None, Ok(_)) => Err(ReadError::Changed(evidence.file.clone())),
        }
    }

    pub(super) fn same_bytes(&self, inner: &Inner) -> Result<(), ReadError> {
        let file = &inner.evidence.file;
        let hash = hash_of(&self.root.join(file), inner.evidence.size)
            .map_err(|source| ReadError::Read { file: file.clone(), source })?;
        if hash == inner.evidence.sha256 { Ok(()) } else { Err(ReadError::Changed(file.clone())) }
    }
}

/// How long a file that grew is believed by its edges, before all of it is hashed again.
const BELIEVED: Duration = Duration::from_secs(60);
/// Bytes at each edge of the indexed part.
const EDGE: u64 = 4 << 10;

/// A file that is not as it was when it was indexed, and still holds the indexed bytes at its start.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) path: PathBuf,
    size: u64,
    mtime: i64,
    edges: String,
    at: Instant,
}

impl Checked {
    /// The file at `path`, or the one that it was renamed to in its folder. None if the indexed bytes are in neither.
    pub(super) fn find(path: &Path, evidence: &Manifest) -> Option<Self> {
        let own = Self::of(path, evidence);
        own.or_else(|| {
            let beside = fs::read_dir(path.parent()?).ok()?.flatten();
            let same = |meta: &fs::Metadata| meta.is_file() && inode(meta) == evidence.inode;
            let mut renamed = beside.filter(|entry| entry.metadata().is_ok_and(|meta| same(&meta)));
            Self::of(&renamed.next()?.path(), evidence)
        })
    }

    fn of(path: &Path, evidence: &Manifest) -> Option<Self> {
        let meta = fs::metadata(path).ok().filter(|meta| meta.len() >= evidence.size)?;
        let same = hash_of(path, evidence.size).is_ok_and(|hash| hash == evidence.sha256);
        let edges = edges(path, evidence.size).ok().filter(|_| same)?;
        Some(Self { path: path.to_path_buf(), size: meta.len(), mtime: changed(&meta), edges, at: Instant::now() })
    }

    /// The place of the file if nothing speaks against its bytes.
    pub(super) fn still(self, evidence: &Manifest) -> Option<PathBuf> {
        let meta = fs::metadata(&self.path).ok()?;
        let same = (meta.len(), changed(&meta)) == (self.size, self.mtime);
        let grew = || {
            meta.len() >= self.size
                && self.at.elapsed() < BELIEVED
                && edges(&self.path, evidence.size).is_ok_and(|edges| edges == self.edges)
        };
        (same || grew()).then_some(self.path)
    }
}

/// The hash of the first and the last bytes.
fn edges(path: &Path, size: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(EDGE.min(size)).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(size.saturating_sub(EDGE)))?;
    file.take(EDGE.min(size)).read_to_end(&mut bytes)?;
    Ok(sha256_hex(&bytes))
}
