//! Detects the format of a file by its content.

use super::fields::{Place, Shape, access, auditd, json, keyvalue, modsec, syslog, table};
use super::formats::{self, LineFormat};
use super::source::Format;
use super::split::{Cut, Cutter, Join, Json, JsonPlace, Lines};
use super::text::Events;
use super::time::text::{self, Reading};
use super::time::{Class, names};

const LINES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detected {
    pub(crate) cut: Cut,
    pub(crate) shape: Shape,
    /// Bytes of a byte order mark.
    pub(crate) skip: u64,
    /// The header says that times are local.
    pub(crate) local: bool,
}

impl Detected {
    /// The lines of a decoded Windows event log or table.
    pub(crate) fn events(events: Events) -> Self {
        let cut = Cut::Lines(Lines { events: Some(events), ..Lines::default() });
        let format = if events == Events::Row { Format::Parquet } else { Format::Evtx };
        Self { cut, shape: Shape::of(format), skip: 0, local: false }
    }
}

impl Detected {
    /// Read by this format, whatever is in the file.
    pub(crate) fn by(format: &LineFormat, head: &[u8]) -> Self {
        let (cut, shape) = by_format(format);
        Self { cut, shape, skip: mark(head) as u64, local: false }
    }
}

fn by_format(format: &LineFormat) -> (Cut, Shape) {
    let LineFormat { begins, ends, reader, .. } = format.clone();
    let cut = Cut::Lines(Lines { begins, ends, ..Lines::default() });
    (cut, Shape { reader: Some(reader), ..Shape::of(Format::Pattern) })
}

