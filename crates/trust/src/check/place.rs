//! Converts between JSON pointers and byte positions in the text of a JSON document.

use std::ops::Range;

/// The same limit as `serde_json`.
const DEPTH: usize = 130;

/// The bytes of the value at `pointer` in `json`. If a key occurs twice, the last one counts.
pub fn span(json: &str, pointer: &str) -> Option<Range<usize>> {
    let mut found = None;
    walk(json, |place| {
        if place.path == pointer {
            found = Some(place.value);
        }
    })?;
    found
}

/// For each offset, the pointer of the innermost value around that byte. A key belongs to its value. Gives `""`,
/// the pointer of the whole text, if the text is not JSON.
pub fn pointers_at(json: &str, offsets: &[usize]) -> Vec<String> {
    let mut found: Vec<Option<String>> = vec![None; offsets.len()];
    let whole = walk(json, |place| {
        // Inner values come before those around them.
        for (at, slot) in offsets.iter().zip(&mut found).filter(|(_, slot)| slot.is_none()) {
            if place.with_key <= *at && *at < place.value.end {
                *slot = Some(place.path.to_owned());
            }
        }
    });
    if whole.is_none() {
        return vec![String::new(); offsets.len()];
    }
    found.into_iter().map(Option::unwrap_or_default).collect()
}

pub fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct Place<'p> {
    path: &'p str,
    /// Where the key begins, or the value if it has no key.
    with_key: usize,
    value: Range<usize>,
}

/// Calls `see` for every value, inner values first. None if `json` is not JSON.
fn walk(json: &str, see: impl FnMut(Place<'_>)) -> Option<()> {
    let mut walk = Walk { json, at: 0, path: String::new(), see };
    walk.value(None, DEPTH)
}

struct Walk<'t, F> {
    json: &'t str,
    at: usize,
    path: String,
    see: F,
}

impl<F: FnMut(Place<'_>)> Walk<'_, F> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.json.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|b| !b.is_ascii_whitespace())?;
        self.json.as_bytes().get(self.at).copied()
    }

    fn value(&mut self, key: Option<usize>, depth: usize) -> Option<()> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'{' => self.items(b'}', depth.checked_sub(1)?)?,
            b'[' => self.items(b']', depth.checked_sub(1)?)?,
            b'"' => self.string()?,
            _ => {
                let rest = self.json.as_bytes().get(start..)?;
                let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        let value = start..self.at;
        (self.see)(Place { path: &self.path, with_key: key.unwrap_or(start), value });
        (self.at > start).then_some(())
    }

    fn items(&mut self, end: u8, depth: usize) -> Option<()> {
        self.at += 1;
        let mut index = 0_usize;
        loop {
            match self.peek()? {
                b if b == end => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => {
                    let above = self.path.len();
                    let key = self.enter(end, index)?;
                    self.value(key, depth)?;
                    self.path.truncate(above);
                    index += 1;
                }
            }
        }
    }

    fn enter(&mut self, end: u8, index: usize) -> Option<Option<usize>> {
        self.path.push('/');
        if end == b']' {
            self.path.push_str(&index.to_string());
            return Some(None);
        }
        let start = self.at;
        self.string()?;
        let key: String = serde_json::from_str(self.json.get(start..self.at)?).ok()?;
        self.path.push_str(&step(&key));
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(Some(start))
    }

    fn string(&mut self) -> Option<()> {
        let mut escaped = true;
        for (place, byte) in self.json.as_bytes().get(self.at..)?.iter().enumerate() {
            match byte {
                b'"' if !escaped => {
                    self.at += place + 1;
                    return Some(());
                }
                b'\\' => escaped = !escaped && place > 0,
                // The first byte is the opening quotation mark.
                _ => escaped = false,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_byte_leads_to_the_innermost_value_around_it() {
        let text = r#"{ "a\/b": [1, {"~": "x\\\"y"}], "c" : null }"#;
        let at = |needle: &str| text.find(needle).unwrap();
        let check = |needle: &str, expect: &str| assert_eq!(pointers_at(text, &[at(needle)]), [expect], "{needle}");
        check("{ ", "");
        check("a\\/b", "/a~1b");
        check("1, ", "/a~1b/0");
        check("\"~\"", "/a~1b/1/~0");
        check("y\"", "/a~1b/1/~0");
        check("\"c\"", "/c");
        check("null", "/c");
        assert_eq!(pointers_at("no json", &[3]), [""]);
        assert_eq!(span(text, "/nothing"), None);
    }

    #[test]
    fn of_a_field_given_twice_the_last_counts() {
        let text = r#"{"a":1,"a":2}"#;
        assert_eq!(&text[span(text, "/a").unwrap()], "2");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\/~{}:,\n é\u{202e}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map("[a-z~/\"\\\\é]{0,4}", inner, 0..5).prop_map(|m| json!(m)),
            ]
        })
    }

    fn pointers(value: &Value, path: &str, out: &mut Vec<String>) {
        out.push(path.to_owned());
        match value {
            Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| pointers(v, &format!("{path}/{i}"), out)),
            Value::Object(map) => map.iter().for_each(|(k, v)| pointers(v, &format!("{path}/{}", step(k)), out)),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn every_pointer_leads_to_its_bytes_and_back(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let mut all = Vec::new();
            pointers(&value, "", &mut all);
            for pointer in all {
                let range = span(&text, &pointer).unwrap();
                let there: Value = serde_json::from_str(&text[range.clone()]).unwrap();
                prop_assert_eq!(&there, value.pointer(&pointer).unwrap());
                // The first byte of a value is its own.
                prop_assert_eq!(pointers_at(&text, &[range.start]), [pointer]);
            }
        }

        #[test]
        fn any_text_at_all_is_walked_without_a_panic(text in any::<String>(), at in 0usize..40) {
            let _ = (span(&text, "/a"), pointers_at(&text, &[at]), span(&format!("[{text}"), "/0"));
        }
    }
}
