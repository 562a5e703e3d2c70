//! Finds the recorded text of a quotation. A model copies text with the escapes of the prompt, or undoes them.

use casebook_protocol::Locator;
use serde_json::Value;

use super::{push_json_escape, push_visible, unseen};

/// The recorded text that the prompt shows as `quote`, within the value at `at` in `result`. None if `quote` occurs
/// unchanged or not at all: then it is used as it is.
pub fn recorded_quote(result: &str, at: &Locator, quote: &str) -> Option<String> {
    let quote = quote.strip_suffix('…').unwrap_or(quote);
    if quote.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    match (serde_json::from_str::<Value>(result), at) {
        (Ok(json), Locator::Pointer(pointer)) => strings(json.pointer(pointer)?, &mut texts),
        (Err(_), Locator::Pointer(pointer)) if pointer.is_empty() => texts.push(result.to_owned()),
        (_, Locator::Line(line)) => {
            let index = usize::try_from(line.checked_sub(1)?).ok()?;
            texts.push(result.lines().nth(index)?.to_owned());
        }
        (Err(_), Locator::Pointer(_)) => return None,
    }
    if texts.iter().any(|text| text.contains(quote)) {
        return None;
    }
    texts.iter().find_map(|text| FORMS.iter().find_map(|form| shown_as(text, quote, *form)))
}

fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(map) => map.values().for_each(|item| strings(item, out)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

type Form = fn(&mut String, char);

/// The forms of a recorded character in a copy: as in a text block, as in a JSON string, and as in a JSON string with
/// only hidden characters escaped.
const FORMS: [Form; 3] = [in_text, in_json, half_undone];

fn in_text(out: &mut String, c: char) {
    match c {
        '\n' | '\t' => out.push(c),
        c => push_visible(out, c),
    }
}

fn in_json(out: &mut String, c: char) {
    match c {
        c if unseen(c) && c >= ' ' => push_json_escape(out, c),
        c => {
            out.push_str(Value::from(c.to_string()).to_string().trim_start_matches('"').strip_suffix('"').unwrap_or(""))
        }
    }
}

fn half_undone(out: &mut String, c: char) {
    if unseen(c) && !matches!(c, '\n' | '\t') { push_json_escape(out, c) } else { out.push(c) }
}

/// The part of `text` that `form` writes as `quote`. A quotation that begins or ends inside an escape includes the
/// whole character.
fn shown_as(text: &str, quote: &str, form: Form) -> Option<String> {
    let mut shown = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for (at, c) in text.char_indices() {
        starts.push((shown.len(), at));
        form(&mut shown, c);
    }
    let start = shown.find(quote)?;
    let end = start + quote.len();
    let first = starts.iter().rev().find(|(s, _)| *s <= start)?.1;
    let last = starts.iter().find(|(s, _)| *s >= end).map_or(text.len(), |(_, at)| *at);
    text.get(first..last).map(str::to_owned)
}
