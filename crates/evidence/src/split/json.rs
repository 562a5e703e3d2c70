//! Records that are JSON values. Line breaks do not matter.

use std::io::{self, Read};

use super::{Json, JsonPlace, OVERSIZE_KEPT, Piece, RECORD_MAX, Tally};

#[derive(Debug)]
pub(crate) struct JsonCutter<R> {
    reader: R,
    /// `buffer[at..]` has not been read yet.
    buffer: Vec<u8>,
    at: usize,
    keys: Vec<String>,
    /// Number of containers around a record.
    around: usize,
    offset: u64,
    line: u64,
    depth: usize,
    /// How many of these containers are open and match.
    matched: usize,
    text: Text,
    /// The last string outside records, cut. It may be a key.
    string: Vec<u8>,
    record: Option<Open>,
    /// How many records began, if their places count instead of their lines.
    numbered: Option<u64>,
    tally: Tally,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escaped,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    offset: u64,
    line: u64,
    length: u64,
    broken: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An object or array: ends at its closing bracket.
    Nested,
    /// A number or word: ends before a comma, bracket or blank.
    Word,
    /// A string: ends at its quote.
    String,
    /// Not JSON: ends with the line.
    Junk,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    any: bool,
    record: bool,
    format: bool,
}

enum Step {
    /// No record ended.
    On,
    /// The record ends with this byte.
    EndsWith,
    /// The record ended before this byte, which must be read again.
    EndsBefore,
}

