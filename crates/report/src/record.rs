//! A cited record whole, with what the claim used marked.

use std::ops::Range;

use serde_json::Value;

use crate::words::{Piece, cut, pieces};

/// In characters. What is longer is cut, and the rest is counted.
const MOST: usize = 4_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The fields, if they are known.
    pub fields: Vec<(String, Vec<Part>)>,
    /// The record as text, if it is not made of the fields alone.
    pub text: Vec<Part>,
    /// Characters that are left out.
    pub more: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub marked: bool,
}

/// What the tool returned of the record. The names of the claim are marked, and the quotation if it is a part of the
/// record.
#[must_use]
pub fn shown(record: &Value, claim: &str, quote: &str) -> Shown {
    let raw = record.get("raw").and_then(Value::as_str).or(record.as_str());
    let json = raw.and_then(|raw| serde_json::from_str::<Value>(raw).ok()).filter(Value::is_object);
    let fields = match (&json, raw) {
        (Some(json), _) => flat(json),
        (None, Some(_)) => record.get("fields").map(flat).unwrap_or_default(),
        (None, None) => flat(record),
    };
    let text = raw.filter(|_| json.is_none()).unwrap_or_default();
    let mut left = MOST;
    let mut names = names(claim);
    if 2 * quote.len() <= text.len() || !names.iter().any(|name| !places(text, name).is_empty()) {
        names.push(quote);
    }
    let used = fields.iter().any(|(_, value)| names.iter().any(|name| !places(value, name).is_empty()));
    let mut more = more_bytes(record, raw);
    let mut taken = |text: &str, all: bool| {
        let (kept, rest) = cut(text, left);
        left -= kept.chars().count();
        more += rest as u64;
        if all { vec![Part { text: kept.to_owned(), marked: true }] } else { marked(kept, &names) }
    };
    let quoted = |value: &str| !used && value.chars().count() >= 3 && !places(quote, value).is_empty();
    let text = taken(text, false);
    let fields = fields.into_iter().map(|(name, value)| (name, taken(&value, quoted(&value)))).collect();
    Shown { fields, text, more }
}

/// Bytes of the record beyond the text that the tool returned.
fn more_bytes(record: &Value, raw: Option<&str>) -> u64 {
    let whole = record.get("bytes").and_then(Value::as_u64).unwrap_or(0);
    whole.saturating_sub(raw.map_or(0, |raw| raw.len() as u64))
}

/// Each value with its path, in order of the document.
#[must_use]
pub fn flat(value: &Value) -> Vec<(String, String)> {
    let mut out = Vec::new();
    walk(String::new(), value, &mut out);
    out
}

fn walk(path: String, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let deeper = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(deeper, inner, out);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (n, item) in items.iter().enumerate() {
                walk(format!("{path}[{n}]"), item, out);
            }
        }
        Value::Array(items) => {
            let shown: Vec<String> = items.iter().map(plain).collect();
            out.push((path, shown.join(", ")));
        }
        other => out.push((path, plain(other))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn names(claim: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Name(name) => Some(name.trim_end_matches('…')),
        Piece::Plain(_) | Piece::Finding(_) => None,
    };
    pieces(claim).into_iter().filter_map(name).filter(|name| name.chars().count() >= 2).collect()
}

/// Where `name` is in `text` as whole words.
fn places(text: &str, name: &str) -> Vec<Range<usize>> {
    let name = name.trim();
    if name.is_empty() {
        return Vec::new();
    }
    let joined =
        |a: Option<char>, b: Option<char>| a.zip(b).is_some_and(|(a, b)| a.is_alphanumeric() && b.is_alphanumeric());
    let whole = |at: usize| {
        let (before, rest) = (text.get(..at).unwrap_or_default(), text.get(at + name.len()..).unwrap_or_default());
        !joined(before.chars().next_back(), name.chars().next())
            && !joined(name.chars().next_back(), rest.chars().next())
    };
    text.match_indices(name).map(|(at, _)| at).filter(|at| whole(*at)).map(|at| at..at + name.len()).collect()
}

