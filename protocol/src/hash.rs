//! SHA-256, and the canonical form of JSON that is hashed.

use std::borrow::Cow;

use serde::Serialize;
use sha2::{Digest, Sha256};

pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(if n < 10 { b'0' + n } else { b'a' + n - 10 });
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        text.extend([digit(byte >> 4), digit(byte & 15)]);
        text
    })
}

/// The bytes of a text of hexadecimal digits; `None` if it is none.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// `value` as JSON with keys sorted at every level and no white space.
///
/// # Panics
/// If `value` has a map key that is not a text. No hashed type has one.
#[allow(clippy::expect_used, reason = "every type that is hashed has text for keys, and its Serialize cannot fail")]
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("what is hashed can be written as JSON");
    let mut out = String::with_capacity(text.len());
    sorted(&text, &mut out, &mut String::new());
    out
}

/// Writes the value at the start of `text`, which has no white space, with sorted keys. Returns what follows it. Each event is
/// hashed, so no tree of values is built. `spare` is overwritten.
fn sorted<'t>(text: &'t str, out: &mut String, spare: &mut String) -> &'t str {
    match text.as_bytes().first() {
        Some(b'{') => object(text, out, spare),
        Some(b'[') => {
            let mut rest = text;
            while let Some(next) = rest.strip_prefix(['[', ',']) {
                out.push_str(cut(rest, 1).0);
                rest = if next.starts_with(']') { next } else { sorted(next, out, spare) };
            }
            out.push(']');
            cut(rest, 1).1
        }
        Some(b'"') => {
            let (string, rest) = cut(text, string(text));
            out.push_str(string);
            rest
        }
        _ => {
            let (scalar, rest) = cut(text, text.find([',', '}', ']']).unwrap_or(text.len()));
            out.push_str(scalar);
            rest
        }
    }
}

fn object<'t>(text: &'t str, out: &mut String, spare: &mut String) -> &'t str {
    out.push('{');
    let first = out.len();
    // Keys, and where the members begin and end in `out`.
    let mut members: Vec<(Cow<'t, str>, usize, usize)> = Vec::new();
    let mut in_order = true;
    let mut rest = cut(text, 1).1;
    while rest.starts_with(['"', ',']) {
        rest = rest.strip_prefix(',').unwrap_or(rest);
        if !members.is_empty() {
            out.push(',');
        }
        let begin = out.len();
        let (quoted, value) = cut(rest, string(rest));
        out.push_str(quoted);
        out.push(':');
        rest = sorted(cut(value, 1).1, out, spare);
        let key = key(quoted);
        in_order &= members.last().is_none_or(|(last, ..)| *last < key);
        members.push((key, begin - first, out.len() - first));
    }
    if !in_order {
        spare.clear();
        spare.push_str(cut(out, first).1);
        out.truncate(first);
        // Of a key that is there twice the last one counts.
        members.reverse();
        members.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        members.dedup_by(|(a, ..), (b, ..)| a == b);
        for (n, (_, begin, end)) in members.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(spare.get(*begin..*end).unwrap_or_default());
        }
    }
    out.push('}');
    cut(rest, 1).1
}

fn key(quoted: &str) -> Cow<'_, str> {
    if quoted.contains('\\')
        && let Ok(key) = serde_json::from_str(quoted)
    {
        return Cow::Owned(key);
    }
    Cow::Borrowed(quoted.trim_matches('"'))
}

/// The length of the string at the start, with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let ends = |byte: u8| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    };
    text.bytes().skip(1).position(ends).map_or(text.len(), |at| at + 2)
}

fn cut(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_form_does_not_depend_on_order() {
        let a: serde_json::Value =
            serde_json::from_str(r#"{"b":[1,{"y":2.5,"x":"é"}],"":18446744073709551615,"a\"b":1,"a":null}"#).unwrap();
        let canonical = r#"{"":18446744073709551615,"a":null,"a\"b":1,"b":[1,{"x":"é","y":2.5}]}"#;
        assert_eq!(canonical_json(&a), canonical);
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
    fn json() -> impl Strategy<Value = serde_json::Value> {
        let text = r#"[a-c"\\\\\n\u{1}é !{}:,\[\]]{0,5}"#;
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            text.prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Into::into),
                vec((text, inner), 0..6).prop_map(|all| serde_json::Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_form_is_that_of_a_sorted_tree(value in json()) {
            let mut tree = value.clone();
            tree.sort_all_objects();
            prop_assert_eq!(canonical_json(&value), tree.to_string());
        }
    }
}
