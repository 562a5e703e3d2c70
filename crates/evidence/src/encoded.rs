//! Values that are percent-encoded, perhaps more than once.

use std::iter::successors;

use percent_encoding::percent_decode_str;

/// How often a value is decoded.
const DECODED_MAX: usize = 8;

/// `text` decoded once, twice and so on, as long as that changes it, at most 8 times.
pub fn decodings(text: &str) -> impl Iterator<Item = String> + use<> {
    successors(decoded(text), |text| decoded(text)).take(DECODED_MAX)
}

fn decoded(text: &str) -> Option<String> {
    let next = percent_decode_str(text).decode_utf8_lossy();
    (next != text).then(|| next.into_owned())
}
