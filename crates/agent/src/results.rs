//! Looking into one recorded result: a piece of it, some of its lines, the value at a pointer, the places
//! of a text, a count. Pure; the Critic looks like this into any result, an Expert into those of its own
//! calls ([`tools`]), an MCP client into those of an investigation. Whatever is left out is said, with how to go
//! on.

use std::borrow::Cow;

use serde_json::{Value, json};

pub mod asked;
mod count;
mod search;
mod shape;
pub mod tools;

pub use shape::shape;
pub use tools::with;

/// The longest piece of a result that one look returns, in bytes.
pub const PAGE: usize = 16 * 1024;
/// Bytes of a line that are shown among others.
const LINE: usize = 4 * 1024;
/// Characters of a name or value in a message.
const TOLD: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Only the value at this JSON pointer; none: the whole result. Where a text stands there, lines and
    /// bytes are those of the text.
    pub pointer: Option<String>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The value, or the beginning of it where it is long.
    Value,
    Piece {
        /// The byte at which it begins.
        offset: usize,
        /// Bytes of it, [`PAGE`] at the most.
        length: Option<usize>,
    },
    Lines {
        /// The first, from 1.
        from: u64,
        /// The last; none: as many as fit.
        to: Option<u64>,
    },
    /// The places at which a text stands, as it is written or as JSON escapes it.
    Search {
        text: String,
        /// The byte from which on.
        after: usize,
        /// So many places at the most.
        limit: Option<usize>,
    },
    /// How many items or fields the value has, or lines where it is a text.
    Count {
        /// The items of an array by the value of this field: its name, or a pointer within the item.
        by: Option<String>,
    },
    /// How often a text stands there, and in how many lines.
    CountText { text: String },
}

/// What the look shows of the result `text`.
///
/// # Errors
/// What is wrong with the look, with what stands there instead.
pub fn look(text: &str, look: &Look) -> Result<Value, String> {
    let part = Part::of(text, look.pointer.as_deref())?;
    match &look.what {
        What::Value => Ok(part.shown()),
        What::Piece { offset, length } => part.piece(*offset, length.unwrap_or(PAGE).clamp(1, PAGE)),
        What::Lines { from, to } => part.lines(*from, *to),
        What::Search { text, after, limit } => search::places(&part, text, *after, *limit),
        What::Count { by } => count::items(&part, by.as_deref()),
        What::CountText { text } => count::hits(&part, text),
    }
}

/// The part of a result that is looked into.
struct Part<'t> {
    /// Empty for the whole.
    pointer: &'t str,
    /// What stands there: a text without JSON's escapes, anything else as it is recorded.
    text: Cow<'t, str>,
    /// What stands there, where the result is JSON.
    value: Option<Value>,
}

impl<'t> Part<'t> {
    fn of(text: &'t str, pointer: Option<&'t str>) -> Result<Self, String> {
        let json: Option<Value> = serde_json::from_str(text).ok();
        let Some(pointer) = pointer.filter(|p| !p.is_empty()) else {
            return Ok(match json {
                Some(Value::String(inner)) => {
                    Self { pointer: "", text: Cow::Owned(inner.clone()), value: Some(inner.into()) }
                }
                value => Self { pointer: "", text: Cow::Borrowed(text), value },
            });
        };
        let json = json.ok_or_else(|| {
            let lines = text.lines().count();
            format!("the result is no JSON but a text of {lines} lines: leave the pointer out and give lines")
        })?;
        let value = json.pointer(pointer).ok_or_else(|| missing(&json, pointer))?;
        let there = match value {
            Value::String(inner) => Cow::Owned(inner.clone()),
            _ => match casebook_trust::check::place::span(text, pointer).and_then(|range| text.get(range)) {
                Some(recorded) => Cow::Borrowed(recorded),
                None => Cow::Owned(value.to_string()),
            },
        };
        Ok(Self { pointer, text: there, value: Some(value.clone()) })
    }

    /// It is JSON, and not a text in JSON.
    fn structured(&self) -> bool {
        self.value.as_ref().is_some_and(|value| !value.is_string())
    }

