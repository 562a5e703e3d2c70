//! Decodes hidden text into readings.

use casebook_protocol::alert::hidden;
use icu_normalizer::ComposingNormalizerBorrowed;

/// At most this many coded words of a text are decoded, each of at least this many characters.
const CODED: usize = 16;
const CODE: usize = 20;

/// The text as written, followed by its decoded readings.
pub(super) fn of(text: &str) -> Vec<String> {
    let mut all = vec![text.to_owned()];
    let mut add = |reading: String| {
        let fresh = !reading.is_empty() && !all.contains(&reading);
        if fresh {
            all.push(reading);
        }
        fresh
    };
    let undone = unescape(text);
    let shown: String = undone.chars().filter(|c| !hidden(*c) || c.is_whitespace()).collect();
    let percent = percent(&shown);
    let plain = plain(&percent);
    add(parted(&percent));
    add(parted(&plain));
    add(undone.chars().filter_map(tag).collect());
    add(reversed(&undone).unwrap_or_default());
    add(shown);
    let mut decoded = 0;
    for coded in percent.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_'))) {
        if coded.len() >= CODE && decoded < CODED {
            decoded += usize::from(add(hex(coded).unwrap_or_default()));
            decoded += usize::from(add(base64(coded).unwrap_or_default()));
        }
    }
    add(percent);
    add(plain);
    all
}

/// Replaces bold, circled and full-width letters by plain ones. Skips characters that stand for a whole phrase,
/// and full-width brackets, because they do not render as a link.
fn plain(text: &str) -> String {
    if text.is_ascii() {
        return String::new();
    }
    let kept = text.chars().filter(|c| !matches!(c, '\u{fdfa}' | '\u{fdfb}'));
    let kept = kept.map(|c| if matches!(c, '［' | '］' | '（' | '）') { '\u{fffd}' } else { c });
    ComposingNormalizerBorrowed::new_nfkc().normalize(&kept.collect::<String>()).into_owned()
}

/// The ASCII letter that a tag character encodes.
fn tag(c: char) -> Option<char> {
    matches!(c, '\u{e0020}'..='\u{e007e}').then(|| char::from_u32(u32::from(c) - 0xe0000)).flatten()
}

/// Reverses the text behind a right-to-left override.
fn reversed(text: &str) -> Option<String> {
    let (_, turned) = text.split_once('\u{202e}')?;
    let turned = turned.split('\u{202c}').next().unwrap_or_default();
    Some(turned.chars().rev().filter(|c| !hidden(*c)).collect())
}

/// Undoes escapes of JSON and of our prompts.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        rest = match (coded(after), after.chars().next()) {
            (Some((c, length)), _) => {
                out.push(c);
                after.get(length..).unwrap_or_default()
            }
            (None, Some('n' | 'r' | 't')) => {
                out.push('\n');
                after.get(1..).unwrap_or_default()
            }
            (None, Some(c)) => {
                out.push(c);
                after.get(c.len_utf8()..).unwrap_or_default()
            }
            (None, None) => "",
        };
    }
    out.push_str(rest);
    out
}

/// The character that an escape such as `u0041` (or a pair) encodes, and the length of the escape in bytes.
fn coded(escape: &str) -> Option<(char, usize)> {
    let unit = |text: &str| text.strip_prefix('u')?.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let first = unit(escape)?;
    let second = escape.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match char::from_u32(first.into()) {
        Some(c) => Some((c, 5)),
        None => pair.map(|c| (c, 11)),
    }
}

fn percent(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten().and_then(|d| std::str::from_utf8(d).ok());
        match code.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parted(text: &str) -> String {
    let spaced: String =
        text.chars().map(|c| if matches!(c, '-' | '_' | '.' | '+' | '/' | '|' | '=') { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn printable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?.replace('\0', " ");
    let fine = |c: &char| c.is_alphanumeric() || c.is_ascii_punctuation() || c.is_whitespace();
    let total = text.chars().count();
    (total >= 12 && text.chars().filter(fine).count() * 20 >= total * 19).then_some(text)
}

fn hex(text: &str) -> Option<String> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok());
    printable(pairs.collect::<Option<Vec<u8>>>()?)
}

fn base64(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut have) = (0_u32, 0_u8);
    for c in text.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(six)) & 0x00ff_ffff;
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have & 0xff) as u8);
        }
    }
    printable(bytes)
}
