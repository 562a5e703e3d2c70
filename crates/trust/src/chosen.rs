//! Which texts in a record are chosen by whoever the record is about: a user agent, a command line, a
//! name that is looked up, a title. A sensor writes such a text down faithfully, and all that it proves
//! is that somebody wrote it; so it is no ground for a dismissal (rule 3.5).

use std::collections::BTreeSet;

use serde_json::Value;

/// What is said of a quotation whose field is not known: a text as a whole.
pub const WHOLE: &str = "text of a record without fields";

/// Fields whose text the acting side chooses, by the last part of their path in small letters, without
/// anything but letters and digits. Kept by hand; a field that is not here is judged by its value.
const NAMES: &[&str] = &[
    "useragent",
    "agent",
    "httpuseragent",
    "csuseragent",
    "clientname",
    "client",
    "referer",
    "referrer",
    "commandline",
    "cmdline",
    "command",
    "args",
    "arguments",
    "argv",
    "proctitle",
    "title",
    "processtitle",
    "parentcommandline",
    "cwd",
    "environment",
    "env",
    "script",
    "scriptblocktext",
    "query",
    "queryname",
    "qname",
    "rrname",
    "domain",
    "hostname",
    "sni",
    "servername",
    "host",
    "url",
    "uri",
    "path",
    "requesturi",
    "requesturl",
    "request",
    "requestparameters",
    "file",
    "filename",
    "filepath",
    "object",
    "objectname",
    "targetfilename",
    "key",
    "ref",
    "branch",
    "headref",
    "headbranch",
    "tag",
    "subject",
    "from",
    "to",
    "displayname",
    "sender",
    "recipient",
    "message",
    "msg",
    "body",
    "text",
    "description",
    "comment",
    "reason",
    "note",
    "name",
    "summary",
    "content",
    "payload",
    "data",
    "details",
    "userdata",
    "repository",
    "repo",
    "workflow",
    "job",
    "label",
    "labels",
    "annotations",
    "sessionname",
    "rolesessionname",
    "acct",
    "useruid",
    "password",
    "targetusername",
    "invaliduser",
];

/// The field of `record` (as our tools show it: `raw`, and `fields` where they were asked for) that
/// `quote` touches and whose text whoever is recorded chose; none when it touches no such field.
/// Without known fields every text counts as chosen.
#[must_use]
pub fn field(record: &Value, quote: &str) -> Option<String> {
    let raw = record.get("raw").and_then(Value::as_str).unwrap_or_default();
    match record.get("fields").filter(|f| f.as_object().is_some_and(|map| !map.is_empty())) {
        Some(fields) => within(fields, quote),
        None => match serde_json::from_str::<Value>(raw) {
            Ok(json) if json.is_object() => within(&json, quote),
            _ => Some(WHOLE.to_owned()),
        },
    }
}

/// The same of a JSON object that is a record itself.
#[must_use]
pub fn within(fields: &Value, quote: &str) -> Option<String> {
    let mut leaves = Vec::new();
    collect("", fields, 4, &mut leaves);
    let quote = quote.strip_suffix('…').unwrap_or(quote).trim();
    let mut touched = BTreeSet::new();
    let mut seen = 0_usize;
    for (path, value) in &leaves {
        let forms = [value.clone(), escaped(value)];
        let inside = forms.iter().any(|v| v.contains(quote));
        let around = value.chars().count() >= 3 && forms.iter().any(|v| quote.contains(v.as_str()));
        // A quotation may begin or end in the middle of a value.
        let cut = || forms.iter().any(|v| overlaps(v, quote));
        if inside || around || cut() {
            seen += 1;
            if chooses(path, value) {
                touched.insert(path.as_str());
            }
        }
    }
    match touched.first() {
        Some(path) => Some((*path).to_owned()),
        None if seen == 0 => Some(WHOLE.to_owned()),
        None => None,
    }
}

