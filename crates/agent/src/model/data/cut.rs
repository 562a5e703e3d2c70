//! Cuts large results so that citations stay right: array items keep their places, and lines their numbers.

use serde_json::{Map, Value};

use super::escape_json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortened {
    /// JSON if the whole was JSON. Hidden characters are escaped.
    pub text: String,
    /// What was left out. Empty if nothing was.
    pub notes: Vec<String>,
    /// The pointer of the last item of the array with the most missing items.
    pub last: Option<String>,
}

/// Limits of texts in bytes, tried in order until [`FEW`] items of an array fit.
pub(super) const TEXTS: [usize; 5] = [usize::MAX, 4096, 1024, 256, 64];
/// With fewer items than this it is better to shorten their texts.
pub(super) const FEW: usize = 10;
/// Fields of an object that are always shown.
const FIELDS: usize = 40;
const NOTES: usize = 5;

/// JSON of `value` in at most `limit` bytes. Arrays end early, and then long texts are cut with `…`. Every pointer
/// into the result is also right in the whole.
pub fn fit(value: &Value, limit: usize) -> Shortened {
    let whole = escape_json(&value.to_string(), false);
    if whole.len() <= limit {
        return Shortened { text: whole, notes: Vec::new(), last: None };
    }
    let longest = longest(value);
    for (i, text) in TEXTS.into_iter().enumerate() {
        let enough = if i + 1 == TEXTS.len() { 0 } else { FEW.min(longest) };
        if let Some(fitted) = most_items(value, text, enough, longest, limit) {
            return fitted;
        }
    }
    Shortened { text: "{}".into(), notes: vec![format!("all {} bytes are left out", whole.len())], last: None }
}

/// The most items that fit with texts of at most `text` bytes; none if fewer than `enough` fit.
fn most_items(value: &Value, text: usize, enough: usize, longest: usize, limit: usize) -> Option<Shortened> {
    let trimmed = |items| Trim { items, text, notes: Vec::new(), texts: 0, most: None }.run(value);
    let mut best = Some(trimmed(enough)).filter(|f| f.text.len() <= limit)?;
    let (mut low, mut high) = (enough, longest);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let fitted = trimmed(middle);
        if fitted.text.len() <= limit {
            (low, best) = (middle, fitted);
        } else {
            high = middle - 1;
        }
    }
    Some(best)
}

fn longest(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest).max().unwrap_or(0).max(items.len()),
        Value::Object(map) => map.values().map(longest).max().unwrap_or(0).max(map.len()),
        _ => 0,
    }
}

struct Trim {
    items: usize,
    text: usize,
    notes: Vec<String>,
    texts: usize,
    most: Option<(usize, String)>,
}

impl Trim {
    fn run(mut self, value: &Value) -> Shortened {
        let text = escape_json(&self.trim(value, "").to_string(), false);
        let more = self.notes.len().saturating_sub(NOTES);
        self.notes.truncate(NOTES);
        if more > 0 {
            self.notes.push(format!("and more at {more} other places"));
        }
        if self.texts > 0 {
            self.notes.push(format!("{} texts are cut to {} bytes and end in …", self.texts, self.text));
        }
        Shortened { text, notes: self.notes, last: self.most.map(|(_, at)| at) }
    }

    fn trim(&mut self, value: &Value, path: &str) -> Value {
        match value {
            Value::String(text) if text.len() > self.text => {
                self.texts += 1;
                Value::String(format!("{}…", head(text, self.text)))
            }
            Value::Array(items) => {
                if items.len() > self.items {
                    let (missing, last) = (items.len() - self.items, items.len() - 1);
                    self.notes.push(format!("{path}/{} to {path}/{last} are left out", self.items));
                    if self.most.as_ref().is_none_or(|(most, _)| missing > *most) {
                        self.most = Some((missing, format!("{path}/{last}")));
                    }
                }
                let kept = items.iter().take(self.items).enumerate();
                Value::Array(kept.map(|(i, item)| self.trim(item, &format!("{path}/{i}"))).collect())
            }
            Value::Object(map) => {
                let most = self.items.max(FIELDS);
                if map.len() > most {
                    let place = if path.is_empty() { "the result" } else { path };
                    self.notes.push(format!("{} fields of {place} are left out", map.len() - most));
                }
                let kept: Map<String, Value> = map
                    .iter()
                    .take(most)
                    .map(|(key, item)| {
                        let step = key.replace('~', "~0").replace('/', "~1");
                        (key.clone(), self.trim(item, &format!("{path}/{}", casebook_protocol::one_line(&step, 60))))
                    })
                    .collect();
                Value::Object(kept)
            }
            other => other.clone(),
        }
    }
}

pub(crate) fn head(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

/// The first and last lines of a text in at most `limit` bytes. The first ones get three quarters.
pub(super) fn lines(text: &str, limit: usize) -> Shortened {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut first, mut used) = (0, 0);
    while let Some(line) = all.get(first).filter(|line| used + line.len() <= limit / 4 * 3) {
        used += line.len();
        first += 1;
    }
    let mut last = all.len();
    while let Some(line) = all.get(last.wrapping_sub(1)).filter(|line| last > first && used + line.len() <= limit) {
        used += line.len();
        last -= 1;
    }
    let (Some(start), Some(end), true) = (all.get(..first), all.get(last..), used > 0) else {
        let start = head(text, limit);
        return Shortened {
            text: start.to_owned(),
            notes: vec![format!("{} bytes are left out", text.len() - start.len())],
            last: None,
        };
    };
    let note = format!("lines {} to {last}, {} bytes, are left out", first + 1, text.len() - used);
    Shortened { text: [start, end].concat().concat(), notes: vec![note], last: None }
}
