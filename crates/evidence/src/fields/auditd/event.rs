//! Lines of one event: they have the same time, serial number and node. Each stays a record, and shows what the
//! others know.

use std::collections::VecDeque;
use std::ops::Range;

use super::fields;

type Fields = Vec<(String, String)>;

/// How far an event reaches, because other events may be written between its lines.
const REACH_LINES: usize = 64;
const REACH_BYTES: usize = 32 << 10;
/// Lines of one event that are read. A system call with many arguments or paths has dozens.
const LINES_MAX: usize = 64;
/// Bytes of the lines of events that are not complete.
const PENDING_MAX: usize = 4 << 20;

/// The event of a line: its node, and time and serial number as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id<'l> {
    node: &'l [u8],
    stamp: &'l [u8],
}

fn id(line: &[u8]) -> Option<Id<'_>> {
    let at = memchr::memmem::find(line, b"audit(")? + 6;
    let rest = line.get(at..)?;
    let end = memchr::memchr(b')', rest.get(..64).unwrap_or(rest))?;
    let node = line.strip_prefix(b"node=").and_then(|rest| rest.split(|b| *b == b' ').next());
    Some(Id { node: node.unwrap_or_default(), stamp: rest.get(..end)? })
}

/// The other lines of the event whose line is at `own` in `text`, in order.
pub(crate) fn others(text: &[u8], own: Range<usize>) -> Vec<&[u8]> {
    let Some(wanted) = text.get(own.clone()).and_then(id) else { return Vec::new() };
    let before = text.get(own.start.saturating_sub(REACH_BYTES)..own.start).unwrap_or_default();
    let after = text.get(own.end..own.end.saturating_add(REACH_BYTES).min(text.len())).unwrap_or_default();
    // The ends of the window may cut lines.
    let whole = if own.start > REACH_BYTES { memchr::memchr(b'\n', before).map_or(before.len(), |n| n + 1) } else { 0 };
    let last = if own.end.saturating_add(REACH_BYTES) < text.len() { memchr::memrchr(b'\n', after) } else { None };
    let mut earlier: Vec<&[u8]> = lines(before.get(whole..).unwrap_or_default()).rev().take(REACH_LINES).collect();
    earlier.reverse();
    let later = lines(last.map_or(after, |end| after.get(..end).unwrap_or_default())).take(REACH_LINES);
    let same = |line: &&[u8]| id(line) == Some(wanted);
    earlier.into_iter().chain(later).filter(same).take(LINES_MAX).collect()
}

/// How many bytes before and after a line may hold lines of its event.
pub(crate) const fn reach() -> usize {
    REACH_BYTES
}

fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty())
}

/// Adds to the fields of a line what the other lines of its event say. A field that the line has with another value
/// gets the type of the other line as prefix: `execve.a0`. Paths are `path.<item>.name`.
pub(crate) fn join(own: &mut Fields, others: &[&[u8]]) {
    if others.is_empty() || own.is_empty() {
        return;
    }
    let value = |fields: &Fields, name: &str| fields.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
    let mut paths: Vec<(String, String, String)> = Vec::new();
    let mut path = |fields: &Fields| {
        let get = |name: &str| value(fields, name).unwrap_or_default();
        paths.push((get("item"), get("name"), get("nametype")));
    };
    let is_path = |fields: &Fields| value(fields, "type").is_some_and(|kind| kind == "PATH");
    if is_path(own) {
        path(own);
    }
    let mut shared = Fields::new();
    for line in others {
        let Some(other) = fields(&String::from_utf8_lossy(line)) else { continue };
        let kind = value(&other, "type").unwrap_or_default();
        shared.push(("event.type".to_owned(), kind.clone()));
        if is_path(&other) {
            path(&other);
            continue;
        }
        for (name, text) in other {
            // The arguments of a system call are addresses.
            let register = kind == "SYSCALL" && matches!(name.as_str(), "a0" | "a1" | "a2" | "a3");
            if register || matches!(name.as_str(), "type" | "node" | "items") || name.starts_with("audit.") {
                continue;
            }
            match own.iter().chain(&shared).find(|(known, _)| *known == name) {
                None => shared.push((name, text)),
                Some((_, known)) if *known == text => {}
                Some(_) => shared.push((format!("{}.{name}", kind.to_ascii_lowercase()), text)),
            }
        }
    }
    own.append(&mut shared);
    paths.sort();
    let changed = |kind: &str| matches!(kind, "CREATE" | "DELETE");
    let object = paths.iter().find(|(.., kind)| changed(kind)).or_else(|| paths.iter().find(|p| p.2 != "PARENT"));
    if let Some((_, name, _)) = object.filter(|_| value(own, "name").is_none()) {
        own.push(("name".to_owned(), name.clone()));
    }
    for (item, name, kind) in paths {
        own.push((format!("path.{item}.name"), name));
        own.push((format!("path.{item}.nametype"), kind));
    }
    ends(own);
}