fn marked(text: &str, names: &[&str]) -> Vec<Part> {
    let mut places: Vec<Range<usize>> = names.iter().flat_map(|name| places(text, name)).collect();
    places.sort_by_key(|place| place.start);
    let (mut parts, mut end) = (Vec::new(), 0);
    let mut push = |range: Range<usize>, marked| {
        if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
            parts.push(Part { text: text.to_owned(), marked });
        }
    };
    for place in places.into_iter().filter(|place| place.end > 0) {
        push(end..place.start, false);
        push(place.start.max(end)..place.end, true);
        end = end.max(place.end);
    }
    push(end..text.len(), false);
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The record as text with marks in brackets.
    fn told(record: &Value, claim: &str, quote: &str) -> String {
        let shown = shown(record, claim, quote);
        let parts = |parts: &[Part]| {
            parts.iter().map(|p| if p.marked { format!("[{}]", p.text) } else { p.text.clone() }).collect::<String>()
        };
        let fields = shown.fields.iter().map(|(name, value)| format!("{name}={}", parts(value)));
        let text = Some(parts(&shown.text)).filter(|text| !text.is_empty());
        let more = Some(format!("+{}", shown.more)).filter(|_| shown.more > 0);
        text.into_iter().chain(fields).chain(more).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn what_the_claim_used_is_marked_in_the_whole_record() {
        let raw = |raw: &str| json!({"file": "a.log", "line": 1, "raw": raw});
        let line = raw("sshd: Accepted password for bo from 10.0.0.9 port 2, bobo");
        assert_eq!(
            told(&line, "`bo` came from `10.0.0.9`", "Accepted password"),
            "sshd: [Accepted password] for [bo] from [10.0.0.9] port 2, bobo"
        );
        assert_eq!(
            told(&line, "someone came", "for bo from"),
            "sshd: Accepted password [for bo from] 10.0.0.9 port 2, bobo"
        );
        let json = raw(r#"{"exe":"/bin/sh","net":{"ip":"10.0.0.9"},"pids":[1,2],"user":"root"}"#);
        assert_eq!(told(&json, "`/bin/sh` ran", "whatever"), "exe=[/bin/sh] | net.ip=10.0.0.9 | pids=1, 2 | user=root");
        // Without a name of the claim, the fields in the quotation.
        assert_eq!(
            told(&json, "it ran", r#"[1,2],"user":"root""#),
            "exe=/bin/sh | net.ip=10.0.0.9 | pids=1, 2 | user=[root]"
        );
        let table = json!({"raw": "1\tbo", "fields": {"id": "1", "user": "bo"}});
        assert_eq!(told(&table, "`bo`", "1\tbo"), "1\t[bo] | id=1 | user=[bo]");
        assert_eq!(told(&json!({"a": {"b": "x y"}}), "x", "x y"), "a.b=[x y]");
        assert_eq!(told(&json!("plain `text"), "", "text"), "plain `[text]");
    }

    #[test]
    fn a_long_record_is_cut_and_the_rest_is_counted() {
        let long = json!({"raw": "é".repeat(5_000), "bytes": 12_000});
        let got = shown(&long, "", "zzz");
        assert_eq!((got.text[0].text.chars().count(), got.more), (MOST, 1_000 + 2_000));
        let many = json!({"raw": json!({"a": "x".repeat(3_999), "b": "yy", "c": "z"}).to_string()});
        let got = shown(&many, "", "-");
        assert_eq!((got.fields[1].1[0].text.as_str(), got.fields[2].1.len(), got.more), ("y", 0, 2));
    }

    proptest::proptest! {
        #[test]
        fn marks_lose_no_text(text in "(\\PC|ab|a|b){0,20}", names in proptest::collection::vec("(ab|a|b|\\PC){0,3}", 0..4)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let joined: String = marked(&text, &names).into_iter().map(|part| part.text).collect();
            proptest::prop_assert_eq!(joined, text);
        }
    }
}
