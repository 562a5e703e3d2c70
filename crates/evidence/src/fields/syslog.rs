//! Syslog lines, and well-known messages of sshd, sudo and similar programs.

use std::cell::RefCell;
use std::sync::LazyLock;

use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Input, PatternID};
use regex_syntax::hir::literal::Extractor;

use super::field;
use crate::time::text::{Reading, prefix};

type Fields = Vec<(String, String)>;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Header<'t> {
    pub(crate) pri: Option<&'t str>,
    pub(crate) time: &'t str,
    /// The time has a year.
    pub(crate) dated: bool,
    pub(crate) host: Option<&'t str>,
    pub(crate) program: Option<&'t str>,
    pub(crate) pid: Option<&'t str>,
    pub(crate) structured: &'t str,
    pub(crate) message: &'t str,
}

/// None if the line does not begin with a time and a program.
pub(crate) fn header(line: &str) -> Option<Header<'_>> {
    let mut header = Header::default();
    let mut rest = line;
    if let Some(inner) = rest.strip_prefix('<') {
        let end = inner.find('>').filter(|end| *end <= 3)?;
        header.pri = inner.get(..end);
        rest = inner.get(end + 1..)?;
        if let Some(body) = rest.strip_prefix("1 ") {
            return rfc5424(header, body);
        }
    }
    let (moment, used) = prefix(rest, Reading::default())?;
    header.time = rest.get(..used)?;
    header.dated = moment.dated;
    rest = rest.get(used..)?.strip_prefix(' ')?.trim_start();
    let (first, after) = word(rest);
    if first.ends_with(':') {
        return with_program(header, rest);
    }
    let hostlike = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'%' | b'@' | b'/');
    if first.is_empty() || !first.bytes().all(hostlike) {
        return None;
    }
    header.host = Some(first);
    with_program(header, after)
}

fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(a, b)| (a, b.trim_start()))
}

/// `program[pid]: message`.
fn with_program<'t>(mut header: Header<'t>, rest: &'t str) -> Option<Header<'t>> {
    // Cisco writes an extra colon between host and message.
    let rest = rest.strip_prefix(": ").unwrap_or(rest);
    let end = rest.find(": ").or_else(|| rest.ends_with(':').then(|| rest.len() - 1))?;
    let tag = rest.get(..end)?;
    let named =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/' | b'(' | b')' | b'%' | b'@' | b'+');
    let (program, pid) = match tag.split_once('[') {
        Some((program, pid)) => (program, pid.strip_suffix(']')),
        None => (tag, None),
    };
    if program.is_empty() || program.len() > 64 || !program.bytes().all(named) {
        return None;
    }
    header.program = Some(program);
    header.pid = pid;
    header.message = rest.get(end + 1..)?.trim_start_matches(' ');
    Some(header)
}

fn rfc5424<'t>(mut header: Header<'t>, body: &'t str) -> Option<Header<'t>> {
    let mut parts = body.splitn(6, ' ');
    let some = |part: Option<&'t str>| part.filter(|p| *p != "-");
    header.time = parts.next()?;
    header.dated = true;
    header.host = some(parts.next());
    header.program = some(parts.next());
    header.pid = some(parts.next());
    let _message_id = parts.next();
    let rest = parts.next().unwrap_or_default();
    let end = structured_end(rest);
    header.structured = rest.get(..end)?;
    header.message = rest.get(end..)?.trim_start().trim_start_matches('\u{feff}');
    Some(header)
}

fn structured_end(text: &str) -> usize {
    if !text.starts_with('[') {
        return usize::from(text.starts_with('-'));
    }
    let (mut quoted, mut escaped) = (false, false);
    let bytes = text.as_bytes();
    for (at, b) in bytes.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b']' if !quoted && bytes.get(at + 1) != Some(&b'[') => return at + 1,
            _ => {}
        }
    }
    0
}

