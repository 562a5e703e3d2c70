//! SHA-256, and JSON in the one form that is hashed.

use std::borrow::Cow;

use memchr::memchr2;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of `bytes` in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `bytes` in lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(if n < 10 { b'0' + n } else { b'a' + n - 10 });
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        text.extend([digit(byte >> 4), digit(byte & 15)]);
        text
    })
}

/// JSON with keys sorted at every level and no white space, whatever order the parser keeps.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    canonical(value).unwrap_or_default()
}

/// The same of anything that can be written as JSON: as text, without a tree in between, since every
/// request and every event is hashed in this form.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let text = serde_json::to_vec(value)?;
    let mut sorted = Sorted { text: &text, at: 0, out: Vec::with_capacity(text.len()), entries: Vec::new() };
    sorted.value();
    String::from_utf8(sorted.out).map_err(serde::ser::Error::custom)
}

/// Copies JSON text that has no white space, with the entries of every object in order of their keys.
struct Sorted<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// Of each object that is open its entries so far.
    entries: Vec<Entry>,
}

/// Where a key begins and ends in what is written, and where its value ends.
#[derive(Clone, Copy)]
struct Entry {
    key: usize,
    value: usize,
    end: usize,
}

impl Sorted<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Copies what lies before `end`.
    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(self.text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    fn value(&mut self) {
        match self.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string(),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let length = rest.iter().position(|b| matches!(b, b',' | b']' | b'}')).unwrap_or(rest.len());
                self.copy_to(self.at + length);
            }
        }
    }

    fn string(&mut self) {
        let mut end = self.at + 1;
        while let Some(more) = self.text.get(end..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            end += more;
            if self.text.get(end) == Some(&b'"') {
                break;
            }
            end += 2;
        }
        self.copy_to((end + 1).min(self.text.len()));
    }

    fn array(&mut self) {
        self.copy_to(self.at + 1);
        while !matches!(self.peek(), b']' | 0) {
            self.value();
            if self.peek() == b',' {
                self.copy_to(self.at + 1);
            }
        }
        self.copy_to(self.at + 1);
    }

    /// The entries as they come, put in order at the end where they are not: few objects are not.
    fn object(&mut self) {
        self.copy_to(self.at + 1);
        let (begin, first) = (self.out.len(), self.entries.len());
        while self.peek() == b'"' {
            let key = self.out.len();
            self.string();
            let value = self.out.len();
            self.copy_to(self.at + 1);
            self.value();
            self.entries.push(Entry { key, value, end: self.out.len() });
            if self.peek() == b',' {
                self.copy_to(self.at + 1);
            }
        }
        self.order(begin, first);
        self.entries.truncate(first);
        self.copy_to(self.at + 1);
    }

    fn order(&mut self, begin: usize, first: usize) {
        let out = &self.out;
        let key = |entry: &Entry| {
            // Without its marks, in which a shorter key would come after a longer one.
            let key = out.get(entry.key + 1..entry.value - 1).unwrap_or_default();
            // What is escaped sorts by what it stands for.
            if key.contains(&b'\\') { unescaped(key) } else { Cow::Borrowed(key) }
        };
        let entries = self.entries.get_mut(first..).unwrap_or_default();
        if entries.is_sorted_by_key(key) {
            return;
        }
        entries.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut text = Vec::with_capacity(out.len() - begin);
        for entry in entries {
            if !text.is_empty() {
                text.push(b',');
            }
            text.extend_from_slice(out.get(entry.key..entry.end).unwrap_or_default());
        }
        self.out.truncate(begin);
        self.out.extend_from_slice(&text);
    }
}

fn unescaped(key: &[u8]) -> Cow<'_, [u8]> {
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice(&quoted).map_or(Cow::Borrowed(key), |key: String| Cow::Owned(key.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form as it is defined, over a tree.
    fn defined(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("[{}]", items.iter().map(defined).collect::<Vec<_>>().join(",")),
            Value::Object(map) => {
                let mut keys: Vec<_> = map.iter().collect();
                keys.sort_by(|a, b| a.0.cmp(b.0));
                let entry =
                    |(key, item): &(&String, &Value)| format!("{}:{}", Value::String((*key).clone()), defined(item));
                format!("{{{}}}", keys.iter().map(entry).collect::<Vec<_>>().join(","))
            }
            scalar => scalar.to_string(),
        }
    }

    /// SplitMix64.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((z ^ (z >> 27)) >> 8) as usize
    }

    fn any(state: &mut u64, depth: usize) -> Value {
        const WORDS: [&str; 12] =
            ["", "a", "ab", "a b", "A", "\"", "a\"b", "\\", "é", "\u{1}", "{\"x\":[1,2]}", "a\u{7f}\u{2028}"];
        let word = |state: &mut u64| WORDS[next(state) % WORDS.len()].to_owned();
        match next(state) % if depth == 0 { 5 } else { 8 } {
            0 => Value::Null,
            1 => next(state).is_multiple_of(2).into(),
            2 => (next(state) as i64 % 1000 - 500).into(),
            3 => (next(state) as f64 / 1e7).into(),
            4 => word(state).into(),
            5 => (0..next(state) % 4).map(|_| any(state, depth - 1)).collect(),
            _ => Value::Object((0..next(state) % 6).map(|_| (word(state), any(state, depth - 1))).collect()),
        }
    }

    #[test]
    fn the_text_is_what_the_tree_defines() {
        let mut state = 7;
        for _ in 0..20_000 {
            let value = any(&mut state, 4);
            assert_eq!(canonical_json(&value), defined(&value));
        }
    }

    #[test]
    fn canonical_form_does_not_depend_on_order() {
        let a: Value = serde_json::from_str(r#"{"b":[1,{"y":2,"x":"é"}],"a":null}"#).unwrap();
        assert_eq!(canonical_json(&a), r#"{"a":null,"b":[1,{"x":"é","y":2}]}"#);
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