    fn shown(&self) -> Value {
        match &self.value {
            Some(value) if value.to_string().len() <= PAGE => json!({"pointer": self.pointer, "value": value}),
            None if self.text.len() <= PAGE => json!({"text": self.text}),
            value => {
                let piece = slice(&self.text, 0, PAGE);
                json!({
                    "pointer": self.pointer,
                    "shape": value.as_ref().map(shape),
                    "bytes": self.text.len(),
                    "lines": self.text.lines().count(),
                    "cut": true,
                    "text": piece,
                    "next_offset": piece.len(),
                    "next_line": (!self.structured()).then(|| piece.lines().count()),
                })
            }
        }
    }

    fn piece(&self, offset: usize, length: usize) -> Result<Value, String> {
        let bytes = self.text.len();
        if offset > bytes {
            return Err(format!("offset {offset} is beyond the end: there are {bytes} bytes"));
        }
        let piece = slice(&self.text, offset, length);
        let start = self.text.floor_char_boundary(offset);
        let next = start + piece.len();
        Ok(json!({
            "pointer": self.pointer, "text": piece, "offset": start, "bytes": bytes,
            "next_offset": (next < bytes).then_some(next),
        }))
    }

    fn lines(&self, from: u64, to: Option<u64>) -> Result<Value, String> {
        let all = self.text.lines().count() as u64;
        let last = to.unwrap_or(all).min(all);
        if from == 0 || from > all || last < from {
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            return Err(format!("there is no line {from}{to}: there are lines 1 to {all}"));
        }
        let mut shown = Vec::new();
        let (mut used, mut next) = (0, from);
        let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
        for line in self.text.lines().skip(skipped) {
            let piece = slice(line, 0, LINE);
            used += piece.len() + 40;
            if next > last || (used > PAGE && !shown.is_empty()) {
                break;
            }
            shown.push(match piece.len() == line.len() {
                true => json!({"line": next, "text": piece}),
                false => {
                    json!({"line": next, "text": piece, "cut": true, "bytes": line.len(), "offset": self.offset(line)})
                }
            });
            next += 1;
        }
        Ok(json!({
            "pointer": self.pointer, "of": all, "lines": shown,
            "next_line": (next <= last).then_some(next),
        }))
    }

    /// Where a piece of the text begins in it.
    fn offset(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}

/// What stands where the way to `pointer` ends.
fn missing(json: &Value, pointer: &str) -> String {
    let mut path = pointer;
    let shown = casebook_protocol::one_line(pointer, TOLD);
    if !pointer.starts_with('/') {
        return format!("{shown:?} is no JSON pointer: it begins with a stroke, such as /items/0");
    }
    while let Some(end) = path.rfind('/') {
        path = path.get(..end).unwrap_or_default();
        if let Some(value) = json.pointer(path) {
            let place = if path.is_empty() { "the whole".to_owned() } else { format!("{path:?}") };
            let place = casebook_protocol::one_line(&place, TOLD);
            return format!("nothing stands at {shown:?}: {place} is {}", kind(value));
        }
    }
    format!("nothing stands at {shown:?}")
}

/// What sort of value it is, with the names of its fields.
fn kind(value: &Value) -> String {
    const NAMES: usize = 20;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) => format!("a text of {} lines", text.lines().count()),
        Value::Array(items) => format!("an array of {} items, from 0", items.len()),
        Value::Object(map) => {
            let names: Vec<String> =
                map.keys().take(NAMES).map(|name| casebook_protocol::one_line(name, TOLD)).collect();
            let more = map.len().saturating_sub(NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("an object with the fields {}{more}", names.join(", "))
        }
    }
}

/// A piece of `text` in whole characters, one at the least where there is one.
fn slice(text: &str, offset: usize, length: usize) -> &str {
    let start = text.floor_char_boundary(offset);
    let mut end = text.floor_char_boundary(offset.saturating_add(length));
    if end <= start {
        end = text.get(start..).and_then(|rest| rest.chars().next()).map_or(start, |c| start + c.len_utf8());
    }
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
