//! Forms of citations: rows of SQL, groups, windows of counts, numbers, patterns, phrases and short values. For each,
//! true findings and falsehoods of the same form.

use casebook_protocol::{
    Bearing, CallStatus, Citation, EventTime, FindingKind, Locator, Precision, TimeBasis, Timestamp,
};
use rand::Rng;
use serde_json::{Value, json};

use super::searches::{state, stated_absent};
use super::{Plant, names, with};
use crate::calibrate::stage::Rec;

/// A word of the record other than a number.
fn word(p: &mut Plant, record: &Rec) -> Option<String> {
    let words = record.raw.split(|c: char| !c.is_ascii_alphanumeric());
    let plain = |word: &&str| (5..24).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphabetic());
    p.choose(words, plain).map(str::to_owned)
}

fn made_up(p: &mut Plant) -> String {
    format!("qx{}", p.below(1_000_000))
}

/// A name that is in the evidence.
fn there(p: &mut Plant) -> Option<String> {
    let plain = |name: &String| name.len() >= 5 && name.chars().all(|c| c.is_ascii_alphabetic());
    p.choose(p.stage.bases.iter().flat_map(|base| names(&base.found.finding.draft.claim)), plain)
}

fn source(p: &Plant) -> Option<Value> {
    p.record()?.value.get("source").cloned()
}

fn literal(call: casebook_protocol::CallId, at: &str, quote: &str) -> Citation {
    Citation::Literal { call, at: Locator::Pointer(at.into()), quote: quote.into() }
}

/// An absence, with a query that found nothing.
fn absent(p: &mut Plant, arguments: &Value, claim: String) -> Option<()> {
    let result = json!({"total": 0, "total_is_exact": true, "returned": 0, "records": [],
        "window": {"from": null, "to": null}, "searched": [source(p)?]});
    let (first, second) = (p.search(arguments, &result), p.search(arguments, &result));
    stated_absent(p, claim, &first, (None, None), second);
    Some(())
}

/// A row of SQL as the tool gives it, with the mark of one record or without.
fn row(p: &mut Plant, record: &Rec, more: &Value, marked: bool) -> casebook_protocol::CallId {
    let known = |key: &str| record.value.get(key).cloned().unwrap_or(Value::Null);
    let mut row = json!({"file": record.file, "line": record.line, "raw": record.raw, "source": known("source"),
        "time": known("time"), "time_basis": known("time_basis")});
    if let (Some(row), Some(more)) = (row.as_object_mut(), more.as_object()) {
        row.extend(more.clone());
        row.extend(marked.then(|| ("of_record".to_owned(), json!(true))));
    }
    let query = json!({"query": "SELECT file, line, raw FROM records LIMIT 1"});
    p.call("sql", &query, &json!({"columns": ["file", "line", "raw"], "rows": [row], "truncated": false}))
}

/// True: a row of SQL that is one record.
pub(crate) fn row_of_sql(p: &mut Plant) -> Option<()> {
    let record = p.record()?;
    let name = word(p, record)?;
    let call = row(p, record, &json!({}), true);
    let claim = format!("A record names `{name}`");
    state(p, FindingKind::Occurrence, claim, literal(call, "/rows/0/raw", &name));
    p.draft.time = Some(event_at(record)?);
    Some(())
}

fn event_at(record: &Rec) -> Option<EventTime> {
    let (precision, basis) = (record.precision, record.basis);
    Some(EventTime { at: record.time?, until: None, precision, basis, field: String::new() })
}

/// A row of SQL with a cell or a name of a column that the query made up.
pub(crate) fn forged_row(p: &mut Plant) -> Option<()> {
    let (record, name) = (p.record()?, made_up(p));
    let own = word(p, record)?;
    let (call, quote) = match p.below(2) {
        0 => (row(p, record, &json!({"raw": format!("{name} logged on")}), false), name.clone()),
        _ => (row(p, record, &json!({name.as_str(): own}), true), own),
    };
    state(p, FindingKind::State, format!("A record names `{name}`"), literal(call, "/rows/0", &quote));
    Some(())
}

struct Grouped {
    call: casebook_protocol::CallId,
    again: casebook_protocol::CallId,
    value: String,
    count: u64,
    first: Timestamp,
    last: Timestamp,
}

/// A count with two groups; the second one is larger and later.
fn grouped(p: &mut Plant) -> Option<Grouped> {
    let record = p.record()?;
    let (value, other) = (word(p, record)?, made_up(p));
    let (count, first) = (p.dice.random_range(11..900), record.time?);
    let (last, far) = (super::times::moved(first, 7_211)?, super::times::moved(first, 93_600)?);
    let group = |value: &str, count: u64, first: Timestamp, last: Timestamp| {
        json!({"value": value, "count": count, "first_time": first.to_string(), "last_time": last.to_string(),
            "example": {"source": record.value.get("source"), "file": record.file, "line": record.line}})
    };
    let groups = [group(&value, count, first, last), group(&other, count + 1_000, last, far)];
    let result = json!({"total": count * 2 + 1_000, "total_is_exact": true, "missing": 0, "distinct": 2,
        "groups": groups, "window": {"from": null, "to": null}, "searched": [source(p)?]});
    let arguments = json!({"field": "user"});
    let (call, again) = (p.call("count_by", &arguments, &result), p.call("count_by", &arguments, &result));
    Some(Grouped { call, again, value, count, first, last })
}