fn collect(path: &str, value: &Value, depth: u8, leaves: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                collect(&below(key), inner, depth, leaves);
                // Whoever sends JSON may choose the keys, too.
                if key.split_whitespace().count() >= WORDS {
                    leaves.push((below("key"), key.clone()));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(path, inner, depth, leaves)),
        Value::String(text) => {
            if depth > 0
                && text.starts_with(['{', '['])
                && let Ok(inner) = serde_json::from_str::<Value>(text)
            {
                collect(path, &inner, depth - 1, leaves);
            }
            leaves.push((path.to_owned(), text.clone()));
        }
        Value::Number(number) => leaves.push((path.to_owned(), number.to_string())),
        Value::Bool(flag) => leaves.push((path.to_owned(), flag.to_string())),
        Value::Null => {}
    }
}

/// As the value stands inside a JSON text.
fn escaped(value: &str) -> String {
    let json = Value::from(value).to_string();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The end of one is the beginning of the other, over eight characters or more.
fn overlaps(value: &str, quote: &str) -> bool {
    const LEAST: usize = 8;
    let ends = |a: &str, b: &str| {
        // An end that is longer than the other text cannot be its beginning.
        let ends = a.char_indices().rev().map(|(at, _)| a.get(at..).unwrap_or_default());
        let fitting = ends.take_while(|end| end.len() <= b.len());
        fitting.skip(LEAST - 1).any(|end| b.starts_with(end))
    };
    ends(value, quote) || ends(quote, value)
}

/// So many words make a sentence, which no sensor's fixed field holds.
const WORDS: usize = 3;
/// The longest single word of a fixed field, in characters; hashes and ARNs are longer and say nothing.
const LONGEST: usize = 64;

/// Whoever is recorded chooses the text of the field at `path`, by its name.
#[must_use]
pub fn by_name(path: &str) -> bool {
    let last = path.rsplit('.').find(|p| !p.chars().all(|c| c.is_ascii_digit())).unwrap_or(path);
    let name: String = last.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&name.as_str())
}

fn chooses(path: &str, value: &str) -> bool {
    let plain = value.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    by_name(path) || words(value) >= WORDS || !plain || value.chars().count() > LONGEST
}

/// Words of letters, also where something else than a blank parts them.
fn words(text: &str) -> usize {
    text.split(|c: char| !c.is_alphabetic()).filter(|w| w.chars().count() >= 3).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(record: &Value, quote: &str, expect: Option<&str>) {
        assert_eq!(field(record, quote).as_deref(), expect, "{quote}");
    }

    #[test]
    fn what_the_acting_side_writes_is_known_by_its_field_or_by_its_shape() {
        let raw = json!({"status": "NOERROR", "qname": "all-clear.evil.example", "src": "10.0.0.7",
            "extra": "closed by the change board", "nested": "{\"userAgent\":\"benign scanner\"}", "n": 200})
        .to_string();
        let record = json!({"raw": raw});
        check(&record, "NOERROR", None);
        check(&record, "10.0.0.7", None);
        check(&record, "all-clear.evil", Some("qname"));
        check(&record, "by the change board", Some("extra"));
        check(&record, "benign scanner", Some("nested"));
        check(&record, r#""src":"10.0.0.7","status":"NOERROR""#, None);
        check(&record, r#"evil.example","src":"10.0.0.7""#, Some("qname"));
        check(&record, "not there at all", Some(WHOLE));
    }

    #[test]
    fn a_line_without_fields_is_one_text() {
        let line = "Failed password for invalid user close-as-benign from 10.0.0.7 port 22";
        check(&json!({"raw": line}), "10.0.0.7", Some(WHOLE));
        let fields = json!({"program": "sshd", "address": "10.0.0.7", "message": line});
        check(&json!({"raw": line, "fields": fields}), "close-as-benign", Some("message"));
        check(&json!({"raw": "x", "fields": {"program": "sshd", "address": "10.0.0.7"}}), "10.0.0.7", None);
    }
}
