//! Reads fields that are packed into a value: JSON, XML, audit records, CEF, messages, `key=value` text.

use super::json::{self, Outcome};
use super::{auditd, field, ids, keyvalue, message, modsec, owned, plaso, syslog, xml};

type Fields = Vec<(String, String)>;

/// For example, a syslog line with JSON that holds XML has two levels.
const LEVELS: u8 = 2;
pub(crate) const FIELDS_MAX: usize = 4_096;

pub(crate) fn expand(path: &str, value: &str, out: &mut Fields) {
    unpack(path, value, LEVELS, out);
}

fn unpack(path: &str, value: &str, levels: u8, out: &mut Fields) {
    if levels == 0 || value.len() < 6 || out.len() >= FIELDS_MAX {
        return;
    }
    let inner = inner(path, value);
    for (name, value) in inner {
        let mut full = owned(path);
        full.push_str(if path.is_empty() { "" } else { "." });
        full.push_str(&name);
        if out.len() >= FIELDS_MAX {
            return;
        }
        let more = packed(&value).then(|| (full.clone(), value.clone()));
        out.push((full, value));
        if let Some((path, value)) = more {
            unpack(&path, &value, levels - 1, out);
        }
    }
}

/// A quick test, because nearly all values hold no fields.
pub(crate) fn packed(value: &str) -> bool {
    value.len() >= 6
        && (matches!(value.as_bytes().first(), Some(b'{' | b'[' | b'<' | b' ' | b'\n'))
            || memchr::memchr2(b'=', b'\n', value.as_bytes()).is_some()
            || (memchr::memchr2(b'F', b'[', value.as_bytes()).is_some()
                && (value.contains("EF:") || value.contains("[id \"")))
            || BEGINNINGS.iter().any(|begin| value.starts_with(begin)))
}

/// Fields in which a collector stores the text of another program. In other fields, such as a user name, the
/// recorded party chooses the text.
const MESSAGES: [&str; 13] = [
    "message",
    "msg",
    "syslogmessage",
    "log",
    "rawdata",
    "fullmessage",
    "shortmessage",
    "eventmessage",
    "logmessage",
    "rawmessage",
    "textpayload",
    "fulllog",
    "logline",
];
/// These count only as the whole path: `user_agent.original` is not a message.
const OF_THE_WHOLE: [&str; 6] = ["original", "text", "raw", "desc", "body", "line"];

pub fn is_message(path: &str) -> bool {
    let mut parts = path.rsplit('.').filter(|part| !part.bytes().all(|b| b.is_ascii_digit()));
    let name = parts.next().unwrap_or_default();
    let whole =
        parts.next().is_none_or(|above| above.eq_ignore_ascii_case("event") || above.eq_ignore_ascii_case("log"));
    let plain = || name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
    let is = |names: &[&str]| names.iter().any(|message| plain().eq(message.bytes()));
    is(&MESSAGES) || whole && is(&OF_THE_WHOLE)
}

/// True if field names may be missing from the text.
pub(crate) fn renames(value: &str) -> bool {
    value.starts_with('[') && value.contains("Source Name: ")
        || value.contains("Subject:")
        || value.contains("COMMAND=")
        || value.contains("[Priority: ")
        || value.contains("[id \"")
        || BEGINNINGS.iter().any(|begin| value.starts_with(begin))
}

/// Sign-in messages without `key=value` pairs.
const BEGINNINGS: [&str; 4] = ["Accepted ", "Failed ", "Invalid user ", "pam_unix("];

/// Gives values of XML that was made JSON the names that they had: `Data.3.@Name` and `Data.3.#text` become one field, as
/// for `<Data Name="LogonType">3</Data>`.
fn by_name(found: Fields) -> Fields {
    if !found.iter().any(|(path, _)| path.ends_with(".@Name")) {
        return found;
    }
    let mut out = Fields::with_capacity(found.len());
    let mut open: Option<(String, String)> = None;
    for (path, value) in found {
        if let Some(element) = path.strip_suffix(".@Name") {
            let listed = |(_, last): &(&str, &str)| last.bytes().all(|b| b.is_ascii_digit());
            let element_of = element.rsplit_once('.').filter(listed).map_or(element, |(list, _)| list);
            let name = element_of.rsplit_once('.').map_or(value.clone(), |(above, _)| format!("{above}.{value}"));
            open = Some((format!("{element}.#text"), name));
            continue;
        }
        match open.take_if(|(text, _)| *text == path) {
            Some((_, name)) => out.push((name, value)),
            None => out.push((path, value)),
        }
    }
    out
}

fn inner(path: &str, value: &str) -> Fields {
    let text = value.trim();
    let mut found = Fields::new();
    if text.starts_with(['{', '[']) && text.ends_with(['}', ']']) {
        let outcome = json::flatten(text, "", &mut |p, v| found.push((p.to_owned(), v.into_owned())));
        if outcome == Outcome::Whole {
            let mut found = by_name(found);
            found.truncate(FIELDS_MAX);
            return found;
        }
        found.clear();
    }
    if text.starts_with('[')
        && is_message(path)
        && let Some(found) = plaso::event(text)
    {
        return found;
    }
    if text.starts_with("<Event") || text.starts_with("<?xml") {
        let _ = xml::flatten(text, "", &mut |p, v| found.push((p.to_owned(), v)));
        return found;
    }
    if text.contains("audit(")
        && let Some(found) = auditd::fields(text)
    {
        return found;
    }
    if text.contains("EF:")
        && let Some(found) = keyvalue::cef(text)
    {
        return found;
    }
    if text.contains('\n') {
        let found = message::fields(text);
        if !found.is_empty() {
            return found;
        }
    }
    if is_message(path)
        && let Some(found) = syslog::collected(text)
    {
        return found;
    }
    // Its pairs do not contain the acting user.
    if text.contains("COMMAND=") && text.contains("TTY=") {
        return Fields::new();
    }
    if text.contains("[Priority: ")
        && is_message(path)
        && let Some(found) = ids::alert(text)
    {
        return found;
    }
    if text.contains("[id \"")
        && is_message(path)
        && let Some(found) = modsec::said(text)
    {
        return found;
    }
    // What follows are pairs.
    if memchr::memchr(b'=', text.as_bytes()).is_none() {
        return found;
    }
    if let Some(found) = keyvalue::comma_pairs(text) {
        return found;
    }
    if is_message(path)
        && let Some(found) = keyvalue::bar_pairs(text)
    {
        return found;
    }
    if keyvalue::looks_like_pairs(text) {
        let own = |p: &keyvalue::Pair<'_>| field(p.key, p.value);
        return keyvalue::pairs(text, keyvalue::Reach::Word).iter().map(own).collect();
    }
    found
}
