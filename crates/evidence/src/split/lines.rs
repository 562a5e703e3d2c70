//! Records that are lines, or several joined lines.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read};

use super::{Join, Lines, OVERSIZE_KEPT, Piece, RECORD_MAX, Tally};
use crate::fields::modsec::boundary;
use crate::fields::table::closed;
use crate::formats::Pattern;
use crate::text::Events;

/// Limit of joined lines, so that an unbalanced quote cannot swallow the file.
const JOINED_MAX: usize = 500;
/// How many bytes are searched for the end of a transaction. Servers limit a request and its response to less.
const PARTS_REACH: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct LineCutter<R> {
    reader: BufReader<R>,
    lines: Lines,
    offset: u64,
    line: u64,
    /// Lines that were read ahead and do not belong together.
    ahead: VecDeque<(Line, Vec<u8>)>,
    /// Their size, if the file has transactions.
    ahead_bytes: usize,
    /// The number of end lines among them, by transaction id.
    ends: HashMap<Vec<u8>, usize>,
    header_seen: bool,
    tally: Tally,
}

/// `bytes` holds the line with its end, or its first part.
#[derive(Debug, Clone, Copy)]
struct Line {
    offset: u64,
    number: u64,
    /// Without the line end.
    length: u64,
    cut: bool,
}

