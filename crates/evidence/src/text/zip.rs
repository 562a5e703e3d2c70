//! Zip archives, read by their directory without holding it in memory.

use std::fs::File;
use std::io::{self, Read};

use flate2::read::DeflateDecoder;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rawzip::{CompressionMethod, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ZipArchive, ZipFileHeaderRecord};

use super::archive::{Member, Take, What};
use super::decode::unzstd;
use crate::LoadError;

/// The kinds of files in the mode of Unix.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

pub(super) fn members(file: File, take: &mut Take<'_>) -> Result<Option<String>, LoadError> {
    let mut buffer = vec![0u8; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let archive = match ZipArchive::from_file(file, &mut buffer) {
        Ok(archive) => archive,
        Err(error) => return Ok(Some(format!("zip archive whose directory is missing or damaged: {error}"))),
    };
    let mut read = 0u64;
    let mut entries = archive.entries(&mut buffer);
    loop {
        let entry = match entries.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(error) => {
                return Ok(Some(format!(
                    "the directory of the zip archive is damaged after {read} members ({error}): what comes before is loaded"
                )));
            }
        };
        read += 1;
        let path = entry.file_path();
        // Some programs for Windows write `\` between folders.
        let name = String::from_utf8_lossy(path.as_bytes()).replace('\\', "/");
        let changed = changed(&entry);
        let mut give = |what: What<'_>| take(Member { name: name.clone(), what, changed });
        let on = if let Some(why) = refused(&entry) {
            give(What::Refused(why))?
        } else if entry.is_dir() || name.ends_with('/') {
            give(What::Folder)?
        } else {
            match archive.get_entry(entry.wayfinder()) {
                Err(error) => give(What::Refused(format!("its data cannot be found: {error}")))?,
                Ok(found) => {
                    let raw = found.reader();
                    let inflated: Box<dyn Read> = match entry.compression_method() {
                        CompressionMethod::STORE => Box::new(raw),
                        CompressionMethod::ZSTD => match unzstd(raw) {
                            Ok(stream) => Box::new(stream),
                            Err(error) => {
                                if !give(What::Refused(format!("its zstd stream cannot be read: {error}")))? {
                                    return Ok(None);
                                }
                                continue;
                            }
                        },
                        _ => Box::new(DeflateDecoder::new(raw)),
                    };
                    give(What::File(&mut Checked::new(inflated, &entry)))?
                }
            }
        };
        if !on {
            return Ok(None);
        }
    }
    let stated = archive.entries_hint();
    Ok((stated != read).then(|| format!("the zip archive states {stated} members, but lists {read}")))
}

/// Compares size and checksum at the end, after all bytes were given.
struct Checked<'r> {
    inner: Box<dyn Read + 'r>,
    crc: flate2::Crc,
    stated: (u64, u32),
    read: u64,
}

impl<'r> Checked<'r> {
    fn new(inner: Box<dyn Read + 'r>, entry: &ZipFileHeaderRecord<'_>) -> Self {
        let stated = (entry.uncompressed_size_hint(), entry.crc32());
        Self { inner, crc: flate2::Crc::new(), stated, read: 0 }
    }
}

impl Read for Checked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.crc.update(buf.get(..read).unwrap_or_default());
        self.read += read as u64;
        if read == 0 && !buf.is_empty() && (self.read, self.crc.sum()) != self.stated {
            let what = if self.read == self.stated.0 { "its checksum is wrong" } else { "its size is wrong" };
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(read)
    }
}

fn refused(entry: &ZipFileHeaderRecord<'_>) -> Option<String> {
    let method = entry.compression_method();
    let flags = entry.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() || method == CompressionMethod::AES {
        return Some("encrypted: unpack it with its password, and add the files".into());
    }
    let kind = entry.mode().value() & KIND;
    if entry.mode().is_symlink() {
        return Some("symbolic link: not followed".into());
    }
    if !entry.is_dir() && kind != 0 && kind != REGULAR {
        return Some("not a regular file".into());
    }
    let known = [CompressionMethod::STORE, CompressionMethod::DEFLATE, CompressionMethod::ZSTD];
    (!known.contains(&method)).then(|| format!("compressed by method {method}, which is not read: unpack it first"))
}

/// The clock of the machine that made the archive, read as UTC: it only serves to guess a year.
fn changed(entry: &ZipFileHeaderRecord<'_>) -> Option<i64> {
    let at = entry.last_modified();
    let small = |n: u8| i8::try_from(n).ok();
    let year = i16::try_from(at.year()).ok()?;
    let day = (small(at.month())?, small(at.day())?);
    let clock = (small(at.hour())?, small(at.minute())?, small(at.second())?);
    let at = DateTime::new(year, day.0, day.1, clock.0, clock.1, clock.2, 0).ok()?;
    let at = TimeZone::UTC.to_ambiguous_timestamp(at).compatible().ok()?;
    i64::try_from(at.as_nanosecond()).ok()
}
