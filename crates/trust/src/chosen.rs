//! Knows which texts in a record the recorded party chooses: a user agent, a command line, a looked-up name, a
//! title. A sensor records such a text correctly, but the text proves only that it was written. It therefore
//! cannot support a dismissal (verdict rule).

use std::collections::BTreeSet;

use serde_json::Value;

/// Used instead of a field name if the field is not known.
pub const WHOLE: &str = "text of a record without fields";

/// Compared with the last part of a path, in lower case, letters and digits only. Fields that are not in this
/// list are judged by their value.
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

/// The field that `quote` touches and whose text the recorded party chose. `record` has the form of our tools:
/// `raw`, and `fields` if they were requested. Without known fields, every text counts as chosen.
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
                // The sender of JSON may choose the keys as well.
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

fn escaped(value: &str) -> String {
    let json = Value::from(value).to_string();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// True if the end of one text is the start of the other, over at least eight characters.
fn overlaps(value: &str, quote: &str) -> bool {
    const LEAST: usize = 8;
    let ends = |a: &str, b: &str| {
        let ends = a.char_indices().rev().map(|(at, _)| a.get(at..).unwrap_or_default());
        let fitting = ends.take_while(|end| end.len() <= b.len());
        fitting.skip(LEAST - 1).any(|end| b.starts_with(end))
    };
    ends(value, quote) || ends(quote, value)
}

/// No fixed field of a sensor holds a sentence of this many words.
const WORDS: usize = 3;
/// In characters. Longer words are hashes and ARNs, which carry no message.
const LONGEST: usize = 64;

pub fn by_name(path: &str) -> bool {
    let last = path.rsplit('.').find(|p| !p.chars().all(|c| c.is_ascii_digit())).unwrap_or(path);
    let name: String = last.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&name.as_str())
}

fn chooses(path: &str, value: &str) -> bool {
    let plain = value.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    by_name(path) || words(value) >= WORDS || !plain || value.chars().count() > LONGEST
}

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
