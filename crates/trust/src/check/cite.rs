//! Checks a quotation and finds the record that it comes from.

use serde_json::Value;

use super::{CitedTime, Exhibit};
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
        Locator::Pointer(pointer) => {
            if exhibit.json.is_none() && pointer.is_empty() {
                local.add_text(&exhibit.text);
            } else {
                local.add_value(exhibit.value(at)?);
            }
            let within = exhibit.json.as_ref().and_then(|j| j.pointer(pointer)).map(records_in).unwrap_or_default();
            match (exhibit.record(pointer).map(|(_, record)| record), within.as_slice()) {
                (Some(record), _) | (None, &[record]) => {
                    local.add_value(record);
                    check.chosen = chosen::field(record, quote);
                    cite_record(exhibit, record, times, check);
                }
                (None, []) => {
                    check.sources.push(exhibit.call.tool.clone());
                    check.chosen = Some(chosen::WHOLE.to_owned());
                }
                (None, several) => {
                    let many = several.len();
                    return Err(format!("{pointer:?} holds {many} records, not one: cite the one that shows it"));
                }
            }
        }
    }
    if !local.has_quote(quote) {
        return Err(format!("the quoted text {:?} is not there", casebook_protocol::one_line(quote, 80)));
    }
    corpus.join(local);
    Ok("quoted text found".to_owned())
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
