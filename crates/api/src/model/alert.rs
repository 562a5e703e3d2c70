//! The fields of an alert, whatever its form.

use casebook_protocol::Alert;
use serde_json::Value;

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
