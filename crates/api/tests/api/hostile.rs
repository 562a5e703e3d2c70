//! Hostile texts in every field of a log that takes free text, through every page.

use std::path::Path;

use casebook_protocol::{Event, Recorded};
use serde_json::Value;

use crate::kit::{fixture, pages};

const VECTORS: [&str; 22] = [
    "<zz>",
    "</title><zz>",
    "\"><zz onzz=1>",
    "' onzz='1",
    "\" onzz=\"1",
    "<script>zz()</script>",
    "<img src=x onerror=zz()>",
    "<svg onload=zz()>",
    "javascript:zz()",
    "</pre></code><zz>",
    "<!--<zz>-->",
    "]]><zz>",
    "&lt;zz&gt;",
    "&#60;zz&#62;",
    "{{zz}}",
    "`<zz>`",
    "a`\"><zz>`b",
    "<a href=\"javascript:zz()\">x</a>",
    "<style>@import'//zz'</style>",
    "\u{202e}zz<zz>",
    "\u{200b}\u{2066}<zz>\u{0}",
    "r1-endpoint-1\"><zz>",
];

/// The log with `text` in every string that stays readable as an event, and a new chain.
fn poisoned(log: &[Recorded], text: &str) -> (Vec<Recorded>, usize) {
    let (mut out, mut fields): (Vec<Recorded>, usize) = (Vec::new(), 0);
    for entry in log {
        let mut value = serde_json::to_value(&entry.event).unwrap();
        let mut paths = Vec::new();
        strings(&value, String::new(), &mut paths);
        for path in paths {
            let mut tried = value.clone();
            *tried.pointer_mut(&path).unwrap() = Value::String(text.to_owned());
            if path != "/type" && serde_json::from_value::<Event>(tried.clone()).is_ok() {
                value = tried;
                fields += 1;
            }
        }
        let event = serde_json::from_value(value).unwrap();
        let next = Recorded::next(&entry.investigation, out.last(), entry.at, event);
        out.push(next);
    }
    (out, fields)
}

fn strings(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::String(_) => out.push(path),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| strings(item, format!("{path}/{n}"), out)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            strings(item, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), out)
        }),
        _ => {}
    }
}

/// What a page must not have.
fn broken(page: &str) -> Option<String> {
    let lower = page.to_lowercase();
    for tag in ["<zz", "<img", "<style", "<script>zz", "<svg onload", "<!--"] {
        if lower.contains(tag) {
            return Some(format!("has {tag}"));
        }
    }
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        // Between tags quotes are text; within a tag an attribute that we did not write has a name with `onzz`.
        let outside: String = tag.split('"').step_by(2).collect();
        if outside.contains("onzz") || outside.contains("onerror") {
            return Some(format!("has an attribute in <{tag}>"));
        }
    }
    for href in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        if !href.starts_with('/') && !href.starts_with('#') || href.starts_with("//") {
            return Some(format!("links to {href}"));
        }
    }
    page.chars()
        .find(|c| matches!(c, '\u{202e}' | '\u{200b}' | '\u{2066}' | '\u{0}'))
        .map(|c| format!("has U+{:04X}", u32::from(c)))
}

#[test]
fn no_text_becomes_markup_in_any_page() {
    let log = fixture();
    for vector in VECTORS {
        let (log, fields) = poisoned(&log, vector);
        assert!(fields > 200, "only {fields} fields take text");
        for (name, page) in pages(&log, vector) {
            assert_eq!(broken(&page), None, "{vector:?} in {name}");
        }
    }
}

#[test]
fn the_texts_of_the_hostile_corpus_stay_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/corpus.ndjson");
    let corpus = std::fs::read_to_string(path).unwrap();
    let log = fixture();
    let texts: Vec<Value> = corpus.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(texts.len() > 70);
    for one in texts {
        let text = one["text"].as_str().unwrap();
        let (log, _) = poisoned(&log[..log.len().min(60)], text);
        for (name, page) in pages(&log, text) {
            assert_eq!(broken(&page), None, "{} in {name}", one["id"]);
        }
    }
}

#[test]
fn the_check_itself_finds_markup() {
    assert!(broken("<p><zz></p>").is_some() && broken("<a href=\"javascript:zz()\">").is_some());
    assert!(broken("<p title=\"\" onzz=\"1\">").is_some() && broken("<p>\u{202e}</p>").is_some());
    assert_eq!(broken("<a href=\"/x\" title=\"&quot; onzz=&quot;1\">&lt;zz&gt;</a>"), None);
}
