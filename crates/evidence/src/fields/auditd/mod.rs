//! The Linux audit log, raw or inside a field of a collector.

mod decode;
pub(crate) mod event;

use super::keyvalue::{Pair, Reach, pairs};

/// None if `text` has no `audit(time:serial)`. Hexadecimal values are decoded, with the digits in `<name>.hex`.
/// The arguments of an EXECVE are also joined to `cmdline`, and numbers get their names.
pub(crate) fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let at = text.find("audit(")?;
    let stamp = text.get(at + 6..)?;
    let end = stamp.find(')')?;
    let (time, serial) = stamp.get(..end)?.split_once(':')?;
    if !time.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let mut out = Vec::new();
    let before = text.get(..at).unwrap_or_default().trim_end_matches("msg=");
    for pair in pairs(before, Reach::Word) {
        out.push((pair.key.to_owned(), pair.value.to_owned()));
    }
    out.push(("audit.time".into(), time.to_owned()));
    out.push(("audit.serial".into(), serial.to_owned()));
    let execve = out.iter().any(|(k, v)| k == "type" && v.contains("EXECVE"));
    let mut arguments = Vec::new();
    for pair in pairs(stamp.get(end + 1..).unwrap_or_default(), Reach::Word) {
        if pair.key == "msg" && pair.quote == Some('\'') {
            for inner in pairs(pair.value, Reach::Word) {
                add(&mut out, &inner, false);
            }
            continue;
        }
        let argument = execve && is_argument(pair.key) && !looks_like_address(&pair);
        let value = add(&mut out, &pair, argument);
        if argument {
            arguments.push(value);
        }
    }
    if !arguments.is_empty() && !out.iter().any(|(k, _)| k == "cmdline") {
        out.push(("cmdline".into(), arguments.join(" ")));
    }
    decode::add(&mut out);
    Some(out)
}

fn is_argument(key: &str) -> bool {
    key.strip_prefix('a').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A collector that merges SYSCALL into EXECVE adds the registers `a0`…`a3`. They have twelve digits, or fewer
/// than two; an encoded argument has an even number.
fn looks_like_address(pair: &Pair<'_>) -> bool {
    pair.quote.is_none() && unhex(pair.value).is_none()
}

fn add(out: &mut Vec<(String, String)>, pair: &Pair<'_>, argument: bool) -> String {
    let encoded = argument
        || matches!(
            pair.key,
            "proctitle" | "name" | "cwd" | "exe" | "comm" | "cmd" | "data" | "acct" | "path" | "dir" | "ocomm"
        );
    let decoded = if pair.quote.is_none() && encoded { unhex(pair.value) } else { None };
    match decoded {
        Some(text) => {
            out.push((pair.key.to_owned(), text.clone()));
            out.push((format!("{}.hex", pair.key), pair.value.to_owned()));
            text
        }
        None => {
            out.push((pair.key.to_owned(), pair.value.to_owned()));
            pair.value.to_owned()
        }
    }
}

/// Decodes hexadecimal digits if they are text. NUL separates arguments.
fn unhex(digits: &str) -> Option<String> {
    if digits.len() < 4 || !digits.len().is_multiple_of(2) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok()).collect();
    let bytes: Vec<u8> = bytes?.into_iter().map(|b| if b == 0 { b' ' } else { b }).collect();
    let text = String::from_utf8(bytes).ok()?;
    let printable = text.chars().all(|c| !c.is_control() || c.is_whitespace());
    printable.then(|| text.trim_end().to_owned())
}
