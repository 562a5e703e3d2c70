//! Provides the texts of an evidence file: the file itself, a decoded copy in the cache folder, or the members of an
//! archive.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use casebook_protocol::hash::hex;

mod archive;
mod decode;
mod evtx;
mod kind;
mod open;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod room;
mod tar;
mod zip;

pub(crate) use open::Opener;

/// Bytes at the start of a file that decide what it is.
const HEAD: u64 = 16 << 10;

#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// Of the evidence file, if it was already read to the end.
    pub(crate) sha256: Option<String>,
    pub(crate) cached: bool,
    pub(crate) events: Option<Events>,
    /// When the member of an archive was changed, in nanoseconds since 1970.
    pub(crate) changed: Option<i64>,
    pub(crate) notes: Vec<String>,
}

/// The lines of a decoded event log or table begin with the number of the record and a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    /// The record id is the number of the line.
    Id,
    /// Record ids are not in order, so lines are counted.
    Place,
    /// Rows of a Parquet file. The number of the row is that of the line.
    Row,
}

pub(crate) fn head(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
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
