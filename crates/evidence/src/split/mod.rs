//! Splits a file into records, in one pass and with bounded memory.

mod json;
mod lines;

use std::io::{self, Read};

use super::formats::Pattern;
use super::text::Events;

pub(crate) use json::JsonCutter;
pub(crate) use lines::LineCutter;

/// In bytes. Longer records are not kept in memory whole.
pub(crate) const RECORD_MAX: usize = 1 << 20;
/// Bytes kept of a longer record.
pub(crate) const OVERSIZE_KEPT: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    Lines(Lines),
    Json(Json),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Json {
    pub(crate) place: JsonPlace,
    /// Several records are on one line, so the line of a record is its place, from 1.
    pub(crate) numbered: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The first line that is not blank is a header.
    pub(crate) header: bool,
    /// Lines that begin with `#` belong to the format.
    pub(crate) comments: bool,
    pub(crate) join: Join,
    /// Lines begin with the id of an event.
    pub(crate) events: Option<Events>,
    /// Matches the first line of a record.
    pub(crate) begins: Option<Pattern>,
    /// Matches the last line of a record.
    pub(crate) ends: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Join {
    #[default]
    Never,
    /// An open quote.
    Quotes,
    /// An `<Event` that is not closed.
    Events,
    /// An open `<![LOG[` (Configuration Manager).
    Log,
    /// A `--ID-A--` without `--ID-Z--` (ModSecurity).
    Parts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    Top,
    /// The elements of the array at this path, or of the top-level array if the path is empty.
    Array(Vec<String>),
}

/// A record without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Of the first byte in the file.
    pub(crate) offset: u64,
    /// In bytes, without the line end.
    pub(crate) length: u64,
    /// From 1.
    pub(crate) line: u64,
    /// Longer than [`RECORD_MAX`].
    pub(crate) oversize: bool,
    pub(crate) broken: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Of a Windows event log: the last record id.
    pub(crate) lines: u64,
    pub(crate) blank: u64,
    pub(crate) format: u64,
}

#[derive(Debug)]
pub(crate) enum Cutter<R> {
    Lines(LineCutter<R>),
    Json(JsonCutter<R>),
}

impl<R: Read> Cutter<R> {
    /// `reader` starts at byte `offset`, in line `line` of the file.
    pub(crate) fn new(reader: R, cut: &Cut, offset: u64, line: u64) -> Self {
        match cut {
            Cut::Lines(lines) => Self::Lines(LineCutter::new(reader, lines.clone(), offset, line)),
            Cut::Json(json) => Self::Json(JsonCutter::new(reader, json.clone(), offset, line)),
        }
    }

    /// Replaces the content of `bytes` by the next record, cut to [`OVERSIZE_KEPT`] if it is oversize.
    pub(crate) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        match self {
            Self::Lines(cutter) => cutter.next(bytes),
            Self::Json(cutter) => cutter.next(bytes),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        match self {
            Self::Lines(cutter) => cutter.tally(),
            Self::Json(cutter) => cutter.tally(),
        }
    }

    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Lines(cutter) => cutter.position(),
            Self::Json(cutter) => cutter.position(),
        }
    }
}

#[cfg(test)]
mod tests;