/// True if the message is a well-known one, so that it has no other fields.
pub(crate) fn fields(header: &Header<'_>, out: &mut Fields) -> bool {
    let mut add = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.push(field(name, value));
        }
    };
    add("timestamp", Some(header.time));
    add("pri", header.pri);
    add("host", header.host);
    add("program", header.program);
    add("pid", header.pid);
    add("message", Some(header.message));
    for pair in super::keyvalue::pairs(header.structured, super::keyvalue::Reach::Word) {
        out.push((format!("sd.{}", pair.key), pair.value.trim_end_matches(']').to_owned()));
    }
    header.program.is_some_and(|program| known(program, header.message, out))
}

/// Messages whose wording has been stable for decades. Group names become field names.
const KNOWN: [(&str, &str); 15] = [
    // Without alternatives that begin alike, the groups are found in one pass over the text.
    (
        "sshd",
        r"^(?<outcome>Accepted|Failed|Postponed) (?<method>\S+) for invalid user (?<user>\S*) from (?<src_ip>\S+) port (?<src_port>\d+)",
    ),
    (
        "sshd",
        r"^(?<outcome>Accepted|Failed|Postponed) (?<method>\S+) for (?<user>\S*) from (?<src_ip>\S+) port (?<src_port>\d+)",
    ),
    ("sshd", r"^(?<outcome>Invalid) user (?<user>\S*) from (?<src_ip>\S+)(?: port (?<src_port>\d+))?"),
    (
        "sshd",
        r"^(?<outcome>Connection closed|Connection reset|Disconnected|Disconnecting|Received disconnect|Connection) (?:by |from )?(?:(?:authenticating |invalid )?user (?<user>\S*) )?(?<src_ip>[0-9a-fA-F.:]+) port (?<src_port>\d+)",
    ),
    ("sshd", r"^User (?<user>\S+) from (?<src_ip>\S+) (?<outcome>not allowed)"),
    (
        "sudo",
        r"^\s*(?<user>\S+) : (?:(?<outcome>[^;=]+) ; )?(?:HOST=\S+ ; )?TTY=(?<tty>\S+) ; (?:CHROOT=.*? ; )?PWD=(?<cwd>.*?) ; USER=(?<target_user>\S+) ; (?:(?:GROUP|ENV|TSID|LOGID|HOST|CHROOT)=.*? ; )*?COMMAND=(?<command>.*)$",
    ),
    // Some exports lose the separators. Then only the last part may contain blanks.
    (
        "sudo",
        r"^\s*(?<user>\S+) : TTY=(?<tty>\S+)  +PWD=(?<cwd>[^\s;]+)  +USER=(?<target_user>[^\s;]+)  +COMMAND=(?<command>.*)$",
    ),
    ("su", r"^\(to (?<target_user>\S+)\) (?<user>\S+) on (?<tty>\S+)"),
    ("su", r"^(?<outcome>Successful|FAILED) su for (?<target_user>\S+) by (?<user>\S+)"),
    (
        "pam_",
        r"^\s*pam_unix\((?<service>[^\s:]+):\w+\): session (?<outcome>opened|closed) for user (?<user>[^\s(]+)(?:\(uid=(?<uid>\d+)\))?(?: by (?<by_user>[^\s(]*))?",
    ),
    (
        "pam_",
        r"^\s*pam_unix\((?<service>\S+?):auth\): (?<outcome>authentication failure);.*rhost=(?<src_ip>\S*)(?:\s+user=(?<user>\S+))?",
    ),
    ("cron", r"^\((?<user>\S+)\) CMD \((?<command>.*)\)"),
    ("useradd", r"^(?<outcome>new user): name=(?<user>[^,\s]+)"),
    ("systemd-logind", r"^(?<outcome>New session|Removed session) (?<session>\S+?)\.?(?: of user (?<user>\S+?)\.?)?$"),
    ("passwd", r"password (?<outcome>changed) for (?<user>\S+)"),
];

