//! Turns the bytes of a record into fields.

pub(crate) mod access;
pub(crate) mod auditd;
mod cmtrace;
mod ids;
pub(crate) mod json;
pub(crate) mod keyvalue;
mod message;
pub(crate) mod modsec;
pub(crate) mod payload;
mod place;
mod plaso;
pub(crate) mod syslog;
pub(crate) mod table;
pub(crate) mod xml;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::formats::Reader;
use super::source::Format;
use super::time::text::{Reading, prefix};
use json::Outcome;
use payload::FIELDS_MAX;
pub(crate) use place::Place;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub(crate) format: Format,
    pub(crate) columns: Vec<String>,
    pub(crate) delimiter: u8,
    /// Where lines have their time, if not at the start.
    pub(crate) time: Option<Place>,
    /// Of a line format.
    pub(crate) reader: Option<Reader>,
}

impl Shape {
    pub(crate) const fn of(format: Format) -> Self {
        Self { format, columns: Vec::new(), delimiter: b',', time: None, reader: None }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Path and value, in the order of the record.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) malformed: bool,
}

/// Most records are UTF-8, for which the first check is faster.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Strings that are kept for the next records of a thread, and bytes of each string.
const SPARE_MAX: usize = 8 * 1024;
const SPARE_BYTES: usize = 512;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { fields: Vec::new(), texts: Vec::new() }) };
}

/// Memory of records that are not needed any more.
struct Spare {
    /// The fields in reverse order: the next record mostly has the same names.
    fields: Vec<(String, String)>,
    texts: Vec<String>,
}

impl Spare {
    fn give(&mut self, text: String) {
        if self.texts.len() < SPARE_MAX {
            self.texts.push(text);
        }
    }
}

/// An empty string, with spare memory if there is any.
fn spare() -> String {
    let mut text = SPARE.with_borrow_mut(|spare| spare.texts.pop()).unwrap_or_default();
    text.clear();
    text
}

/// A copy of the text in spare memory.
fn owned(text: &str) -> String {
    let mut copy = spare();
    copy.push_str(text);
    copy
}

/// A field in spare memory.
fn field(name: &str, value: &str) -> (String, String) {
    let mut field = SPARE.with_borrow_mut(|spare| spare.fields.pop()).unwrap_or_default();
    if field.0 != name {
        field.0.clear();
        field.0.push_str(name);
    }
    field.1.clear();
    field.1.push_str(value);
    field
}

/// Like [`parse`], with the memory of a record that is not needed any more.
pub(crate) fn parse_again(shape: &Shape, text: &str, mut last: Parsed) -> Parsed {
    SPARE.with_borrow_mut(|spare| {
        // What the record before did not need.
        for (name, value) in spare.fields.split_off(0) {
            spare.give(name);
            spare.give(value);
        }
        let small = |(name, value): &(String, String)| name.capacity().max(value.capacity()) <= SPARE_BYTES;
        spare.fields.extend(last.fields.drain(..).rev().filter(small).take(SPARE_MAX));
    });
    parse_into(shape, text, last)
}

/// Reads a record that does not follow the format as a line of text.
pub(crate) fn parse(shape: &Shape, bytes: &[u8]) -> Parsed {
    parse_into(shape, &text_of(bytes), Parsed::default())
}

/// `parsed` must have no fields.
fn parse_into(shape: &Shape, text: &str, mut parsed: Parsed) -> Parsed {
    parsed.malformed = !by_format(shape, text, &mut parsed.fields);
    if parsed.malformed && parsed.fields.is_empty() {
        line(text, shape.time, &mut parsed.fields);
    }
    parsed
}

/// Like [`parse`], for a line at `own` in `text`, with what the other lines of its event say.
pub(crate) fn parse_in(shape: &Shape, text: &[u8], own: Range<usize>) -> Vec<(String, String)> {
    let mut fields = parse(shape, text.get(own.clone()).unwrap_or_default()).fields;
    if shape.format == Format::Auditd {
        auditd::event::join(&mut fields, &auditd::event::others(text, own));
    }
    fields
}

type Fields = [(String, String)];

pub(crate) struct Wanted<'a> {
    pub(crate) may_be: &'a dyn Fn(&str) -> bool,
    /// Whether the value may contain wanted fields.
    pub(crate) inside: &'a dyn Fn(&str) -> bool,
    /// Whether these fields are enough, so that packed values need not be read.
    pub(crate) enough: &'a dyn Fn(&Fields) -> bool,
}

