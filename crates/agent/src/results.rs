//! Access to one recorded result: pieces, lines, the value at a pointer, a search, a count. The Critic examines any
//! result, an Expert those of its own calls ([`tools`]), and an MCP client those of an investigation. Answers report
//! what was left out and how to get it.

use std::borrow::Cow;

use serde_json::{Value, json};

pub mod asked;
mod calculate;
mod count;
mod search;
mod shape;
pub mod tools;

pub use shape::shape;
pub use tools::with;

/// The longest piece of a result in one answer, in bytes.
pub const PAGE: usize = 16 * 1024;
const LINE: usize = 4 * 1024;
/// Characters of a name or value in a message.
const SHOWN: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// A JSON pointer to the examined value; none for the whole result. Within a text value, lines and bytes are those
    /// of the text.
    pub pointer: Option<String>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The value, or the start of a long one.
    Value,
    Piece {
        offset: usize,
        /// In bytes, at most [`PAGE`].
        length: Option<usize>,
    },
    Lines {
        from: u64,
        /// The last line; none for as many as fit.
        to: Option<u64>,
    },
    /// The places of a text, as written or with JSON's escapes.
    Search {
        text: String,
        /// The first byte of the search.
        after: usize,
    },
    /// The number of items, of fields, or of lines of a text.
    Count {
        /// Counts array items by the value of this field: its name, or a pointer within the item.
        by: Option<String>,
    },
    /// How often a text occurs, and in how many lines.
    CountText { text: String },
}

/// The answer to `look` at the result `text`. Errors are messages for the caller.
pub fn look(text: &str, look: &Look) -> Result<Value, String> {
    let part = Part::of(text, look.pointer.as_deref())?;
    match &look.what {
        What::Value => Ok(part.shown()),
        What::Piece { offset, length } => part.piece(*offset, length.unwrap_or(PAGE).clamp(1, PAGE)),
        What::Lines { from, to } => part.lines(*from, *to),
        What::Search { text, after } => search::places(&part, text, *after),
        What::Count { by } => count::items(&part, by.as_deref()),
        What::CountText { text } => count::hits(&part, text),
    }
}

struct Part<'t> {
    /// Empty for the whole result.
    pointer: &'t str,
    /// A text value without JSON's escapes; anything else as it is recorded.
    text: Cow<'t, str>,
    /// Set if the result is JSON.
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
            format!("the result is not JSON but a text of {lines} lines; leave out the pointer and give lines")
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

    /// True for JSON other than a text.
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
            return Err(format!("expected an offset up to {bytes}, got {offset}"));
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
            return Err(format!("expected lines from 1 to {all}, got {from}{to}"));
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

    /// The byte at which `piece` begins in the text.
    fn offset(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}

/// The error for a pointer to nothing, with the deepest value on its way.
fn missing(json: &Value, pointer: &str) -> String {
    let mut path = pointer;
    let shown = casebook_protocol::one_line(pointer, SHOWN);
    if !pointer.starts_with('/') {
        return format!("expected a JSON pointer such as /items/0, got {shown:?}");
    }
    while let Some(end) = path.rfind('/') {
        path = path.get(..end).unwrap_or_default();
        if let Some(value) = json.pointer(path) {
            let place = if path.is_empty() { "the whole".to_owned() } else { format!("{path:?}") };
            let place = casebook_protocol::one_line(&place, SHOWN);
            return format!("{shown:?} does not exist: {place} is {}", kind(value));
        }
    }
    format!("{shown:?} does not exist")
}

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
                map.keys().take(NAMES).map(|name| casebook_protocol::one_line(name, SHOWN)).collect();
            let more = map.len().saturating_sub(NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("an object with the fields {}{more}", names.join(", "))
        }
    }
}

/// A piece of `text` in whole characters; at least one unless it is at the end.
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
