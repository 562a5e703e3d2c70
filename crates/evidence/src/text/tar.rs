//! Tar archives.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use ::tar::{Archive, Entry, EntryType};

use super::archive::{Member, Take, What};
use crate::LoadError;

/// Bytes of headers before the data of one member. Long names are among them, and are held in memory.
const HEADERS_MAX: u64 = 1 << 20;

/// Reads no more than is left.
struct Metered {
    inner: BufReader<File>,
    left: Rc<Cell<u64>>,
}

impl Read for Metered {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        if most == 0 && !buf.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "its headers are too long"));
        }
        let read = self.inner.read(buf.get_mut(..most).unwrap_or_default())?;
        self.left.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

pub(super) fn members(file: File, take: &mut Take<'_>) -> Result<Option<String>, LoadError> {
    let left = Rc::new(Cell::new(HEADERS_MAX));
    let mut archive = Archive::new(Metered { inner: BufReader::new(file), left: Rc::clone(&left) });
    let mut read = 0u64;
    let damaged = |read: u64, error: &io::Error| {
        Some(format!("the tar archive is damaged after {read} members ({error}): what comes before is loaded"))
    };
    let mut entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => return Ok(damaged(read, &error)),
    };
    loop {
        left.set(HEADERS_MAX);
        let mut entry = match entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => return Ok(damaged(read, &error)),
            None => break,
        };
        left.set(u64::MAX);
        read += 1;
        if !one(&mut entry, take)? {
            return Ok(None);
        }
        if let Err(error) = skip(&mut entry) {
            return Ok(damaged(read, &error));
        }
    }
    left.set(u64::MAX);
    let rest = rest(&mut archive.into_inner());
    Ok((rest > 0).then(|| format!("the last {rest} bytes, after the end of the tar archive, are not loaded")))
}

fn one(entry: &mut Entry<'_, Metered>, take: &mut Take<'_>) -> Result<bool, LoadError> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let name = name.strip_prefix("./").filter(|rest| !rest.is_empty()).map_or(name.clone(), str::to_owned);
    let changed = entry.header().mtime().ok().and_then(|s| i64::try_from(s).ok()?.checked_mul(1_000_000_000));
    let what = match entry.header().entry_type() {
        EntryType::Directory => What::Folder,
        EntryType::XGlobalHeader => return Ok(true),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => What::File(entry),
        EntryType::Symlink => What::Refused("symbolic link: not followed".into()),
        EntryType::Link => What::Refused("hard link: not followed".into()),
        EntryType::Char | EntryType::Block | EntryType::Fifo => What::Refused("not a regular file".into()),
        other => What::Refused(format!("a member of unknown type {:?}", char::from(other.as_byte()))),
    };
    take(Member { name, what, changed })
}

/// Reads what was refused, so that the next headers are at the limit of their own.
fn skip(entry: &mut Entry<'_, Metered>) -> io::Result<()> {
    match entry.header().entry_type() {
        // Its holes are longer than the archive, and it was read.
        EntryType::GNUSparse => Ok(()),
        _ => io::copy(entry, &mut io::sink()).map(drop),
    }
}

/// Bytes from the first that is not zero to the end.
fn rest(reader: &mut dyn Read) -> u64 {
    let (mut chunk, mut rest) = (vec![0u8; 64 << 10], 0u64);
    while let Ok(read) = reader.read(&mut chunk) {
        let bytes = chunk.get(..read).unwrap_or_default();
        if read == 0 {
            break;
        }
        let zeros = if rest == 0 { bytes.iter().take_while(|b| **b == 0).count() } else { 0 };
        rest += (read - zeros) as u64;
    }
    rest
}