/// Returns the wanted fields, and maybe others. For JSON it is faster than [`parse`].
pub(crate) fn parse_some(shape: &Shape, bytes: &[u8], wanted: &Wanted<'_>) -> Vec<(String, String)> {
    if !matches!(
        shape.format,
        Format::Ndjson | Format::JsonArray | Format::JsonObjects | Format::Evtx | Format::Parquet
    ) {
        return parse(shape, bytes).fields;
    }
    let text = text_of(bytes);
    let mut packs = false;
    let mut some = |unpack: bool| {
        let (mut out, mut seen) = (Vec::new(), 0);
        let outcome = json::flatten(&text, "", &mut |path, value| {
            seen += 1;
            if seen > FIELDS_MAX {
                return;
            }
            let packed = payload::packed(&value);
            packs |= packed;
            if packed && unpack && (wanted.inside)(&value) {
                out.push((path.to_owned(), value.clone().into_owned()));
                payload::expand(path, &value, &mut out);
            } else if (wanted.may_be)(path) {
                out.push((path.to_owned(), value.into_owned()));
            }
        });
        (outcome == Outcome::Whole && seen <= FIELDS_MAX).then_some((out, packs))
    };
    // Read the whole record if it is not JSON or has too many fields.
    match some(false) {
        Some((out, packs)) if !packs || (wanted.enough)(&out) => out,
        Some(_) => some(true).map_or_else(|| parse(shape, bytes).fields, |(out, _)| out),
        None => parse(shape, bytes).fields,
    }
}

fn by_format(shape: &Shape, text: &str, out: &mut Vec<(String, String)>) -> bool {
    match shape.format {
        Format::Ndjson | Format::JsonArray | Format::JsonObjects | Format::Evtx | Format::Parquet => {
            from_json(text, out)
        }
        Format::Csv | Format::Tsv => {
            let fits = table::name(&shape.columns, table::cells(text, shape.delimiter), out);
            unpack_all(out);
            fits
        }
        Format::ZeekTsv => table::name(&shape.columns, table::zeek_cells(text), out),
        Format::W3c => table::name(&shape.columns, table::w3c_cells(text), out),
        Format::Syslog | Format::SyslogIso => match syslog::header(text) {
            Some(header) => {
                spoken(&header, out);
                true
            }
            None => false,
        },
        Format::Auditd => take(auditd::fields(text), out),
        Format::AccessLog => take(access::fields(text), out),
        Format::Cef => {
            leading_header(text, out);
            take(keyvalue::cef(text), out)
        }
        Format::KeyValue => pairs(text, out),
        Format::XmlEvents => xml::flatten(text, "", &mut |p, v| out.push((p.to_owned(), v))) == Outcome::Whole,
        Format::CmTrace => take(cmtrace::fields(text), out),
        Format::ModSecurity => take(modsec::fields(text), out),
        Format::Pattern => {
            let read = shape.reader.as_ref().and_then(|reader| reader.read(text).ok());
            let fits = take(read, out);
            unpack_all(out);
            fits
        }
        Format::Plain => {
            line(text, shape.time, out);
            true
        }
    }
}

fn from_json(text: &str, out: &mut Vec<(String, String)>) -> bool {
    let outcome = json::flatten(text, "", &mut |path, value| {
        if out.len() >= FIELDS_MAX {
            return;
        }
        let packed = payload::packed(&value);
        let mut read = field(path, if let Cow::Borrowed(text) = value { text } else { "" });
        if let Cow::Owned(text) = value {
            let unused = std::mem::replace(&mut read.1, text);
            SPARE.with_borrow_mut(|spare| spare.give(unused));
        }
        out.push(read);
        if packed && let Some((path, value)) = out.last().cloned() {
            payload::expand(&path, &value, out);
        }
    });
    outcome == Outcome::Whole
}

fn unpack_all(out: &mut Vec<(String, String)>) {
    let packed: Vec<_> = out.iter().filter(|(_, v)| payload::packed(v)).cloned().collect();
    for (path, value) in packed {
        payload::expand(&path, &value, out);
    }
}

fn take(found: Option<Vec<(String, String)>>, out: &mut Vec<(String, String)>) -> bool {
    let any = found.is_some();
    out.extend(found.unwrap_or_default());
    any
}

fn leading_header(text: &str, out: &mut Vec<(String, String)>) {
    let end = text.find("CEF:").or_else(|| text.find("LEEF:")).unwrap_or(0);
    let before = text.get(..end).unwrap_or_default();
    let before =
        before.find('>').filter(|_| before.starts_with('<')).map_or(before, |n| before.get(n + 1..).unwrap_or(before));
    let before = before.strip_prefix("1 ").unwrap_or(before);
    if let Some((_, used)) = prefix(before, Reading::default()) {
        out.push(("timestamp".into(), before.get(..used).unwrap_or_default().into()));
        if let Some(host) = before.get(used..).and_then(|rest| rest.split_whitespace().next()) {
            out.push(("host".into(), host.into()));
        }
    }
}

/// The fields of a header and of its message.
fn spoken(header: &syslog::Header<'_>, out: &mut Vec<(String, String)>) {
    if !syslog::fields(header, out) {
        payload::expand("message", header.message, out);
    }
}