/// The length of a byte order mark.
fn mark(head: &[u8]) -> usize {
    if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

/// Looks at the start of a file. `whole` says that `head` is the complete file.
pub(crate) fn detect(head: &[u8], whole: bool) -> Detected {
    let skip = mark(head);
    let text = String::from_utf8_lossy(head.get(skip..).unwrap_or_default());
    let mut lines: Vec<&str> = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
    if !whole && lines.len() > 1 {
        lines.pop();
    }
    let lines: Vec<&str> = lines.into_iter().filter(|l| !l.trim().is_empty()).take(LINES_MAX).collect();
    let (mut cut, shape) = headed(&lines)
        .or_else(|| as_json(&text, &lines))
        .or_else(|| as_xml(&text))
        .or_else(|| as_trace(&lines))
        .or_else(|| as_parts(&lines))
        .or_else(|| formats::of_lines(&lines).map(by_format))
        .or_else(|| as_bodyfile(&lines))
        .or_else(|| as_table(&lines))
        .unwrap_or_else(|| (plain_cut(), as_lines(&lines)));
    if matches!(cut, Cut::Json(_)) {
        let numbered = shares_lines(head.get(skip..).unwrap_or_default(), &cut);
        if let Cut::Json(json) = &mut cut {
            json.numbered = numbered;
        }
    }
    let local = lines.iter().take_while(|l| l.starts_with('#')).any(|l| l.starts_with("#Time Format: Local"));
    Detected { cut, shape, skip: skip as u64, local }
}

const fn plain_cut() -> Cut {
    Cut::Lines(Lines { header: false, comments: false, join: Join::Never, events: None, begins: None, ends: None })
}

/// Zeek and W3C logs name their format in a header. Most records must follow it, since a record may look like one.
fn headed(lines: &[&str]) -> Option<(Cut, Shape)> {
    let cut = Cut::Lines(Lines { comments: true, ..Lines::default() });
    let head: Vec<&&str> = lines.iter().take_while(|l| l.starts_with('#')).collect();
    let records = || lines.iter().filter(|line| !line.starts_with('#'));
    let follow = |cells: &dyn Fn(&str) -> usize, columns: &[String]| {
        let fit = records().filter(|line| cells(line) == columns.len()).count();
        fit * 2 > records().count() || records().next().is_none()
    };
    if let Some(fields) = head.iter().find_map(|l| l.strip_prefix("#fields\t")) {
        let columns: Vec<String> = fields.split('\t').map(str::to_owned).collect();
        let fits = follow(&|line| line.split('\t').count(), &columns);
        return fits.then(|| (cut, Shape { columns, delimiter: b'\t', ..Shape::of(Format::ZeekTsv) }));
    }
    let fields = head.iter().find_map(|l| l.strip_prefix("#Fields:"))?;
    let columns: Vec<String> = fields.split_whitespace().map(str::to_owned).collect();
    let fits = follow(&|line| table::cells(line, b' ').len(), &columns);
    fits.then(|| (cut, Shape { columns, delimiter: b' ', ..Shape::of(Format::W3c) }))
}

fn as_json(text: &str, lines: &[&str]) -> Option<(Cut, Shape)> {
    let start = text.trim_start();
    let objects = lines.iter().filter(|l| json::is_object(l)).count();
    if objects * 2 >= lines.len() && objects > 0 {
        // Check several lines, because a single record may contain a list of objects.
        let keys = lines.first().and_then(|line| container(line));
        let alike = |keys: &Vec<String>| lines.iter().take(20).all(|l| container(l).as_ref() == Some(keys));
        let keys = keys.filter(|keys| alike(keys) && !lines.iter().skip(1).any(|line| has_time(line, keys)));
        return match keys {
            Some(keys) => Some(array(keys)),
            None => Some((plain_cut(), Shape::of(Format::Ndjson))),
        };
    }
    if let Some(inner) = start.strip_prefix('[') {
        let inner = inner.trim_start();
        let first = inner.trim_start_matches('[').trim_start();
        return (first.starts_with(['{', '"', ']']) || first.is_empty()).then(|| array(Vec::new()));
    }
    if !start.starts_with('{') {
        return None;
    }
    // A pretty-printed object must have a key.
    if !start.trim_start_matches('{').trim_start().starts_with(['"', '}']) {
        return None;
    }
    match container(start) {
        Some(keys) => Some(array(keys)),
        None => Some((json_cut(JsonPlace::Top), Shape::of(Format::JsonObjects))),
    }
}

fn array(keys: Vec<String>) -> (Cut, Shape) {
    (json_cut(JsonPlace::Array(keys)), Shape::of(Format::JsonArray))
}

const fn json_cut(place: JsonPlace) -> Cut {
    Cut::Json(Json { place, numbered: false })
}

/// Whether two of the first records begin on one line.
fn shares_lines(head: &[u8], cut: &Cut) -> bool {
    let (mut cutter, mut bytes, mut before) = (Cutter::new(head, cut, 0, 1), Vec::new(), 0);
    for _ in 0..LINES_MAX {
        let Ok(Some(piece)) = cutter.next(&mut bytes) else { break };
        if piece.line == before {
            return true;
        }
        before = piece.line;
    }
    false
}

/// The names of the array of records in common exports.
const CONTAINERS: [&str; 20] = [
    "records",
    "value",
    "values",
    "events",
    "logs",
    "items",
    "data",
    "results",
    "result",
    "hits",
    "entries",
    "rows",
    "logevents",
    "auditlogs",
    "activities",
    "alerts",
    "findings",
    "list",
    "resources",
    "messages",
];

/// The path to the only array of objects in an object; none if the object itself is a record. `text` may be cut
/// off.
fn container(text: &str) -> Option<Vec<String>> {
    let mut arrays: Vec<(Vec<String>, usize, usize)> = Vec::new();
    let mut total = 0;
    let _ = json::flatten(text, "", &mut |path, value| {
        let size = path.len() + value.len();
        total += size;
        let segments: Vec<&str> = path.split('.').collect();
        let at = segments.iter().position(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()));
        // Paths of elements in arrays of objects continue after the position.
        let Some(at) = at.filter(|at| (1..=3).contains(at) && segments.len() > at + 1) else { return };
        if arrays.len() >= 256 {
            return;
        }
        let keys: Vec<String> = segments.iter().take(at).map(|s| (*s).to_owned()).collect();
        let index = segments.get(at).and_then(|s| s.parse::<usize>().ok()).unwrap_or(0);
        match arrays.iter_mut().find(|(known, ..)| *known == keys) {
            Some((_, elements, bytes)) => {
                *elements = (*elements).max(index + 1);
                *bytes += size;
            }
            None => arrays.push((keys, index + 1, size)),
        }
    });
    let named =
        |keys: &[String]| keys.last().is_some_and(|key| CONTAINERS.contains(&key.to_ascii_lowercase().as_str()));
    arrays
        .into_iter()
        .filter(|(keys, elements, bytes)| bytes * 2 > total && (named(keys) || *elements >= 8))
        .max_by_key(|(_, _, bytes)| *bytes)
        .map(|(keys, ..)| keys)
}

