//! Checks the arguments of tool calls, with messages that say what is expected.

use casebook_protocol::Timestamp;
use serde_json::{Map, Value};

use crate::query::{Condition, Op};

#[derive(Debug)]
pub(crate) struct Args {
    tool: &'static str,
    map: Map<String, Value>,
}

/// Names that callers use for arguments of other names.
const ALIASES: [(&str, &[&str]); 8] = [
    ("limit", &["top"]),
    ("top", &["limit"]),
    ("max", &["limit", "top"]),
    ("before", &["to", "before_seconds"]),
    ("after", &["from", "after_seconds"]),
    ("start", &["from"]),
    ("end", &["to"]),
    ("source", &["sources"]),
];

impl Args {
    pub(crate) fn new(tool: &'static str, json: &str, known: &[&str]) -> Result<Self, String> {
        let json = if json.trim().is_empty() { "{}" } else { json };
        let value: Value =
            serde_json::from_str(json).map_err(|e| format!("{tool}: the arguments are not JSON: {e}"))?;
        let Value::Object(mut map) = value else {
            return Err(format!("{tool}: the arguments must be a JSON object, got {}", kind(&value)));
        };
        for (alias, names) in ALIASES {
            let name = names.iter().find(|name| known.contains(name)).filter(|name| !map.contains_key(**name));
            if let (Some(name), false, Some(value)) = (name, known.contains(&alias), map.get(alias).cloned()) {
                map.remove(alias);
                map.insert((*name).to_owned(), value);
            }
        }
        if let Some(unknown) = map.keys().find(|k| !known.contains(&k.as_str())) {
            let list =
                if known.is_empty() { "it takes none".to_owned() } else { format!("known: {}", known.join(", ")) };
            return Err(format!("{tool}: unknown argument `{unknown}`; {list}"));
        }
        Ok(Self { tool, map })
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn wrong(&self, name: &str, wanted: &str, got: &Value) -> String {
        let text = got.to_string();
        format!("{}: `{name}` must be {wanted}, got {}", self.tool, crate::profile::cut(&text, 80))
    }

    pub(crate) fn fail<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("{}: {why}", self.tool))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a string", other)),
        }
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, String> {
        match self.text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => self.fail(&format!("`{name}` is missing")),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&str>, String> {
        let wanted = "a list of strings, none of them empty";
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(all @ Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(|v| v.as_str().filter(|t| !t.is_empty())).collect();
                texts.ok_or_else(|| self.wrong(name, wanted, all))
            }
            Some(Value::String(one)) if !one.is_empty() => Ok(vec![one]),
            Some(other) => Err(self.wrong(name, wanted, other)),
        }
    }

    pub(crate) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(n) if (least..=most).contains(&n) => Ok(Some(n)),
                _ => Err(self.wrong(name, &format!("a whole number from {least} to {most}"), value)),
            },
        }
    }

    /// Seconds with a fraction, from 0 to a year.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<i64>, String> {
        const YEAR: f64 = 366.0 * 86_400.0;
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                #[allow(clippy::cast_possible_truncation, reason = "at most a year in nanoseconds")]
                Some(n) if (0.0..=YEAR).contains(&n) => Ok(Some((n * 1e9) as i64)),
                _ => Err(self.wrong(name, "a number of seconds from 0 to 31622400", value)),
            },
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(name, "true or false", other)),
        }
    }

    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let known = format!("one of {}", known.join(", "));
                Err(self.wrong(name, &known, &Value::String(text.to_owned())))
            }
        }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn time(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let moment: Result<Timestamp, _> = text.parse();
        match moment.ok().and_then(|t| i64::try_from(t.as_nanosecond()).ok()) {
            Some(ns) => Ok(Some(ns)),
            None => {
                let wanted = "a time as in RFC 3339, such as 2024-01-31T10:00:00Z";
                Err(self.wrong(name, wanted, &Value::String(text.to_owned())))
            }
        }
    }

    pub(crate) fn conditions(&self) -> Result<Vec<Condition>, String> {
        let shape = r#"a list of {"field": …, "op": …, "value": …}"#;
        let items = match self.get("where") {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(self.wrong("where", shape, other)),
        };
        if items.len() > 20 {
            return self.fail("`where` takes at most 20 conditions");
        }
        items.iter().map(|item| self.condition(item, shape)).collect()
    }

    fn condition(&self, item: &Value, shape: &str) -> Result<Condition, String> {
        let mistyped = || self.wrong("where", shape, item);
        let map = item.as_object().ok_or_else(mistyped)?;
        if let Some(unknown) = map.keys().find(|k| !matches!(k.as_str(), "field" | "op" | "value")) {
            return self.fail(&format!("`where` has unknown key `{unknown}`; known: field, op, value"));
        }
        let field = map.get("field").and_then(Value::as_str).filter(|f| !f.is_empty()).ok_or_else(mistyped)?;
        let name = map.get("op").map_or(Some("eq"), Value::as_str).ok_or_else(mistyped)?;
        let Some((_, op)) = Op::NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Op::NAMES.iter().map(|(known, _)| *known).collect();
            return self.fail(&format!("`op` must be one of {}, got {name:?}", known.join(", ")));
        };
        let value = match map.get("value") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(flag)) => flag.to_string(),
            None | Some(Value::Null) if *op == Op::Exists => "true".to_owned(),
            _ => return self.fail(&format!("the condition on `{field}` needs a `value`: a string, number or boolean")),
        };
        Condition::new(field, *op, &value).map_err(|why| format!("{}: {why}", self.tool))
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