impl<R: Read> JsonCutter<R> {
    pub(super) fn new(reader: R, json: Json, offset: u64, line: u64) -> Self {
        let (keys, around) = match json.place {
            JsonPlace::Top => (Vec::new(), 0),
            JsonPlace::Array(keys) => {
                let around = keys.len() + 1;
                (keys, around)
            }
        };
        Self {
            reader,
            buffer: Vec::new(),
            at: 0,
            keys,
            around,
            offset,
            line,
            depth: 0,
            matched: 0,
            text: Text::Outside,
            string: Vec::new(),
            record: None,
            numbered: json.numbered.then_some(0),
            tally: Tally::default(),
            seen: Seen::default(),
        }
    }

    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }

    pub(super) const fn position(&self) -> u64 {
        self.offset
    }

    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        bytes.clear();
        loop {
            if self.at >= self.buffer.len() && !self.fill()? {
                return Ok(self.at_end(bytes));
            }
            // Taken out because `run` borrows `self` mutably.
            let chunk = std::mem::take(&mut self.buffer);
            let ended = self.run(&chunk, bytes);
            self.buffer = chunk;
            if ended.is_some() {
                return Ok(ended);
            }
        }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.resize(256 << 10, 0);
        self.at = 0;
        loop {
            match self.reader.read(&mut self.buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    self.buffer.truncate(read?);
                    return Ok(!self.buffer.is_empty());
                }
            }
        }
    }

    fn run(&mut self, chunk: &[u8], bytes: &mut Vec<u8>) -> Option<Piece> {
        while let Some(byte) = chunk.get(self.at).copied() {
            let ended = match self.step(byte) {
                Step::On => {
                    self.keep(byte, bytes);
                    None
                }
                Step::EndsWith => {
                    self.keep(byte, bytes);
                    self.finish(bytes)
                }
                Step::EndsBefore => {
                    let ended = self.finish(bytes);
                    if ended.is_some() {
                        return ended;
                    }
                    None
                }
            };
            self.count(byte);
            self.at += 1;
            self.offset += 1;
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    fn at_end(&mut self, bytes: &mut Vec<u8>) -> Option<Piece> {
        if self.seen.any {
            self.end_line();
        }
        if let Some(open) = &mut self.record {
            open.broken |= matches!(open.kind, Kind::Nested | Kind::String);
            while bytes.last().is_some_and(u8::is_ascii_whitespace) {
                bytes.pop();
                open.length -= 1;
            }
        }
        self.finish(bytes)
    }

    fn keep(&mut self, byte: u8, bytes: &mut Vec<u8>) {
        if let Some(open) = &mut self.record {
            open.length += 1;
            if bytes.len() <= RECORD_MAX {
                bytes.push(byte);
            }
        }
    }

    fn count(&mut self, byte: u8) {
        self.seen.any = true;
        if self.record.is_some() {
            self.seen.record = true;
        } else if !byte.is_ascii_whitespace() {
            self.seen.format = true;
        }
        if byte == b'\n' {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.tally.lines += 1;
        if !self.seen.record {
            self.tally.format += u64::from(self.seen.format);
            self.tally.blank += u64::from(!self.seen.format);
        }
        self.line += 1;
        self.seen = Seen::default();
    }

    fn finish(&mut self, bytes: &mut Vec<u8>) -> Option<Piece> {
        let open = self.record.take()?;
        self.seen.record = true;
        let oversize = open.length > RECORD_MAX as u64;
        if oversize {
            bytes.truncate(OVERSIZE_KEPT);
        }
        Some(Piece { offset: open.offset, length: open.length, line: open.line, oversize, broken: open.broken })
    }

    fn step(&mut self, byte: u8) -> Step {
        if let Some(Open { kind: Kind::Junk, .. }) = self.record {
            return if byte == b'\n' { Step::EndsBefore } else { Step::On };
        }
        match self.text {
            Text::Escaped => self.text = Text::Inside,
            Text::Inside => return self.in_string(byte),
            Text::Outside => return self.outside(byte),
        }
        Step::On
    }

    fn in_string(&mut self, byte: u8) -> Step {
        match byte {
            b'\\' => self.text = Text::Escaped,
            b'"' => {
                self.text = Text::Outside;
                if matches!(self.record, Some(Open { kind: Kind::String, .. })) {
                    return Step::EndsWith;
                }
            }
            // A string that reaches the end of a line has lost its quote. End it, so that the next lines are
            // read correctly.
            b'\n' => {
                self.text = Text::Outside;
                if let Some(open) = &mut self.record {
                    open.broken = true;
                }
            }
            _ if self.record.is_none() && self.string.len() < 256 => self.string.push(byte),
            _ => {}
        }
        Step::On
    }

    fn outside(&mut self, byte: u8) -> Step {
        if let Some(Open { kind: Kind::Word, .. }) = self.record
            && (byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}'))
        {
            return Step::EndsBefore;
        }
        let here = self.record.is_none() && self.matched == self.around && self.depth == self.around;
        if here && !byte.is_ascii_whitespace() && !matches!(byte, b',' | b']' | b'}') {
            self.begin(byte);
        }
        match byte {
            b'"' => {
                self.text = Text::Inside;
                self.string.clear();
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => return self.close(),
            _ => {}
        }
        Step::On
    }

    fn begin(&mut self, byte: u8) {
        let kind = match byte {
            b'{' | b'[' => Kind::Nested,
            _ if self.around == 0 => Kind::Junk,
            b'"' => Kind::String,
            _ => Kind::Word,
        };
        let line = self.numbered.as_mut().map_or(self.line, |number| {
            *number += 1;
            *number
        });
        self.record = Some(Open { offset: self.offset, line, length: 0, broken: kind == Kind::Junk, kind });
    }

    fn open(&mut self, byte: u8) {
        let level = self.depth;
        if self.record.is_none() && self.matched == level && level < self.around {
            let named =
                level.checked_sub(1).and_then(|i| self.keys.get(i)).is_none_or(|key| key.as_bytes() == self.string);
            let wanted = if level + 1 == self.around { b'[' } else { b'{' };
            if named && byte == wanted {
                self.matched += 1;
            }
        }
        self.depth += 1;
    }

    fn close(&mut self) -> Step {
        self.depth = self.depth.saturating_sub(1);
        self.matched = self.matched.min(self.depth);
        let ends = matches!(self.record, Some(Open { kind: Kind::Nested, .. })) && self.depth == self.around;
        if ends { Step::EndsWith } else { Step::On }
    }
}