/// Whether the object has a time, but the objects in the array at `keys` do not: then the object is the record.
fn has_time(object: &str, keys: &[String]) -> bool {
    let (mut outside, mut inside) = (false, false);
    let inner = format!("{}.", keys.join("."));
    let _ = json::flatten(object, "", &mut |path, value| {
        let is_time = matches!(names::class(path), Class::Utc | Class::Own(_))
            && text::parse(&value, Reading { numbers: true, day_first: false }).is_some();
        match path.starts_with(&inner) {
            true => inside |= is_time,
            false => outside |= is_time,
        }
    });
    outside && !inside
}

fn as_xml(text: &str) -> Option<(Cut, Shape)> {
    let start = text.trim_start();
    let events = start.starts_with("<Event") || (start.starts_with('<') && start.contains("<Event"));
    let cut = Cut::Lines(Lines { join: Join::Events, ..Lines::default() });
    (events && start.contains("<System")).then(|| (cut, Shape::of(Format::XmlEvents)))
}

/// Configuration Manager. Its records may have several lines.
fn as_trace(lines: &[&str]) -> Option<(Cut, Shape)> {
    let cut = Cut::Lines(Lines { join: Join::Log, ..Lines::default() });
    let ends = lines.iter().filter(|line| line.contains(r#"]LOG]!><time=""#)).count();
    (lines.first()?.starts_with("<![LOG[") && ends * 4 >= lines.len()).then(|| (cut, Shape::of(Format::CmTrace)))
}

/// The audit log of ModSecurity: a record begins with `--ID-A--`.
fn as_parts(lines: &[&str]) -> Option<(Cut, Shape)> {
    let begins = |line: &&str| modsec::boundary(line.as_bytes()).is_some_and(|(_, part)| part == b'A');
    let at = lines.iter().take(2).position(begins)?;
    let cut = Cut::Lines(Lines { join: Join::Parts, ..Lines::default() });
    lines.get(at + 1)?.starts_with('[').then(|| (cut, Shape::of(Format::ModSecurity)))
}

/// The body file of The Sleuth Kit has no header.
const BODYFILE: [&str; 11] =
    ["md5", "name", "inode", "mode", "uid", "gid", "size", "atime", "mtime", "ctime", "crtime"];

/// A list of files with times, in the format of `fls -m` and `mactime`.
fn as_bodyfile(lines: &[&str]) -> Option<(Cut, Shape)> {
    let row = |line: &&&str| {
        let cells: Vec<&str> = line.split('|').collect();
        let digest = |cell: &str| cell == "0" || cell.len() == 32 && cell.bytes().all(|b| b.is_ascii_hexdigit());
        let number = |cell: &&str| !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        cells.len() == BODYFILE.len()
            && cells.first().is_some_and(|cell| digest(cell))
            && cells.get(3).is_some_and(|mode| mode.contains('/'))
            && cells.iter().skip(6).all(number)
    };
    let rows = lines.iter().filter(|line| !line.starts_with('#'));
    let fit = rows.clone().filter(row).count();
    let cut = Cut::Lines(Lines { comments: true, ..Lines::default() });
    let columns = BODYFILE.iter().map(|&name| name.to_owned()).collect();
    (fit > 0 && fit * 10 >= rows.count() * 9)
        .then(|| (cut, Shape { columns, delimiter: b'|', ..Shape::of(Format::Csv) }))
}

fn as_table(lines: &[&str]) -> Option<(Cut, Shape)> {
    let header = lines.first()?;
    for (delimiter, least) in [(b',', 2), (b'\t', 2), (b';', 3), (b'|', 3), (b' ', 6)] {
        let columns = table::cells(header, delimiter);
        if columns.len() < least || !columns.iter().all(|c| names_a_column(c)) || repeated(&columns) {
            continue;
        }
        let (fit, more, all) = rows(lines, delimiter, columns.len());
        // Blanks also separate words of text, so with blanks every row must match.
        let most = if delimiter == b' ' { fit == all && all > 0 } else { fit.max(more) * 10 >= all * 7 };
        if lines.len() == 1 && delimiter != b' ' || most {
            let mut columns = columns;
            if more > fit {
                // The Windows event viewer omits the name of the message column.
                columns.push("Message".to_owned());
            }
            let format = if delimiter == b'\t' { Format::Tsv } else { Format::Csv };
            // The Azure portal adds the zone to the names of time columns. Without one, times are UTC as well.
            let named = |column: &String| column.trim().trim_end_matches(" [UTC]").to_owned();
            let columns = columns.iter().map(named).collect();
            let cut = Cut::Lines(Lines { header: true, join: Join::Quotes, ..Lines::default() });
            return Some((cut, Shape { columns, delimiter, ..Shape::of(format) }));
        }
    }
    None
}

/// Of the first rows: how many have this number of cells, how many have one more, and how many there are.
fn rows(lines: &[&str], delimiter: u8, columns: usize) -> (usize, usize, usize) {
    let (mut fit, mut more, mut all) = (0, 0, 0);
    let mut row = String::new();
    for line in lines.iter().skip(1) {
        row.push_str(line);
        if !table::closed(row.as_bytes()) && row.len() < 1 << 16 {
            row.push('\n');
            continue;
        }
        let cells = table::cells(&row, delimiter).len();
        all += 1;
        fit += usize::from(cells == columns);
        more += usize::from(cells == columns + 1);
        row.clear();
    }
    (fit, more, all)
}

fn names_a_column(cell: &str) -> bool {
    let cell = cell.trim();
    let first = cell.chars().next();
    cell.len() <= 64
        && first.is_none_or(|c| c.is_alphabetic() || matches!(c, '_' | '@' | '#' | '$'))
        && !cell.contains(['=', '{', '"'])
        && cell.split_whitespace().count() <= 4
        && super::time::text::prefix(cell, super::time::text::Reading::default()).is_none()
}

fn repeated(columns: &[String]) -> bool {
    let mut names: Vec<&str> = columns.iter().map(|c| c.trim()).filter(|c| !c.is_empty()).collect();
    let filled = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < filled || filled * 2 < columns.len() || filled == 0
}

fn as_lines(lines: &[&str]) -> Shape {
    let format = by_lines(lines);
    let time = (format == Format::Plain).then(|| Place::of(lines)).flatten();
    Shape { time, ..Shape::of(format) }
}

fn by_lines(lines: &[&str]) -> Format {
    let dated = |line: &str, dated: bool| syslog::header(line).is_some_and(|h| h.dated == dated && has_host(&h));
    type Follows<'f> = &'f dyn Fn(&str) -> bool;
    let candidates: [(Format, Follows<'_>); 6] = [
        (Format::Cef, &|l| l.contains("EF:") && keyvalue::cef(l).is_some()),
        (Format::AccessLog, &|l| access::fields(l).is_some()),
        (Format::Auditd, &|l| {
            l.contains("type=") && auditd::fields(l).is_some() && !dated(l, true) && !dated(l, false)
        }),
        (Format::Syslog, &|l| dated(l, false)),
        (Format::SyslogIso, &|l| dated(l, true)),
        (Format::KeyValue, &|l| begins_with_pair(l)),
    ];
    for (format, follows) in candidates {
        let hits = lines.iter().filter(|l| follows(l)).count();
        if hits > 0 && hits * 2 >= lines.len() {
            return format;
        }
    }
    Format::Plain
}

fn has_host(header: &syslog::Header<'_>) -> bool {
    header.host.is_some() || header.pri.is_some()
}

fn begins_with_pair(line: &str) -> bool {
    let body = match line.strip_prefix('<') {
        Some(rest) => rest.split_once('>').map_or(line, |(_, body)| body),
        None => line,
    };
    let head: String = body.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
    let pairs = body.get(head.len()..).is_some_and(|rest| rest.starts_with('=')) && !head.is_empty();
    (pairs && (keyvalue::looks_like_pairs(body) || keyvalue::comma_pairs(body).is_some()))
        || (!pairs && keyvalue::looks_like_pairs(body))
}

#[cfg(test)]
mod tests;