/// The other end of a connection, by the system call and the address.
fn ends(own: &mut Fields) {
    let get = |name: &str| own.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let (Some(address), Some(call)) = (get("laddr"), get("SYSCALL")) else { return };
    let names = match call.as_str() {
        "connect" | "sendto" | "sendmsg" => ("dest_ip", "dest_port"),
        "accept" | "accept4" | "recvfrom" | "recvmsg" => ("src_ip", "src_port"),
        _ => return,
    };
    let port = get("lport");
    own.push((names.0.to_owned(), address));
    own.extend(port.map(|port| (names.1.to_owned(), port)));
}

/// Gathers the lines of events while a file is read, so that rules see each event once.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    pending: VecDeque<Pending<T>>,
    bytes: usize,
    lines: usize,
}

/// An event: what was given with its first line, the fields of that line, and the other lines.
#[derive(Debug)]
struct Pending<T> {
    first: T,
    line: Vec<u8>,
    fields: Fields,
    others: Vec<Vec<u8>>,
    /// The number of the last line.
    last: usize,
    over: bool,
}

/// A whole event: what was given with its first line, that line, and the fields of the event.
pub(crate) type Whole<T> = (T, Vec<u8>, Fields);

impl<T> Default for Gather<T> {
    fn default() -> Self {
        Self { pending: VecDeque::new(), bytes: 0, lines: 0 }
    }
}

impl<T> Gather<T> {
    /// Takes the next line of the file, and gives the events that are complete.
    pub(crate) fn add(&mut self, given: T, line: &[u8], fields: &[(String, String)], whole: &mut dyn FnMut(Whole<T>)) {
        self.lines += 1;
        self.bytes += line.len();
        let wanted = id(line);
        let known = self.pending.iter_mut().rev().find(|event| wanted.is_some() && id(&event.line) == wanted);
        let ends = line.starts_with(b"type=EOE ") || memchr::memmem::find(line, b" type=EOE ").is_some();
        match known {
            Some(event) => {
                event.last = self.lines;
                event.over |= ends || wanted.is_none();
                if event.others.len() < LINES_MAX {
                    event.others.push(line.to_vec());
                }
            }
            None => self.pending.push_back(Pending {
                first: given,
                line: line.to_vec(),
                fields: fields.to_vec(),
                others: Vec::new(),
                last: self.lines,
                over: ends || wanted.is_none(),
            }),
        }
        while self
            .pending
            .front()
            .is_some_and(|event| event.over || self.lines - event.last > REACH_LINES || self.bytes > PENDING_MAX)
        {
            self.give(whole);
        }
    }

    /// Gives the events that are left at the end of the file.
    pub(crate) fn finish(&mut self, whole: &mut dyn FnMut(Whole<T>)) {
        while !self.pending.is_empty() {
            self.give(whole);
        }
    }

    fn give(&mut self, whole: &mut dyn FnMut(Whole<T>)) {
        let Some(Pending { first, line, mut fields, others, .. }) = self.pending.pop_front() else { return };
        self.bytes = self.bytes.saturating_sub(line.len() + others.iter().map(Vec::len).sum::<usize>());
        join(&mut fields, &others.iter().map(Vec::as_slice).collect::<Vec<_>>());
        whole((first, line, fields));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, serial: usize) -> String {
        format!("type={kind} msg=audit(1700000000.001:{serial}): x={kind}{serial}")
    }

    #[test]
    fn event_is_given_once_and_in_order() {
        let lines = [line("SYSCALL", 1), line("SYSCALL", 2), line("EXECVE", 1), line("EOE", 1), line("EXECVE", 2)];
        let (mut gather, mut given) = (Gather::default(), Vec::new());
        let mut take = |(first, _, fields): Whole<usize>| given.push((first, fields));
        for (number, text) in lines.iter().enumerate() {
            gather.add(number, text.as_bytes(), &fields(text).unwrap(), &mut take);
        }
        gather.finish(&mut take);
        let types = |fields: &Fields| {
            let kinds = fields.iter().filter(|(name, _)| name == "event.type").map(|(_, kind)| kind.clone());
            kinds.collect::<Vec<_>>().join(" ")
        };
        let shown: Vec<(usize, String)> = given.iter().map(|(n, fields)| (*n, types(fields))).collect();
        assert_eq!(shown, [(0, "EXECVE EOE".to_owned()), (1, "EXECVE".to_owned())]);
        assert_eq!(gather.bytes, 0);
    }

    #[test]
    fn event_without_end_is_given_after_the_reach() {
        let (mut gather, mut given) = (Gather::default(), Vec::new());
        for serial in 0..=REACH_LINES + 1 {
            let text = line("SYSCALL", serial);
            gather.add(serial, text.as_bytes(), &Vec::new(), &mut |(first, ..)| given.push(first));
        }
        assert_eq!(given, [0]);
    }

    #[test]
    fn lines_of_another_node_or_beyond_the_reach_are_not_of_the_event() {
        let far = format!("{}\n", line("OTHER", 9)).repeat(REACH_LINES + 1);
        let [own, near] = [line("SYSCALL", 1), line("PATH", 1)];
        let text = format!("{near}\nnode=b {near}\n{own}\n{far}{near}\n");
        let at = text.find(&own).unwrap();
        let found = others(text.as_bytes(), at..at + own.len());
        assert_eq!(found, [near.as_bytes()]);
    }
}