fn of_group(p: &mut Plant, grouped: &Grouped, claim: String, (at, until): (Timestamp, Timestamp)) {
    let again = Some(grouped.again.clone());
    let pointer = Locator::Pointer("/groups/0/count".into());
    let citation = match p.one_in(2) {
        true => Citation::Count { call: grouped.call.clone(), at: pointer, value: grouped.count, again },
        false => literal(grouped.call.clone(), "/groups/0", &grouped.value),
    };
    state(p, FindingKind::Aggregate, claim, citation);
    let (precision, basis, field) = (Precision::Second, TimeBasis::Aggregation, String::new());
    p.draft.time = Some(EventTime { at, until: Some(until), precision, basis, field });
}

/// True: value, count and times of a group.
pub(crate) fn group(p: &mut Plant) -> Option<()> {
    let found = grouped(p)?;
    let claim = format!("{} records name `{}`, the first at {:.0}", found.count, found.value, found.first);
    of_group(p, &found, claim, (found.first, found.last));
    Some(())
}

/// The number or the time of another group, or the whole result instead of one group.
pub(crate) fn other_group(p: &mut Plant) -> Option<()> {
    let found = grouped(p)?;
    let claim = |count: u64| format!("{count} records name `{}`", found.value);
    match p.below(3) {
        0 => of_group(p, &found, claim(found.count + 1_000), (found.first, found.last)),
        1 => {
            let late = super::times::moved(found.last, 86_400)?;
            of_group(p, &found, format!("{}, the last at {late:.0}", claim(found.count)), (found.first, found.last));
        }
        _ => {
            let whole = *p.pick(&["", "/groups"])?;
            let citation = literal(found.call.clone(), whole, &found.value);
            state(p, FindingKind::Aggregate, claim(found.count + 1_000), citation);
        }
    }
    Some(())
}

/// A number of records in a window of an hour, with the claimed end of the window.
fn windowed(p: &mut Plant, beyond: i64, total: u64) -> Option<()> {
    let record = p.record()?;
    let (name, from) = (word(p, record)?, record.time?);
    let from = Timestamp::from_second(from.as_second()).ok()?;
    let (to, end) = (super::times::moved(from, 3_600)?, super::times::moved(from, 3_600 + beyond)?);
    let arguments = json!({"terms": [name], "from": from.to_string(), "to": to.to_string(), "limit": 0});
    let result = json!({"total": total, "total_is_exact": true, "returned": 0, "records": [],
        "window": {"from": from.to_string(), "to": to.to_string()}, "searched": [source(p)?]});
    let (call, again) = (p.search(&arguments, &result), Some(p.search(&arguments, &result)));
    let citation = Citation::Count { call, at: Locator::Pointer("/total".into()), value: total, again };
    let claim = format!("{total} records name `{name}` between {from:.0} and {end:.0}");
    state(p, FindingKind::Aggregate, claim, citation);
    let (precision, field) = (Precision::Second, String::new());
    let basis = if total == 0 { TimeBasis::Record } else { TimeBasis::Aggregation };
    p.draft.time = Some(EventTime { at: from, until: Some(end), precision, basis, field });
    Some(())
}

/// True: a number of records between the edges of the searched window.
pub(crate) fn window(p: &mut Plant) -> Option<()> {
    let total = p.dice.random_range(1..3_000);
    windowed(p, 0, total)
}

/// The same over a longer window.
pub(crate) fn longer_window(p: &mut Plant) -> Option<()> {
    let (beyond, total) = (p.dice.random_range(60..90_000), p.dice.random_range(1..3_000));
    windowed(p, beyond, total)
}

/// True: a count of 0 over the searched window.
pub(crate) fn count_of_nothing(p: &mut Plant) -> Option<()> {
    windowed(p, 0, 0)
}

/// A count of 0 that the query does not show: of a longer window, or of one of two terms.
pub(crate) fn count_of_something(p: &mut Plant) -> Option<()> {
    if p.one_in(2) {
        let beyond = p.dice.random_range(60..90_000);
        return windowed(p, beyond, 0);
    }
    let (name, other) = (there(p)?, made_up(p));
    absent(p, &json!({"terms": [name, other]}), format!("0 records name `{name}`"))?;
    let Some(Citation::Absence { call, at, again, .. }) = p.draft.citations.first().cloned() else { return None };
    p.draft.kind = FindingKind::Aggregate;
    p.draft.citations = vec![Citation::Count { call, at, value: 0, again }];
    Some(())
}

