//! `key=value` text: audit records, firewalls, logfmt, CEF and LEEF.

use super::owned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair<'t> {
    pub(crate) key: &'t str,
    pub(crate) value: &'t str,
    pub(crate) quote: Option<char>,
}

/// Where a value without quotes ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// At the next blank, except for keys that hold free text.
    Word,
    NextKey,
}

pub(crate) fn pairs(text: &str, reach: Reach) -> Vec<Pair<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, key)) = next_key(text, at) {
        let after = start + key.len() + 1;
        let (value, quote, end) = value_at(text, after, free_text(key) || reach == Reach::NextKey);
        found.push(Pair { key, value, quote });
        at = end.max(after);
    }
    found
}

/// True if there are at least three pairs that make up nearly all of the text.
pub(crate) fn looks_like_pairs(text: &str) -> bool {
    if memchr::memchr_iter(b'=', text.as_bytes()).nth(2).is_none() {
        return false;
    }
    let found = pairs(text, Reach::Word);
    let covered: usize = found.iter().map(|p| p.key.len() + p.value.len() + 2).sum();
    found.len() >= 3 && covered * 2 > text.len()
}

/// Keys whose values may contain blanks.
fn free_text(key: &str) -> bool {
    matches!(
        key.to_ascii_lowercase().as_str(),
        "proctitle" | "cmdline" | "cmd" | "command" | "commandline" | "msg" | "message" | "reason"
    )
}

const fn in_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@')
}

/// The next key from byte `from` on, with its place. A key is at the start, or after a blank, `,`, `;`, `(`,
/// `[`, `{` or `|`.
fn next_key(text: &str, from: usize) -> Option<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        let equals = at + memchr::memchr(b'=', bytes.get(at..)?)?;
        let mut start = equals;
        while start > from && bytes.get(start - 1).copied().is_some_and(in_key) {
            start -= 1;
        }
        let before = start.checked_sub(1).and_then(|i| bytes.get(i));
        let clean = before
            .is_none_or(|b| blank(b) || matches!(b, b',' | b';' | b'(' | b'[' | b'{' | b'|' | b'>' | b'\'' | b'"'));
        let named = bytes.get(start).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
        if clean && named && (1..=64).contains(&(equals - start)) && bytes.get(equals + 1) != Some(&b'=') {
            return Some((start, text.get(start..equals)?));
        }
        at = equals + 1;
    }
}

fn value_at(text: &str, from: usize, to_next_key: bool) -> (&str, Option<char>, usize) {
    let bytes = text.as_bytes();
    let slice = |a: usize, b: usize| text.get(a..b).unwrap_or_default();
    match bytes.get(from) {
        Some(quote @ (b'"' | b'\'')) => {
            let mut at = from + 1;
            while let Some(b) = bytes.get(at) {
                if b == quote {
                    return (slice(from + 1, at), Some(char::from(*quote)), at + 1);
                }
                at += if *b == b'\\' { 2 } else { 1 };
            }
            (slice(from + 1, text.len()), Some(char::from(*quote)), text.len())
        }
        Some(b'[') => {
            let end = memchr::memchr(b']', bytes.get(from..).unwrap_or_default())
                .map_or_else(|| word_end(bytes, from), |n| from + n + 1);
            (slice(from, end), None, end)
        }
        _ if to_next_key => {
            let end = next_key(text, word_end(bytes, from)).map_or(text.len(), |(start, _)| start);
            (slice(from, end).trim_end_matches([' ', ',', ';', '\t']), None, end)
        }
        _ => {
            let end = word_end(bytes, from);
            (slice(from, end).trim_end_matches([',', ';', ')', '|', '\'']), None, end)
        }
    }
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(blank).unwrap_or(rest.len())
}

/// auditd separates resolved names with the group separator.
const fn blank(b: &u8) -> bool {
    b.is_ascii_whitespace() || *b == 0x1d
}

/// Firewall pairs with commas and no blanks: `a=1,b=2`.
pub(crate) fn comma_pairs(text: &str) -> Option<Vec<(String, String)>> {
    if text.contains(' ') && !text.contains(", ") {
        return None;
    }
    let parts: Vec<_> = text.split(',').map(|part| part.trim().split_once('=')).collect();
    if parts.len() < 3 || parts.iter().any(|p| p.is_none_or(|(k, _)| !k.bytes().all(in_key))) {
        return None;
    }
    let unquoted = |v: &str| owned(v.trim_matches('"'));
    Some(parts.into_iter().flatten().map(|(k, v)| (owned(k), unquoted(v))).collect())
}

/// Pairs with bars, whose values may hold blanks: `action=EXEC|path=/bin/ls|args=ls -l`. Text that ends with a
/// colon may come first.
pub(crate) fn bar_pairs(text: &str) -> Option<Vec<(String, String)>> {
    let first = text.find('=')?;
    let from = text.get(..first)?.rfind(": ").map_or(0, |at| at + 2);
    let parts: Vec<_> = text.get(from..)?.split('|').map(|part| part.split_once('=')).collect();
    let named = |part: &Option<(&str, &str)>| part.is_some_and(|(k, _)| !k.is_empty() && k.bytes().all(in_key));
    if parts.len() < 3 || !parts.iter().all(named) {
        return None;
    }
    Some(parts.into_iter().flatten().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
}

/// The CEF or LEEF header may be anywhere in `text`.
pub(crate) fn cef(text: &str) -> Option<Vec<(String, String)>> {
    const CEF: [&str; 7] =
        ["cef_version", "device_vendor", "device_product", "device_version", "signature_id", "name", "severity"];
    const LEEF: [&str; 5] = ["leef_version", "device_vendor", "device_product", "device_version", "event_id"];
    let (names, rest): (&[&str], &str) = match (text.find("CEF:"), text.find("LEEF:")) {
        (Some(at), _) => (&CEF, text.get(at + 4..)?),
        (None, Some(at)) => (&LEEF, text.get(at + 5..)?),
        (None, None) => return None,
    };
    let mut fields = Vec::new();
    let mut rest = rest;
    for name in names {
        let end = bar(rest)?;
        fields.push(((*name).to_owned(), rest.get(..end)?.replace("\\|", "|")));
        rest = rest.get(end + 1..)?;
    }
    if rest.contains('\t') {
        let split = rest.split('\t').filter_map(|part| part.split_once('='));
        fields.extend(split.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned())));
    } else {
        let found = pairs(rest, Reach::NextKey);
        fields.extend(found.iter().map(|p| (p.key.to_owned(), p.value.replace("\\=", "="))));
    }
    Some(fields)
}

fn bar(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'|', bytes).find(|at| at.checked_sub(1).and_then(|i| bytes.get(i)) != Some(&b'\\'))
}