/// One of [`KNOWN`].
struct Known {
    program: &'static str,
    pattern: Regex,
    /// The place of each field among the groups, and its name.
    names: Vec<(usize, String)>,
    /// A message begins with one of these. Empty if it may begin with any text.
    beginnings: Vec<Vec<u8>>,
}

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
static PATTERNS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = |(program, pattern): &(&'static str, &str)| {
        // Without Unicode the automaton is a tenth as large. Only ASCII separates the parts of these messages.
        // Messages are short, so a search for their end before the groups are found costs more than it saves.
        let mut builder = Regex::builder();
        builder.configure(Config::new().hybrid(false)).syntax(syntax::Config::new().unicode(false).utf8(false));
        let regex = builder.build(pattern).expect("a known message is a regular expression");
        let parsed = regex_syntax::parse(pattern).ok().filter(|_| pattern.starts_with('^'));
        let found = parsed.map(|hir| Extractor::new().extract(&hir));
        let literals = found.as_ref().and_then(|found| found.literals()).unwrap_or_default();
        let beginnings: Vec<Vec<u8>> = literals.iter().map(|literal| literal.as_bytes().to_vec()).collect();
        let names = regex
            .group_info()
            .pattern_names(PatternID::ZERO)
            .enumerate()
            .filter_map(|(place, name)| Some((place, name?.to_owned())));
        Known { program, names: names.collect(), pattern: regex, beginnings }
    };
    KNOWN.iter().map(known).collect()
});

impl Known {
    /// False if the message cannot match.
    fn may_match(&self, program: &str, message: &str) -> bool {
        let speaks = match self.program {
            "pam_" => message.trim_start().starts_with("pam_unix("),
            of => program.get(..of.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(of)),
        };
        let begins = |text: &Vec<u8>| message.as_bytes().starts_with(text);
        speaks && (self.beginnings.is_empty() || self.beginnings.iter().any(begins))
    }
}

/// Reads a well-known message in a field, without a program name.
pub(crate) fn collected(message: &str) -> Option<Fields> {
    // Plaso writes the program and its process id first.
    let tagged = message.strip_prefix('[').and_then(|rest| rest.split_once("] ")).filter(|(tag, _)| tag.len() <= 64);
    let message = tagged.map_or(message, |(_, words)| words);
    let program = match message.as_bytes().first()? {
        b'A' if message.starts_with("Accepted ") => "sshd",
        b'F' if message.starts_with("Failed ") && message.contains(" from ") => "sshd",
        b'I' if message.starts_with("Invalid user ") => "sshd",
        _ if message.contains(" COMMAND=") && message.contains("TTY=") => "sudo",
        _ if message.starts_with("pam_unix(") => "pam_",
        _ => return None,
    };
    let mut found = Fields::new();
    known(program, message, &mut found).then_some(found)
}

thread_local! {
    /// For each of [`PATTERNS`], the memory of its search and the places of its groups in a message.
    static PLACES: RefCell<Vec<(Cache, Captures)>> =
        RefCell::new(PATTERNS.iter().map(|known| (known.pattern.create_cache(), known.pattern.create_captures())).collect());
}

/// False if the message is not one of [`KNOWN`].
pub(crate) fn known(program: &str, message: &str, out: &mut Fields) -> bool {
    PLACES.with_borrow_mut(|places| known_at(program, message, places, out))
}

fn known_at(program: &str, message: &str, places: &mut [(Cache, Captures)], out: &mut Fields) -> bool {
    let program = program.rsplit('/').next().unwrap_or(program);
    let input = Input::new(message);
    for (known, (cache, found)) in PATTERNS.iter().zip(places).filter(|(known, _)| known.may_match(program, message)) {
        known.pattern.search_captures_with(cache, &input, found);
        if found.is_match() {
            // A folder name or command may look like these parts. Then it is unclear which are real.
            let unclear = known.program == "sudo" && message.matches(" ; USER=").count() > 1;
            for (place, name) in &known.names {
                let clear = !unclear || matches!(name.as_str(), "user" | "tty" | "outcome");
                if let Some(value) =
                    found.get_group(*place).filter(|_| clear).and_then(|span| message.get(span.range()))
                {
                    out.push(field(name, value));
                }
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        assert_eq!(PATTERNS.len(), KNOWN.len());
    }
}
