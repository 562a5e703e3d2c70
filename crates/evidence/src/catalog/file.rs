//! The files of the evidence: parts of them, and whether they are unchanged.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use casebook_protocol::hash::sha256_hex;

use crate::index::{Entry, Manifest, Meta};
use crate::load::cache_folder;
use crate::split::OVERSIZE_KEPT;
use crate::text::Hashing;
use crate::walk::Found;

pub(crate) fn kept(entry: &Entry) -> u64 {
    let length = u64::try_from(entry.length).unwrap_or(0);
    if entry.oversize { length.min(OVERSIZE_KEPT as u64) } else { length }
}

pub(crate) fn read_part(file: &mut File, entry: &Entry, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let whole = u64::try_from(entry.length).unwrap_or(0);
    let start = u64::try_from(entry.offset).unwrap_or(0);
    let offset = offset.min(whole);
    let length = length.min(whole - offset);
    file.seek(SeekFrom::Start(start + offset))?;
    let mut bytes = Vec::new();
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
