//! SHA-256, and the canonical form of JSON that is hashed.

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
    let mut tree = serde_json::to_value(value).expect("what is hashed can be written as JSON");
    tree.sort_all_objects();
    tree.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_form_does_not_depend_on_order() {
        let a: serde_json::Value =
            serde_json::from_str(r#"{"b":[1,{"y":2.5,"x":"é"}],"":18446744073709551615,"a\"b":1,"a":null}"#).unwrap();
        let canonical = r#"{"":18446744073709551615,"a":null,"a\"b":1,"b":[1,{"x":"é","y":2.5}]}"#;
        assert_eq!(canonical_json(&a), canonical);
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
