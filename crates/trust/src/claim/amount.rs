//! Compares amounts across units: a claim may say kilobytes or minutes if the record says bytes or milliseconds.

use super::corpus::Corpus;
use casebook_protocol::{Timestamp, apart};

const DURATIONS: &[&str] = &["duration", "elapsed", "latency", "took", "_ms", "millis", "seconds", "uptime"];
const SIZES: &[&str] = &["bytes", "size", "octets", "length", "_len"];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Time(f64),
    /// Two values, because a kilobyte may be 1000 or 1024 bytes.
    Data(f64, f64),
}

pub(super) fn unit(word: &str) -> Option<Unit> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ms" | "milliseconds" | "millisecond" => Unit::Time(0.001),
        "s" | "sec" | "secs" | "seconds" | "second" => Unit::Time(1.0),
        "min" | "mins" | "minutes" | "minute" => Unit::Time(60.0),
        "h" | "hours" | "hour" => Unit::Time(3600.0),
        "days" | "day" => Unit::Time(86400.0),
        "b" | "byte" | "bytes" | "octets" => Unit::Data(1.0, 1.0),
        "kb" | "kilobytes" | "kilobyte" => Unit::Data(1e3, 1024.0),
        "kib" | "kibibytes" => Unit::Data(1024.0, 1024.0),
        "mb" | "megabytes" | "megabyte" => Unit::Data(1e6, 1_048_576.0),
        "mib" | "mebibytes" => Unit::Data(1_048_576.0, 1_048_576.0),
        "gb" | "gigabytes" | "gigabyte" => Unit::Data(1e9, 1_073_741_824.0),
        "gib" | "gibibytes" => Unit::Data(1_073_741_824.0, 1_073_741_824.0),
        _ => return None,
    })
}

/// The value and the number of decimals.
pub(super) fn number(word: &str) -> Option<(f64, u32)> {
    let digits: String = word.chars().filter(|c| *c != ',' && *c != '_').collect();
    let plain =
        digits.chars().all(|c| c.is_ascii_digit() || c == '.') && digits.starts_with(|c: char| c.is_ascii_digit());
    let decimals = digits.split_once('.').map_or(0, |(_, d)| u32::try_from(d.len()).unwrap_or(u32::MAX));
    (plain && decimals < 12).then(|| digits.parse().ok()).flatten().map(|n| (n, decimals))
}

/// Splits `35ms` into `35` and `ms`.
pub(super) fn with_unit(word: &str) -> Option<(&str, Unit)> {
    let end = word.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, name) = word.split_at(end);
    Some((digits, unit(name).filter(|_| number(digits).is_some())?))
}

/// True if the evidence states the amount, in any unit, as exactly as the claim. A duration may also lie between
/// two cited times.
pub(super) fn is_stated(value: f64, decimals: u32, unit: Unit, corpus: &Corpus, times: &[Timestamp]) -> bool {
    let half = 0.5 / 10_f64.powi(i32::try_from(decimals).unwrap_or(0)) + 1e-9;
    let near = |found: f64| (found - value).abs() <= half;
    match unit {
        Unit::Time(seconds) => {
            let slack = if decimals == 0 { 1.0 } else { half };
            times.iter().any(|a| times.iter().any(|b| (apart(*a, *b) / seconds - value).abs() <= slack))
                || corpus.amounts(DURATIONS).any(|n| [1.0, 1e-3, 1e-6, 1e-9].iter().any(|s| near(n * s / seconds)))
        }
        Unit::Data(small, large) => corpus.amounts(SIZES).any(|n| near(n / small) || near(n / large)),
    }
}

pub(super) fn occurs_alone(text: &str, digits: &str) -> bool {
    places(text, digits).next().is_some()
}

/// Where the digits occur in `text` as a separate number.
pub(super) fn places<'a>(text: &'a str, digits: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(digits).map(|(at, _)| at).filter(move |at| {
        let (head, tail) = (text.get(..*at).unwrap_or_default(), text.get(at + digits.len()..).unwrap_or_default());
        free(head.chars().rev(), digits.len()) && free_after(tail, digits.len())
    })
}

fn free_after(tail: &str, own: usize) -> bool {
    let letters: String = tail.chars().take_while(|c| c.is_alphanumeric()).collect();
    (letters.is_empty() || unit(&letters).is_some() || letters == "x") && free(tail.chars(), own)
        || (!letters.is_empty() && unit(&letters).is_some())
}

/// Looks at the characters beside a number. False if it is part of something longer: a number, an address, a
/// date, a time or a name such as `AES_256_GCM`.
fn free(beside: impl Iterator<Item = char>, own: usize) -> bool {
    let mut beside = beside.peekable();
    let Some(mark) = beside.next() else { return true };
    if mark == '_' && beside.peek().is_some_and(|c| c.is_alphanumeric()) {
        return false;
    }
    let group = beside.take_while(char::is_ascii_digit).count();
    match mark {
        '.' => group == 0,
        ':' => group == 0 || group > 2 || own > 2,
        '-' | '/' => group == 0 || !(matches!((own, group), (2 | 4, 2) | (2, 4)) || (own <= 2 && group <= 2)),
        c => !c.is_alphanumeric(),
    }
}
