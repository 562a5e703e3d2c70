//! What a list and a page show of an alert's own fields, and the text by which a search finds it.

use std::collections::BTreeSet;

use casebook_protocol::{Alert, one_line};
use serde_json::Value;

/// Keys of the host, in lower case.
pub const HOST: &[&str] = &[
    "host",
    "hostname",
    "host_name",
    "computer",
    "computer_name",
    "computername",
    "device",
    "devicename",
    "agent",
    "agent_name",
];
pub const USER: &[&str] = &["user", "username", "user_name", "account", "accountname", "principal", "login", "actor"];
/// In characters.
const LONG: usize = 300;
/// Longer values are prose or command lines.
const LONGEST_NAME: usize = 80;
const MOST_TEXT: usize = 1024;

/// The text of the first field with one of these keys, the nearest to the top. For an object it is its `name`,
/// `hostname` or `id`.
#[must_use]
pub fn named(alert: &Alert, keys: &[&str]) -> Option<String> {
    let root = alert.json();
    let mut level = vec![&root];
    for _ in 0..4 {
        let mut below = Vec::new();
        for value in level {
            let Value::Object(map) = value else { continue };
            for (key, inner) in map {
                if keys.contains(&key.to_ascii_lowercase().as_str())
                    && let Some(text) = text(inner)
                {
                    return Some(one_line(&text, LONG));
                }
                below.push(inner);
            }
        }
        level = below;
    }
    None
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => {
            ["name", "hostname", "id"].iter().find_map(|key| map.get(*key).and_then(Value::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}

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
