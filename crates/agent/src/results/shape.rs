use serde_json::Value;

const DEPTH: u8 = 4;
/// The most shown fields of an object.
const FIELDS: usize = 12;
const NAME: usize = 32;
const LONGEST: usize = 600;

/// The shape of `value` in one line: objects with their fields, arrays with their length and the shape of their first
/// item. A name with unusual characters is shown as `?`, since an attacker may have chosen it.
pub fn shape(value: &Value) -> String {
    let mut out = String::new();
    write(value, DEPTH, &mut out);
    if out.chars().count() > LONGEST {
        out = out.chars().take(LONGEST - 1).collect();
        out.push('…');
    }
    out
}

fn write(value: &Value, depth: u8, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(_) => out.push_str("true/false"),
        Value::Number(_) => out.push_str("number"),
        Value::String(_) => out.push_str("text"),
        Value::Array(items) => {
            out.push_str(&format!("[{}", items.len()));
            if let Some(first) = items.first() {
                out.push_str(" × ");
                nested(first, depth, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, inner)) in map.iter().take(FIELDS).enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(if plain(key) { key } else { "?" });
                out.push_str(": ");
                nested(inner, depth, out);
            }
            if map.len() > FIELDS {
                out.push_str(&format!(", and {} more", map.len() - FIELDS));
            }
            out.push('}');
        }
    }
}

fn nested(value: &Value, depth: u8, out: &mut String) {
    match (depth.checked_sub(1), value) {
        (Some(depth), _) => write(value, depth, out),
        (None, Value::Array(items)) => out.push_str(&format!("[{}]", items.len())),
        (None, Value::Object(_)) => out.push_str("{…}"),
        (None, value) => write(value, 0, out),
    }
}

fn plain(key: &str) -> bool {
    (1..=NAME).contains(&key.len())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@'))
}
