//! Provides the text of an evidence file: the file itself, or a cache file with the decompressed or decoded
//! text.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::LoadError;
use super::private;
use super::walk::Found;
use casebook_protocol::hash::hex;

/// In bytes, so that a small compressed file cannot fill the disk.
const CACHE_MAX: u64 = 64 << 30;

#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// Of the evidence file, if it was already read to the end.
    pub(crate) sha256: Option<String>,
    pub(crate) cached: bool,
    pub(crate) notes: Vec<String>,
}

pub(crate) enum Look {
    Text(Text),
    /// Not a text, with the reason.
    Skip(String),
}

/// Writes the text to `cache` if the file must be decoded.
pub(crate) fn look(found: &Found, cache: &Path) -> Result<Look, LoadError> {
    if found.size == 0 {
        return Ok(Look::Skip("empty".into()));
    }
    let head = match head(&found.path, 16 << 10) {
        Ok(head) => head,
        Err(e) => return Ok(Look::Skip(format!("cannot be read: {e}"))),
    };
    let (mut body, head) = match head.as_slice() {
        [0x1f, 0x8b, ..] => {
            let body = gunzip(found, cache)?;
            let head = self::head(&body.path, 16 << 10)
                .map_err(|source| LoadError::Read { path: body.path.clone(), source })?;
            (body, head)
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return utf16(found, cache).map(Look::Text),
        _ => {
            let body =
                Text { path: found.path.clone(), size: found.size, sha256: None, cached: false, notes: Vec::new() };
            (body, head)
        }
    };
    if let Some(what) = binary(&head) {
        return Ok(Look::Skip(what));
    }
    if body.size == 0 {
        let why = body.notes.pop().unwrap_or_else(|| "empty when decompressed".into());
        return Ok(Look::Skip(why));
    }
    Ok(Look::Text(body))
}

pub(crate) fn head(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn binary(head: &[u8]) -> Option<String> {
    const MAGIC: [(&[u8], &str); 11] = [
        (b"ElfFile\0", "Windows event log (evtx): export it as XML, JSON or CSV"),
        (b"\xd4\xc3\xb2\xa1", "packet capture: export it with Zeek or tshark"),
        (b"\xa1\xb2\xc3\xd4", "packet capture: export it with Zeek or tshark"),
        (b"\x0a\x0d\x0d\x0a", "packet capture (pcapng): export it with Zeek or tshark"),
        (b"PK\x03\x04", "zip archive: unpack it first"),
        (b"\x28\xb5\x2f\xfd", "zstd: decompress it first"),
        (b"\xfd7zXZ\0", "xz: decompress it first"),
        (b"BZh", "bzip2: decompress it first"),
        (b"7z\xbc\xaf", "7z archive: unpack it first"),
        (b"SQLite format 3\0", "SQLite database: export its tables as CSV"),
        (b"\x7fELF", "executable"),
    ];
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some((*what).to_owned());
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("tar archive: unpack it first".into());
    }
    let odd = head.iter().filter(|b| **b == 0 || (**b < 0x20 && !matches!(b, 8..=13 | 0x1b | 0x1d))).count();
    (odd * 50 > head.len()).then(|| "binary file".to_owned())
}

fn gunzip(found: &Found, cache: &Path) -> Result<Text, LoadError> {
    let file = File::open(&found.path).map_err(|source| LoadError::Read { path: found.path.clone(), source })?;
    let mut hashing = Hashing::new(file);
    let mut notes = Vec::new();
    let mut size = 0u64;
    {
        let mut out = create(cache)?;
        let mut decoder = MultiGzDecoder::new(&mut hashing);
        let mut chunk = vec![0u8; 128 << 10];
        loop {
            match decoder.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => {
                    size += read as u64;
                    write(&mut out, chunk.get(..read).unwrap_or_default(), cache)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    notes.push(format!(
                        "the gzip stream is damaged after {size} bytes of text ({e}): what comes before is loaded"
                    ));
                    break;
                }
            }
            if size >= CACHE_MAX {
                notes.push(format!("more than {CACHE_MAX} bytes when decompressed: the rest is not loaded"));
                break;
            }
        }
        flush(out, cache)?;
    }
    let sha256 = hashing.finish().map_err(|source| LoadError::Read { path: found.path.clone(), source })?;
    Ok(Text { path: cache.to_path_buf(), size, sha256: Some(sha256), cached: true, notes })
}

fn utf16(found: &Found, cache: &Path) -> Result<Text, LoadError> {
    let read = |source| LoadError::Read { path: found.path.clone(), source };
    let mut hashing = Hashing::new(File::open(&found.path).map_err(read)?);
    let mut size = 0u64;
    {
        let mut out = create(cache)?;
        let (mut chunk, mut held) = (vec![0u8; 128 << 10], Vec::new());
        let mut big = None;
        loop {
            let read = hashing.read(&mut chunk).map_err(read)?;
            held.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let big = *big.get_or_insert_with(|| held.first() == Some(&0xfe));
            // A chunk may end inside a surrogate pair, so keep the last unit for the next chunk.
            let keep = if read == 0 { 0 } else { 2 + held.len() % 2 };
            let ready = held.len().saturating_sub(keep);
            let units = held.get(..ready).unwrap_or_default().chunks(2).map(|pair| match pair {
                [a, b] if big => u16::from_be_bytes([*a, *b]),
                [a, b] => u16::from_le_bytes([*a, *b]),
                _ => 0xfffd,
            });
            let text: String = char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .filter(|c| *c != '\u{feff}')
                .collect();
            size += text.len() as u64;
            write(&mut out, text.as_bytes(), cache)?;
            held.drain(..ready);
            if read == 0 {
                break;
            }
        }
        flush(out, cache)?;
    }
    let sha256 = Some(hashing.finish().map_err(read)?);
    let notes = vec!["UTF-16: lines and bytes are those of the text in UTF-8".into()];
    Ok(Text { path: cache.to_path_buf(), size, sha256, cached: true, notes })
}

fn create(path: &Path) -> Result<BufWriter<File>, LoadError> {
    if let Some(folder) = path.parent() {
        private::folder(folder)?;
    }
    private::file(path)
        .map(|file| BufWriter::with_capacity(1 << 20, file))
        .map_err(|source| LoadError::Write { path: path.to_path_buf(), source })
}

fn write(out: &mut BufWriter<File>, bytes: &[u8], path: &Path) -> Result<(), LoadError> {
    out.write_all(bytes).map_err(|source| LoadError::Write { path: path.to_path_buf(), source })
}

fn flush(mut out: BufWriter<File>, path: &Path) -> Result<(), LoadError> {
    out.flush().map_err(|source| LoadError::Write { path: path.to_path_buf(), source })
}

#[derive(Debug)]
pub(crate) struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// Reads the rest and returns the hash of everything.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        let mut chunk = vec![0u8; 128 << 10];
        while self.read(&mut chunk)? > 0 {}
        Ok(hex(&self.hash.finalize()))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.hash.update(buf.get(..read).unwrap_or_default());
        Ok(read)
    }
}
