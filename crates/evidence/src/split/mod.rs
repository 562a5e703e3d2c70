//! A file cut into records, in one pass and bounded memory.

mod json;
mod lines;

use std::io::{self, Read};

pub(crate) use json::JsonCutter;
pub(crate) use lines::LineCutter;

/// A record of more bytes than this is not held in memory whole.
pub(crate) const RECORD_MAX: usize = 1 << 20;
/// What is kept of such a record.
pub(crate) const OVERSIZE_KEPT: usize = 64 << 10;

/// How a file is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A record a line.
    Lines(Lines),
    /// Records are JSON values.
    Json(JsonPlace),
}

/// What belongs to the format among the lines, and what joins lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The first line that is not blank is a header.
    pub(crate) header: bool,
    /// Lines that begin with `#` belong to the format.
    pub(crate) comments: bool,
    /// What lets a record go on over the end of a line.
    pub(crate) join: Join,
}

/// What lets a record go on over the end of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Join {
    /// Nothing.
    #[default]
    Never,
    /// An open quote.
    Quotes,
    /// An `<Event` that is not closed.
    Events,
    /// A `<![LOG[` that is not closed, of Configuration Manager.
    Log,
    /// A `--ID-A--` without its `--ID-Z--`, of ModSecurity.
    Parts,
}

/// Where in JSON text the records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Each value at the top is a record.
    Top,
    /// The elements of the array under these keys; of the array at the top where there are none.
    Array(Vec<String>),
}

/// One record, apart from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Of its first byte in the file.
    pub(crate) offset: u64,
    /// Its bytes, without a line end.
    pub(crate) length: u64,
    /// The line on which it starts, from 1.
    pub(crate) line: u64,
    /// Longer than [`RECORD_MAX`].
    pub(crate) oversize: bool,
    /// The cutter saw that it does not follow the format.
    pub(crate) broken: bool,
}

/// The lines of a file by what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) lines: u64,
    pub(crate) blank: u64,
    pub(crate) format: u64,
}

/// Cuts `R` into records.
#[derive(Debug)]
pub(crate) enum Cutter<R> {
    Lines(LineCutter<R>),
    Json(JsonCutter<R>),
}

impl<R: Read> Cutter<R> {
    /// Cuts what `reader` gives, whose first byte is byte `offset` and in line `line` of the file.
    pub(crate) fn new(reader: R, cut: &Cut, offset: u64, line: u64) -> Self {
        match cut {
            Cut::Lines(lines) => Self::Lines(LineCutter::new(reader, *lines, offset, line)),
            Cut::Json(place) => Self::Json(JsonCutter::new(reader, place.clone(), offset, line)),
        }
    }

    /// The next record; its bytes replace what is in `bytes`, cut to [`OVERSIZE_KEPT`] where it is
    /// oversize.
    pub(crate) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        match self {
            Self::Lines(cutter) => cutter.next(bytes),
            Self::Json(cutter) => cutter.next(bytes),
        }
    }

    /// The lines so far.
    pub(crate) fn tally(&self) -> Tally {
        match self {
            Self::Lines(cutter) => cutter.tally(),
            Self::Json(cutter) => cutter.tally(),
        }
    }

    /// The bytes read so far, from the start of the file.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Lines(cutter) => cutter.position(),
            Self::Json(cutter) => cutter.position(),
        }
    }
}

#[cfg(test)]
mod tests;
