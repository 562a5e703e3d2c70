//! Finds times in results of MCP servers. The fields of such results are unknown, so a time counts only if its
//! form and place are clear.

use serde_json::Value;

use super::CitedTime;
use crate::chosen;
use casebook_protocol::{TimeBasis, Timestamp};

/// A number is a time since 1970 if the name of its field contains one of these.
const TIMES: &[&str] = &["time", "date", "epoch", "stamp", "created", "modified", "seen", "start", "end", "expire"];
/// Fields in which a collector writes when it received a record.
const RECEIVED: &[&str] = &["ingest", "indexed", "receiv", "collected"];
/// In bytes.
const LONGEST: usize = 40;
/// How many levels of JSON inside JSON are read.
const DEPTH: u8 = 2;

/// Finds texts that are entirely a time, and numbers in fields with a name like a time. A time with a zone is
/// the time of the record, unless the recorded party chooses the text of its field.
pub(super) fn of_record(record: &Value, times: &mut Vec<CitedTime>) {
    of_field("", record, DEPTH, times);
}

fn of_field(key: &str, value: &Value, depth: u8, times: &mut Vec<CitedTime>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| of_field(key, inner, depth, times)),
        Value::Array(items) => items.iter().for_each(|inner| of_field(key, inner, depth, times)),
        Value::String(text) if text.contains('\n') => {
            let before = times.len();
            text.lines().for_each(|line| of_line(line, times));
            hearsay(key, before, times);
        }
        Value::String(text) => match inner(text).filter(|_| depth > 0) {
            Some(inner) => {
                let before = times.len();
                of_field(key, &inner, depth - 1, times);
                hearsay(key, before, times);
            }
            None => {
                let written = moment(text).or_else(|| epoch(key, text));
                times.extend(written.map(|(at, zoned)| CitedTime { at, basis: basis(key, zoned) }));
            }
        },
        Value::Number(number) => {
            let since = epoch(key, &number.to_string());
            times.extend(since.map(|(at, zoned)| CitedTime { at, basis: basis(key, zoned) }));
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// Lowers the basis of the times from `before` on if the recorded party chose the text of the field `key`.
fn hearsay(key: &str, before: usize, times: &mut [CitedTime]) {
    if chosen::by_name(key) {
        times.iter_mut().skip(before).for_each(|time| time.basis = TimeBasis::Inferred);
    }
}

pub(super) fn inner(text: &str) -> Option<Value> {
    let object = || serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    if text.starts_with('{') { object() } else { None }
}

fn basis(key: &str, zoned: bool) -> TimeBasis {
    let name = key.to_lowercase();
    if !zoned || chosen::by_name(key) {
        TimeBasis::Inferred
    } else if RECEIVED.iter().any(|part| name.contains(part)) {
        TimeBasis::Ingestion
    } else {
        TimeBasis::Record
    }
}

/// Only a time at the start of the line is the time of the line. Any other may be in a text that an attacker
/// chose.
pub(super) fn of_line(line: &str, times: &mut Vec<CitedTime>) {
    let starts: Vec<usize> = starts(line).collect();
    for at in starts {
        let Some((moment, zoned)) = longest(line.get(at..).unwrap_or_default()) else { continue };
        let own = zoned && line.get(..at).is_some_and(opens);
        let basis = if own { TimeBasis::Record } else { TimeBasis::Inferred };
        times.push(CitedTime { at: moment, basis });
    }
}

/// True if only punctuation or the name of a time field comes before the time.
fn opens(before: &str) -> bool {
    let words: Vec<&str> = before.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    match words.as_slice() {
        [] => true,
        [name] => before.trim_end_matches(['"', '\'', ' ']).ends_with([':', '=']) && named(name),
        _ => false,
    }
}

fn named(key: &str) -> bool {
    let name = key.to_lowercase();
    let short = matches!(name.as_str(), "ts" | "at" | "t" | "when") || name.ends_with("_ts");
    short || key.ends_with("_at") || key.ends_with("At") || TIMES.iter().any(|part| name.contains(part))
}

/// Where a year may begin: four digits and a `-`, without a digit before.
fn starts(line: &str) -> impl Iterator<Item = usize> {
    let bytes = line.as_bytes();
    let digits = move |at: usize| bytes.get(at..at + 4).is_some_and(|year| year.iter().all(u8::is_ascii_digit));
    (0..bytes.len()).filter(move |at| {
        let begins = at.checked_sub(1).and_then(|b| bytes.get(b)).is_none_or(|b| !b.is_ascii_alphanumeric());
        begins && digits(*at) && bytes.get(at + 4) == Some(&b'-')
    })
}

fn longest(text: &str) -> Option<(Timestamp, bool)> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '.' | ',' | '+' | '-');
    let end = text.char_indices().find(|(at, c)| *at >= LONGEST || !part(*c)).map_or(text.len(), |(at, _)| at);
    let ends = |end: &usize| {
        let goes_on = text.get(*end..).and_then(|rest| rest.chars().next());
        goes_on.is_none_or(|c| !c.is_ascii_digit())
    };
    (16..=end).rev().filter(ends).find_map(|end| moment(text.get(..end)?))
}

/// Reads `text` if all of it is a time; the flag says whether it has a zone. A date alone is not a time.
pub(super) fn moment(text: &str) -> Option<(Timestamp, bool)> {
    if text.len() > LONGEST || text.len() < 16 || !text.contains(':') || text.trim() != text {
        return None;
    }
    if let Ok(at) = text.parse() {
        return Some((at, true));
    }
    let utc = [" UTC", " GMT", " Z", "UTC", " +0000", " +00:00"].iter().find_map(|zone| text.strip_suffix(zone));
    let local: jiff::civil::DateTime = utc.unwrap_or(text).parse().ok()?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(local).ok()?;
    Some((at, utc.is_some()))
}

/// Seconds, milli-, micro- or nanoseconds since 1970; the size of the number decides which.
fn epoch(key: &str, text: &str) -> Option<(Timestamp, bool)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !named(key) || !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let number: i128 = whole.parse().ok()?;
    let nanoseconds = match whole.len() {
        10 => number * 1_000_000_000 + format!("{part:0<9}").parse::<i128>().ok()?,
        13 => number * 1_000_000,
        16 => number * 1_000,
        19 => number,
        _ => return None,
    };
    Some((Timestamp::from_nanosecond(nanoseconds).ok()?, true))
}

#[cfg(test)]
mod tests {
    use casebook_table::{expect_file, lines};

    use super::*;

    fn times(text: &str) -> String {
        let mut times = Vec::new();
        match serde_json::from_str(text) {
            Ok(record) => of_record(&record, &mut times),
            Err(_) => of_line(text, &mut times),
        }
        let told: Vec<_> = times.iter().map(|time| format!("{} {:?}", time.at, time.basis)).collect();
        if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }
    }

    #[test]
    fn each_record_and_line_has_the_times_on_file() {
        lines(&expect_file!["when.txt"], times);
        assert_eq!(times(&"2024-".repeat(200_000)), "nothing");
    }
}