fn numbers(p: &mut Plant) -> (u64, u64, Value) {
    let (event, port) = (p.dice.random_range(1_100..9_000), p.dice.random_range(20..1_000));
    let arguments = json!({"where": [{"field": "EventID", "value": event}, {"field": "dst_port", "value": port}]});
    (event, port, arguments)
}

/// True: an absence of numbers that the query required.
pub(crate) fn absent_number(p: &mut Plant) -> Option<()> {
    let (event, port, arguments) = numbers(p);
    let claim = match p.below(2) {
        0 => format!("No `EventID` {event} record has port {port}"),
        _ => format!("No record of event ID {event} for `dst_port` {port}"),
    };
    absent(p, &arguments, claim)
}

/// Another number, one of two, or the number as a count.
pub(crate) fn other_number(p: &mut Plant) -> Option<()> {
    let (event, port, arguments) = numbers(p);
    let claim = match p.below(3) {
        0 => format!("No record of event ID {} has port {port}", event + 1),
        1 => format!("No record of event ID {event}"),
        _ => format!("{event} logons had no port {port}"),
    };
    absent(p, &arguments, claim)
}

fn condition(pattern: &str) -> Value {
    json!({"where": [{"field": "command", "op": "regex", "value": pattern}]})
}

/// True: an absence by pattern, which the claim names.
pub(crate) fn absent_pattern(p: &mut Plant) -> Option<()> {
    let (one, other) = (made_up(p), made_up(p));
    let patterns = ["^(A|B)$", "A|B", r"(?i)\bA\b|B", "^A|.*B"];
    let pattern = p.pick(&patterns)?.replace('A', &one).replace('B', &other);
    let claim = match p.below(2) {
        0 => format!("Neither `{one}` nor `{other}` was run"),
        _ => format!("No record names `{one}`"),
    };
    absent(p, &condition(&pattern), claim)
}

/// Absent is what the pattern required in addition.
pub(crate) fn narrow_pattern(p: &mut Plant) -> Option<()> {
    let (there, other) = (there(p)?, made_up(p));
    let patterns = ["A.*B", "^A B$", "A[0-9]{9}", "B|A.*BB", r"A\s+B"];
    let pattern = p.pick(&patterns)?.replace('B', &other).replace('A', &there);
    absent(p, &condition(&pattern), format!("No record names `{there}`"))
}

/// True: a phrase or one of several terms.
pub(crate) fn absent_phrase(p: &mut Plant) -> Option<()> {
    let (one, other) = (made_up(p), made_up(p));
    match p.below(2) {
        0 => absent(p, &json!({"terms": [format!("{one} {other}")]}), format!("No record names `{one} {other}`")),
        _ => absent(p, &json!({"terms": [one, other], "mode": "any"}), format!("No record names `{one}`")),
    }
}

/// Absent is only the whole phrase.
pub(crate) fn part_of_phrase(p: &mut Plant) -> Option<()> {
    let (there, other) = (there(p)?, made_up(p));
    let phrase = format!("{there} {other}");
    let arguments = match p.below(2) {
        0 => json!({"terms": [phrase]}),
        _ => json!({"terms": [phrase, made_up(p)], "mode": "any"}),
    };
    absent(p, &arguments, format!("No record names `{there}`"))
}

/// An absence over a query that failed, because no record has its field.
pub(crate) fn unknown_field(p: &mut Plant) -> Option<()> {
    let there = there(p)?;
    absent(p, &json!({"where": [{"field": "usre", "value": there}]}), format!("No record names `{there}`"))?;
    p.calls.iter_mut().for_each(|made| made.call.status = CallStatus::Failed);
    Some(())
}

fn short(p: &mut Plant, value: &str, quote: &str) -> Option<()> {
    let record = p.record()?;
    let mut fields = record.value.get("fields").cloned().unwrap_or_else(|| json!({}));
    fields.as_object_mut()?.insert("exit".into(), json!(value));
    let new = p.returned(&with(record, [("fields", fields)]))?;
    let citation = literal(new.call.clone(), "/records/0/fields/exit", quote);
    let name = word(p, record)?;
    state(p, FindingKind::State, format!("The record that names `{name}` ends so"), citation);
    p.draft.bearing = Bearing::Neutral;
    Some(())
}

/// True: a whole short value.
pub(crate) fn short_value(p: &mut Plant) -> Option<()> {
    let value = *p.pick(&["0", "-", "3", "17", "no"])?;
    short(p, value, value)
}

/// Another short value, or a part of one.
pub(crate) fn other_value(p: &mut Plant) -> Option<()> {
    let (value, quote) = *p.pick(&[("0", "1"), ("10", "1"), ("-", "0"), ("-1", "1"), ("30", "3"), ("no", "n")])?;
    short(p, value, quote)
}
