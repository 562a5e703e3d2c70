//! The text by which a search finds an alert.

use std::collections::BTreeSet;

use casebook_protocol::Alert;
use serde_json::Value;

/// Longer values are prose or command lines.
const LONGEST_NAME: usize = 80;
const MOST_TEXT: usize = 1024;

/// Title, id and the names in the alert.
pub(crate) fn words(alert: &Alert) -> String {
    let body = alert.json();
    let mut names = BTreeSet::new();
    collect(&body, &mut names);
    let mut text = format!("{}\n{}", alert.title, alert.id);
    for name in names {
        if text.len() + name.len() > MOST_TEXT {
            break;
        }
        text.push('\n');
        text.push_str(name);
    }
    text
}

fn collect<'v>(value: &'v Value, names: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) if text.len() <= LONGEST_NAME && !text.trim().is_empty() => drop(names.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, names)),
        _ => {}
    }
}
