//! Names in an alert, whatever its form.

use casebook_protocol::{Alert, one_line};
use serde_json::Value;

pub const HOST: &[&str] =
    &["host", "hostname", "host_name", "computer", "computername", "device", "devicename", "agent_name"];
pub const USER: &[&str] = &["user", "username", "user_name", "account", "accountname", "principal", "login"];
pub const TIME: &[&str] = &["event_time", "time", "timestamp", "@timestamp", "eventtime", "created", "detected_at"];

pub const ABOUT: &[&str] = &["description", "message", "summary", "details", "note"];
/// In characters.
const LONG: usize = 300;

/// The first text under one of these keys, nearest to the top. An object stands for its `name` or `hostname`.
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

/// Top-level and nested texts of an alert as `path` and value, in order of the document.
#[must_use]
pub fn fields(alert: &Alert) -> Vec<(String, String)> {
    let mut out = Vec::new();
    walk(String::new(), &alert.json(), &mut out);
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