fn pairs(text: &str, out: &mut Vec<(String, String)>) -> bool {
    let body = match syslog::header(text) {
        Some(header) => {
            syslog::fields(&header, out);
            header.message
        }
        None => {
            if let Some((_, used)) = prefix(text, Reading::default()) {
                out.push(("timestamp".into(), text.get(..used).unwrap_or_default().into()));
            }
            text
        }
    };
    let found: Vec<(String, String)> = keyvalue::comma_pairs(body).unwrap_or_else(|| {
        keyvalue::pairs(body, keyvalue::Reach::Word).iter().map(|p| field(p.key, p.value)).collect()
    });
    let any = !found.is_empty();
    out.extend(found);
    any
}

/// Splits a line into its time, `message`, and the fields packed into the message. The time is at the start, or
/// at the place of the file.
fn line(text: &str, place: Option<Place>, out: &mut Vec<(String, String)>) {
    if let Some(header) = syslog::header(text) {
        return spoken(&header, out);
    }
    let message = match begins_with_time(text) {
        Some((time, message)) => {
            out.push(field("timestamp", time));
            message
        }
        None => match place.map_or_else(|| behind_number(text), |place| place.time_of(text)) {
            Some(time) => {
                out.push(("timestamp".into(), time.into()));
                match place.and_then(|_| behind_words(text)) {
                    Some(header) => {
                        let mut fields = Vec::new();
                        spoken(&header, &mut fields);
                        return out.extend(fields.into_iter().filter(|(name, _)| name != "timestamp"));
                    }
                    None => text,
                }
            }
            None => labelled(text, out),
        },
    };
    out.push(field("message", message));
    payload::expand("message", message, out);
}

/// The rest of a line that begins with a number: `17,01.02.2024,10:00:00,text`. Needed because the place of the
/// time is unknown in logs that begin with many lines of another kind.
fn behind_number(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        (1..=12).contains(&digits) && matches!(text.as_bytes().get(digits), Some(b',' | b';' | b'|' | b'\t'));
    let rest = numbered.then(|| text.get(digits + 1..)).flatten()?;
    let (moment, used) = prefix(rest, Reading::default())?;
    let clocked = moment.dated && moment.precision != casebook_protocol::Precision::Day;
    let ends = matches!(rest.as_bytes().get(used), None | Some(b',' | b';' | b'|' | b'\t'));
    (clocked && ends).then(|| rest.get(..used)).flatten()
}

/// A syslog line with a prefix from its collector.
fn behind_words(text: &str) -> Option<syslog::Header<'_>> {
    const WORDS_MAX: usize = 6;
    let starts = text.match_indices(' ').take(WORDS_MAX).map(|(at, _)| at + 1);
    starts.filter_map(|at| syslog::header(text.get(at..)?)).find(|header| header.host.is_some())
}

fn begins_with_time(text: &str) -> Option<(&str, &str)> {
    let body = text.trim_start_matches(['[', ' ', '(']);
    let (_, used) = prefix(body, Reading::default())?;
    let message = body.get(used..)?.trim_start_matches([']', ')', ' ', ':', '-', '\t', '|']);
    Some((body.get(..used)?, message))
}

/// Lines that are a time, or begin with one: `Start-Date: 2024-01-01  10:00:00`, `#1650000000` (bash), `:
/// 1650000000:0;ls` (zsh), `Start time: 20240101100000` (PowerShell transcripts). Returns the rest of the line.
fn labelled<'t>(text: &'t str, out: &mut Vec<(String, String)>) -> &'t str {
    if let Some(stamp) = text.strip_prefix('#').filter(|s| super::time::epoch::epoch(s).is_some()) {
        out.push(("timestamp".into(), stamp.into()));
    } else if let Some((stamp, command)) = of_zsh(text) {
        out.push(("timestamp".into(), stamp.into()));
        return command;
    } else if let Some((label, value)) = text.split_once(": ")
        && label.len() <= 32
    {
        let value = value.trim();
        let digits = value.len() == 14 && value.bytes().all(|b| b.is_ascii_digit());
        if label.contains(' ') && !(digits && label.ends_with(" time")) {
            return text;
        }
        if !label.contains(' ') {
            out.push((label.to_owned(), value.to_owned()));
        }
        if prefix(value, Reading::default()).is_some_and(|(_, used)| used == value.len()) {
            out.push(("timestamp".into(), value.to_owned()));
        }
    }
    text
}

/// The start time and the command in the extended history of zsh.
fn of_zsh(text: &str) -> Option<(&str, &str)> {
    let (stamp, rest) = text.strip_prefix(": ")?.split_once(':')?;
    let (took, command) = rest.split_once(';')?;
    let timed = super::time::epoch::epoch(stamp).is_some() && took.bytes().all(|b| b.is_ascii_digit());
    timed.then_some((stamp, command))
}

#[cfg(test)]
mod tests;
