//! Checks a quotation and finds the record that it comes from.

use serde_json::Value;

use super::{COUNT_BY, CitedTime, Exhibit, OF_RECORD, RULE_HITS, SQL};
use crate::chosen;
use crate::claim::Corpus;
use casebook_protocol::{CitationCheck, Locator, RecordRef, TimeBasis};

pub(super) fn literal(
    exhibit: &Exhibit,
    at: &Locator,
    quote: &str,
    corpus: &mut Corpus,
    times: &mut Vec<CitedTime>,
    check: &mut CitationCheck,
) -> Result<String, String> {
    let mut local = Corpus::default();
    let record = matches!(at, Locator::Pointer(pointer) if exhibit.record(pointer).is_some());
    if exhibit.call.tool == RULE_HITS && !record {
        // The title of a rule is a judgement, not evidence.
        return Err("only the records of rule_hits are evidence: cite one as /records/N".to_owned());
    }
    match at {
        Locator::Line(line) => {
            let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            let text = exhibit.text.lines().nth(index).filter(|_| *line > 0);
            local.add_text(text.ok_or_else(|| format!("the result has no line {line}"))?);
            check.records.push(RecordRef {
                source: exhibit.call.tool.clone(),
                file: format!("artifact:{}", exhibit.call.result),
                line: *line,
            });
            check.sources.push(exhibit.call.tool.clone());
            check.chosen = Some(chosen::WHOLE.to_owned());
        }
        Locator::Pointer(pointer) => of_pointer(exhibit, pointer, quote, &mut local, times, check)?,
    }
    if !local.has_quote(quote) {
        return Err(format!("the quoted text {:?} is not there", casebook_protocol::one_line(quote, 80)));
    }
    corpus.join(local);
    Ok("quoted text found".to_owned())
}

fn of_pointer(
    exhibit: &Exhibit,
    pointer: &str,
    quote: &str,
    local: &mut Corpus,
    times: &mut Vec<CitedTime>,
    check: &mut CitationCheck,
) -> Result<(), String> {
    let whole = |check: &mut CitationCheck| {
        check.sources.push(exhibit.call.tool.clone());
        check.chosen = Some(chosen::WHOLE.to_owned());
    };
    let Some(json) = &exhibit.json else {
        if !pointer.is_empty() {
            return Err("the result is not JSON: cite a line of it".to_owned());
        }
        local.add_text(&exhibit.text);
        whole(check);
        return Ok(());
    };
    let value = json.pointer(pointer).ok_or_else(|| format!("there is nothing at {pointer:?} in the result"))?;
    if let Some(found) = exhibit.group(pointer) {
        group(found, local, times, check);
        let source = found.pointer("/example/source").and_then(Value::as_str);
        check.sources.push(source.unwrap_or(&exhibit.call.tool).to_owned());
        check.chosen = Some(chosen::WHOLE.to_owned());
        return Ok(());
    }
    if let Some(groups) = value.get("groups").unwrap_or(value).as_array().filter(|_| exhibit.call.tool == COUNT_BY) {
        let many = groups.len();
        return Err(format!("{pointer:?} holds {many} groups: cite the one that shows it, such as /groups/0"));
    }
    let own = exhibit.record(pointer).map(|(_, record)| record);
    if exhibit.call.tool == SQL {
        let record = own.ok_or(
            "that row is not one record: select `file` and `line`, and columns and fields as they are; cite a computed value as `aggregate`",
        )?;
        local.add_value(&cells(record));
        check.chosen = chosen::field(record, quote);
        cite_record(exhibit, record, times, check);
        return Ok(());
    }
    local.add_value(value);
    match (own, records_in(value).as_slice()) {
        (Some(record), _) | (None, &[record]) => {
            local.add_value(record);
            check.chosen = chosen::field(record, quote);
            cite_record(exhibit, record, times, check);
        }
        (None, []) => whole(check),
        (None, several) => {
            let many = several.len();
            return Err(format!("{pointer:?} holds {many} records, not one: cite the one that shows it"));
        }
    }
    Ok(())
}

/// The values of a row as texts. Their names are left out, because the query chooses them. The query may have computed a
/// number, so that it is not taken for a count, which stands alone.
fn cells(row: &Value) -> Value {
    const PLACE: [&str; 6] = ["id", "line", "nth", "time_ns", "raw_cut", OF_RECORD];
    let cells = row.as_object().into_iter().flatten().filter(|(name, _)| !PLACE.contains(&name.as_str()));
    let text = |value: &Value| match value.as_str().map_or_else(|| value.to_string(), str::to_owned) {
        number if number.bytes().all(|b| b.is_ascii_digit()) => format!("= {number}"),
        text => text,
    };
    cells.filter(|(_, value)| !value.is_null()).map(|(_, value)| Value::String(text(value))).collect()
}

/// Adds a group of a `count_by`: its value, its count, its first and last time, and its example.
pub(super) fn group(group: &Value, corpus: &mut Corpus, times: &mut Vec<CitedTime>, check: &mut CitationCheck) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    corpus.add_value(group.get("value").unwrap_or(&Value::Null));
    group.get("count").and_then(Value::as_u64).into_iter().for_each(|count| corpus.add_number(count));
    let basis = TimeBasis::Aggregation;
    let moments = ["first_time", "last_time"].into_iter().filter_map(|key| text(group.get(key))?.parse().ok());
    times.extend(moments.map(|at| CitedTime { at, basis }));
    let Some(example) = group.get("example") else { return };
    let record = || {
        Some(RecordRef {
            source: text(example.get("source"))?,
            file: text(example.get("file"))?,
            line: example.get("line")?.as_u64()?,
        })
    };
    let record = record();
    record.iter().for_each(|record| corpus.add_text(&record.file));
    check.records.extend(record);
}

fn cite_record(exhibit: &Exhibit, record: &Value, times: &mut Vec<CitedTime>, check: &mut CitationCheck) {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let source = text("source").unwrap_or(&exhibit.call.tool).to_owned();
    let file = text("file").unwrap_or_default().to_owned();
    let line = record.get("line").and_then(Value::as_u64).unwrap_or_default();
    check.sources.push(source.clone());
    check.records.push(RecordRef { source, file, line });
    let basis =
        record.get("time_basis").and_then(|b| serde_json::from_value(b.clone()).ok()).unwrap_or(TimeBasis::Inferred);
    if let Some(at) = text("time").and_then(|t| t.parse().ok()) {
        times.push(CitedTime { at, basis });
    }
}

pub(super) fn records_in(value: &Value) -> Vec<&Value> {
    if value.get("file").is_some() && value.get("line").is_some() && value.get("raw").is_some() {
        return vec![value];
    }
    match value {
        Value::Array(items) => items.iter().flat_map(records_in).collect(),
        Value::Object(map) => map.values().flat_map(records_in).collect(),
        _ => Vec::new(),
    }
}