impl<R: Read> LineCutter<R> {
    pub(super) fn new(reader: R, lines: Lines, offset: u64, line: u64) -> Self {
        Self {
            reader: BufReader::with_capacity(256 << 10, reader),
            header_seen: !lines.header,
            lines,
            offset,
            line,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            ends: HashMap::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn tally(&self) -> Tally {
        let by_id = matches!(self.lines.events, Some(Events::Id | Events::Row));
        Tally { lines: if by_id { self.line.saturating_sub(1) } else { self.tally.lines }, ..self.tally }
    }

    pub(super) const fn position(&self) -> u64 {
        self.offset
    }

    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        loop {
            let Some(line) = self.take(bytes)? else { return Ok(None) };
            self.tally.lines += 1;
            if line.length == 0 || (!line.cut && bytes.iter().all(u8::is_ascii_whitespace)) {
                self.tally.blank += 1;
            } else if !self.header_seen || (self.lines.comments && bytes.first() == Some(&b'#')) {
                self.header_seen = true;
                self.tally.format += 1;
            } else if self.lines.join == Join::Events && !line.cut && !begins_event(bytes) {
                self.tally.format += 1;
            } else {
                return self.join(line, bytes).map(Some);
            }
        }
    }

    fn join(&mut self, first: Line, bytes: &mut Vec<u8>) -> io::Result<Piece> {
        let mut piece = Piece {
            offset: first.offset,
            length: first.length,
            line: first.number,
            oversize: first.cut,
            broken: false,
        };
        if let Some(begins) = self.lines.begins.clone().filter(|_| !first.cut) {
            self.block(&begins, bytes, &mut piece)?;
            return Ok(piece);
        }
        let transaction = boundary(bytes).filter(|(_, part)| self.lines.join == Join::Parts && *part == b'A');
        if let Some(id) = transaction.map(|(id, _)| id.to_vec()) {
            self.transaction(&id, bytes, &mut piece)?;
        } else if !first.cut && !self.joined(bytes) {
            let mut taken = VecDeque::new();
            let mut whole = bytes.clone();
            let mut length = first.length;
            let mut complete = false;
            while taken.len() < JOINED_MAX && whole.len() < RECORD_MAX {
                let mut more = Vec::new();
                let Some(line) = self.take(&mut more)? else { break };
                let next = self.lines.join == Join::Log && more.starts_with(b"<![LOG[");
                if next {
                    self.ahead.push_front((line, more));
                    break;
                }
                whole.extend_from_slice(&more);
                length = line.offset + line.length - first.offset;
                let cut = line.cut;
                // An odd quote is open, so only a line with a quote can close it.
                let may_close = match self.lines.join {
                    Join::Quotes => !closed(&more),
                    Join::Log => memchr::memmem::find(&more, b"]LOG]!>").is_some(),
                    Join::Never | Join::Events | Join::Parts => true,
                };
                taken.push_back((line, more));
                complete = !cut && may_close && self.joined(&whole);
                if complete || cut {
                    break;
                }
            }
            if complete {
                self.tally.lines += taken.len() as u64;
                piece.length = length;
                *bytes = whole;
            } else {
                piece.broken = true;
                while let Some(back) = taken.pop_back() {
                    self.ahead.push_front(back);
                }
            }
        }
        if piece.oversize {
            bytes.truncate(OVERSIZE_KEPT);
        } else {
            bytes.truncate(usize::try_from(piece.length).unwrap_or(usize::MAX));
        }
        Ok(piece)
    }

    /// Joins the lines up to the last line of the record, or before the first line of the next.
    fn block(&mut self, begins: &Pattern, bytes: &mut Vec<u8>, piece: &mut Piece) -> io::Result<()> {
        let ends = self.lines.ends.clone();
        let is_last = |line: &[u8]| ends.as_ref().is_some_and(|ends| ends.is_in(line));
        // Blank lines at the end are not of the record.
        let mut blank = Vec::new();
        let mut over = is_last(text(bytes));
        for _ in 0..JOINED_MAX {
            let mut more = Vec::new();
            let Some(line) = (if over { None } else { self.take(&mut more)? }) else { break };
            if line.cut || bytes.len() + more.len() > RECORD_MAX || begins.is_in(text(&more)) {
                self.ahead.push_front((line, more));
                break;
            }
            over = is_last(text(&more));
            let is_blank = more.iter().all(u8::is_ascii_whitespace);
            blank.push((line, more));
            if !is_blank {
                self.tally.lines += blank.len() as u64;
                for (line, more) in blank.drain(..) {
                    piece.length = line.offset + line.length - piece.offset;
                    bytes.extend_from_slice(&more);
                }
            }
        }
        while let Some(back) = blank.pop() {
            self.ahead.push_front(back);
        }
        bytes.truncate(usize::try_from(piece.length).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Joins the lines up to the end of transaction `id`. The client cannot forge the end, because it cannot
    /// know the id in advance. Without an end line, the record is only the first line.
    fn transaction(&mut self, id: &[u8], bytes: &mut Vec<u8>, piece: &mut Piece) -> io::Result<()> {
        while !self.ends.contains_key(id) {
            let mut more = Vec::new();
            let read = if self.ahead_bytes < PARTS_REACH { self.read(&mut more)? } else { None };
            let Some(line) = read else {
                piece.broken = true;
                return Ok(());
            };
            self.ahead_bytes += more.len();
            if let Some((of, b'Z')) = boundary(&more) {
                *self.ends.entry(of.to_vec()).or_default() += 1;
            }
            self.ahead.push_back((line, more));
        }
        let mut more = Vec::new();
        while let Some(line) = self.take(&mut more)? {
            self.tally.lines += 1;
            piece.length = line.offset + line.length - piece.offset;
            if bytes.len() + more.len() <= RECORD_MAX && !piece.oversize {
                bytes.extend_from_slice(&more);
            } else {
                piece.oversize = true;
            }
            if boundary(&more).is_some_and(|(of, part)| of == id && part == b'Z') {
                break;
            }
        }
        Ok(())
    }

    fn joined(&self, whole: &[u8]) -> bool {
        match self.lines.join {
            Join::Never | Join::Parts => true,
            Join::Quotes => closed(whole),
            Join::Events => memchr::memmem::find(whole, b"</Event>").is_some(),
            Join::Log => !whole.starts_with(b"<![LOG[") || memchr::memmem::find(whole, b"]LOG]!>").is_some(),
        }
    }

    /// Puts the next line into `bytes`, with its end unless the line is too long.
    fn take(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Line>> {
        if let Some((line, kept)) = self.ahead.pop_front() {
            *bytes = kept;
            self.ahead_bytes = self.ahead_bytes.saturating_sub(bytes.len());
            if let Some((of, b'Z')) = boundary(bytes)
                && let Some(left) = self.ends.get_mut(of)
            {
                *left -= 1;
                if *left == 0 {
                    self.ends.remove(of);
                }
            }
            return Ok(Some(line));
        }
        self.read(bytes)
    }

    fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Line>> {
        bytes.clear();
        let (mut total, mut end) = (0u64, [0u8; 2]);
        loop {
            let chunk = match self.reader.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break;
            }
            let newline = memchr::memchr(b'\n', chunk);
            let used = newline.map_or(chunk.len(), |at| at + 1);
            let part = chunk.get(..used).unwrap_or_default();
            let room = (RECORD_MAX + 1).saturating_sub(bytes.len()).min(part.len());
            bytes.extend_from_slice(part.get(..room).unwrap_or_default());
            for b in part.iter().rev().take(2).rev() {
                end = [end[1], *b];
            }
            total += used as u64;
            self.reader.consume(used);
            if newline.is_some() {
                break;
            }
        }
        if total == 0 {
            return Ok(None);
        }
        let ending = match end {
            [b'\r', b'\n'] if total > 1 => 2,
            [_, b'\n'] => 1,
            _ => 0,
        };
        let mut line = Line {
            offset: self.offset,
            number: self.line,
            length: total - ending,
            cut: total - ending > RECORD_MAX as u64,
        };
        self.offset += total;
        self.line += 1;
        if let Some(events) = self.lines.events {
            self.event(events, &mut line, bytes);
        }
        Ok(Some(line))
    }

    /// Takes the id of the event from the line.
    fn event(&mut self, events: Events, line: &mut Line, bytes: &mut Vec<u8>) {
        let Some(tab) = memchr::memchr(b'\t', bytes.get(..24).unwrap_or(bytes)) else { return };
        let id = bytes.get(..tab).and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        let Some(id) = id else { return };
        bytes.drain(..=tab);
        let before = tab as u64 + 1;
        line.offset += before;
        line.length = line.length.saturating_sub(before);
        if events != Events::Place {
            line.number = id;
            self.line = id.saturating_add(1);
        }
    }
}

/// A line without its end.
fn text(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}

fn begins_event(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"<Event")
        .is_some_and(|at| bytes.get(at + 6).is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'>' | b'/')))
}
