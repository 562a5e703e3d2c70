//! A look into one recorded text: a page of it, the places of a text in it, or a value of its JSON.

use serde_json::{Value, json};

/// The longest piece of a text that one look gives, in bytes.
const PAGE: usize = 16 * 1024;
/// Text around a hit, in bytes to each side.
const AROUND: usize = 160;
/// Hits of one look.
const HITS: usize = 20;

/// What to look for. Nothing: the first page.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// From this byte on.
    pub offset: Option<usize>,
    /// The places of this text, as it is or as JSON writes it.
    pub search: Option<String>,
    /// The value at this JSON pointer.
    pub pointer: Option<String>,
}

/// What `wanted` finds in `text`.
///
/// # Errors
/// What is there instead, and what to ask for.
pub fn look(text: &str, wanted: &Look) -> Result<Value, String> {
    match (&wanted.search, &wanted.pointer) {
        (Some(_), Some(_)) => Err("`search` and `pointer` exclude each other: give one of them".into()),
        (Some(needle), None) => found(text, needle, wanted.offset.unwrap_or(0)),
        (None, Some(pointer)) => pointed(text, pointer, wanted.offset.unwrap_or(0)),
        (None, None) => page(text, wanted.offset.unwrap_or(0)),
    }
}

fn page(text: &str, offset: usize) -> Result<Value, String> {
    if offset > text.len() {
        return Err(format!("`offset` {offset} is after the end: there are {} bytes", text.len()));
    }
    let piece = slice(text, offset, PAGE);
    let start = floor(text, offset);
    let end = start + piece.len();
    Ok(json!({
        "text": piece, "offset": start, "bytes": text.len(), "next_offset": (end < text.len()).then_some(end),
    }))
}

/// The places from `from` on. A recorded result is often JSON, in which the text may be escaped.
fn found(text: &str, needle: &str, from: usize) -> Result<Value, String> {
    if needle.is_empty() {
        return Err("`search` is empty: give the text to look for".into());
    }
    let escaped = Value::from(needle).to_string();
    let escaped = escaped.get(1..escaped.len() - 1).unwrap_or_default();
    let form = [needle, escaped].into_iter().find(|form| text.contains(form));
    let mut places = form.into_iter().flat_map(|form| text.match_indices(form)).filter(|(at, _)| *at >= from);
    let hits: Vec<Value> = places
        .by_ref()
        .take(HITS)
        .map(|(at, hit)| {
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            let start = floor(text, at.saturating_sub(AROUND));
            json!({"offset": at, "line": line, "text": slice(text, start, at - start + hit.len() + AROUND)})
        })
        .collect();
    let next = places.next().map(|(at, _)| at);
    Ok(json!({"search": needle, "hits": hits, "next_offset": next}))
}

fn pointed(text: &str, pointer: &str, offset: usize) -> Result<Value, String> {
    let json: Value =
        serde_json::from_str(text).map_err(|_| "this is not JSON: leave out `pointer` to page through it")?;
    let value = json.pointer(pointer).ok_or_else(|| nothing_at(&json, pointer))?;
    let written = value.to_string();
    if written.len() <= PAGE && offset == 0 {
        return Ok(json!({"pointer": pointer, "value": value}));
    }
    let mut page = page(&written, offset)?;
    if let Value::Object(page) = &mut page {
        page.insert("pointer".into(), pointer.into());
    }
    Ok(page)
}

/// Names the last place on the way to `pointer` that there is.
fn nothing_at(json: &Value, pointer: &str) -> String {
    let mut there = pointer;
    let value = loop {
        match there.rfind('/') {
            Some(at) => there = there.get(..at).unwrap_or_default(),
            None => return format!("{pointer:?} is no JSON pointer: it begins with /"),
        }
        if let Some(value) = json.pointer(there) {
            break value;
        }
    };
    let has = match value {
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(map) => {
            let keys: Vec<&str> = map.keys().take(20).map(String::as_str).collect();
            format!("an object with {}", keys.join(", "))
        }
        _ => "a single value".into(),
    };
    format!("nothing stands at {pointer:?}; at {there:?} is {has}")
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn slice(text: &str, offset: usize, length: usize) -> &str {
    let start = floor(text, offset);
    let mut end = floor(text, start.saturating_add(length));
    if end == start && start < text.len() {
        end = text.char_indices().map(|(at, _)| at).find(|at| *at > start).unwrap_or(text.len());
    }
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: usize) -> Look {
        Look { offset: Some(offset), ..Look::default() }
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let text = "aé".repeat(20_000);
        let (mut offset, mut whole) = (0, String::new());
        loop {
            let page = look(&text, &at(offset)).unwrap();
            whole.push_str(page["text"].as_str().unwrap());
            match page["next_offset"].as_u64() {
                Some(next) => offset = usize::try_from(next).unwrap(),
                None => break,
            }
        }
        assert_eq!(whole, text);
        assert!(look(&text, &at(text.len() + 1)).unwrap_err().contains("after the end"));
    }

    #[test]
    fn a_text_is_found_as_it_is_and_as_json_writes_it() {
        let text = json!({"path": "C:\\Temp", "n": [1, 2]}).to_string();
        for needle in ["C:\\Temp", "path"] {
            let wanted = Look { search: Some(needle.into()), ..Look::default() };
            assert_eq!(look(&text, &wanted).unwrap()["hits"].as_array().unwrap().len(), 1, "{needle}");
        }
        let many = "x\n".repeat(50);
        let wanted = Look { search: Some("x".into()), ..at(10) };
        let found = look(&many, &wanted).unwrap();
        assert_eq!((&found["hits"][0]["line"], &found["next_offset"]), (&json!(6), &json!(50)));
    }

    #[test]
    fn a_pointer_leads_to_a_value_or_says_what_is_there() {
        let text = r#"{"a":{"b":[1,2]}}"#;
        let to = |pointer: &str| look(text, &Look { pointer: Some(pointer.into()), ..Look::default() });
        assert_eq!(to("/a/b/1").unwrap()["value"], 2);
        assert_eq!(to("/a/c").unwrap_err(), "nothing stands at \"/a/c\"; at \"/a\" is an object with b");
        assert_eq!(to("/a/b/7/x").unwrap_err(), "nothing stands at \"/a/b/7/x\"; at \"/a/b\" is an array of 2 items");
        assert!(look("plain", &Look { pointer: Some("/a".into()), ..Look::default() }).is_err());
    }
}
