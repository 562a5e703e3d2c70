//! Checks quotations from results of MCP servers. Nothing that such a result says about itself is believed: its
//! source is the server, and its record is the text around the quotation.

use serde_json::{Map, Value};

use super::{CitedTime, Exhibit, when};
use crate::chosen;
use crate::claim::Corpus;
use casebook_protocol::{CitationCheck, Locator, RecordRef, Timestamp};

/// The server of the tool, or the tool itself if it is built in.
pub(super) fn source(exhibit: &Exhibit) -> String {
    let tool = &exhibit.call.tool;
    casebook_protocol::tool::server_of(tool).unwrap_or(tool).to_owned()
}

/// One record, or one line of a text.
struct Cited {
    /// `#` and the pointer of the record; empty for a text.
    fragment: String,
    /// Counted from 1; always 1 for a record.
    line: u64,
    value: Value,
    chosen: Option<String>,
    /// The recorded party chose the text, so a time in it is not the time of the record.
    hearsay: bool,
}

pub(super) fn literal(
    exhibit: &Exhibit,
    at: &Locator,
    quote: &str,
    corpus: &mut Corpus,
    times: &mut Vec<CitedTime>,
    check: &mut CitationCheck,
) -> Result<String, String> {
    let missing = || format!("the quoted text {:?} is not there", casebook_protocol::one_line(quote, 80));
    let cited = match (at, &exhibit.json) {
        (Locator::Line(_), Some(_)) => return Err("the result is JSON: cite a JSON pointer into it".to_owned()),
        (Locator::Line(line), None) => {
            let index = line.checked_sub(1).and_then(|line| usize::try_from(line).ok());
            let text = index.and_then(|index| exhibit.text.lines().nth(index));
            of_text(*line, text.ok_or_else(|| format!("the result has no line {line}"))?, quote)
        }
        (Locator::Pointer(pointer), None) if pointer.is_empty() => {
            let (line, text) = lines_with(&exhibit.text, quote).ok_or_else(missing)?;
            of_text(line, text, quote)
        }
        (Locator::Pointer(_), None) => return Err("the result is not JSON: cite a line of it".to_owned()),
        (Locator::Pointer(pointer), Some(json)) => of_json(json, pointer, quote)?,
    };
    let mut local = Corpus::default();
    local.add_value(&cited.value);
    if !local.has_quote(quote) {
        return Err(missing());
    }
    let before = times.len();
    match &cited.value {
        Value::String(text) => text.lines().for_each(|line| when::of_line(line, times)),
        value => when::of_record(value, times),
    }
    if cited.hearsay {
        times.iter_mut().skip(before).for_each(|time| time.basis = casebook_protocol::TimeBasis::Inferred);
    }
    let (source, file) = (source(exhibit), format!("artifact:{}{}", exhibit.call.result, cited.fragment));
    check.sources.push(source.clone());
    check.records.push(RecordRef { source, file, line: cited.line });
    check.chosen = cited.chosen;
    corpus.join(local);
    Ok("quoted text found".to_owned())
}

/// A line that is a JSON object counts as a record.
fn of_text(line: u64, text: &str, quote: &str) -> Cited {
    let (value, chosen) = match when::inner(text.trim()) {
        Some(record) => {
            let record = own(&record, quote);
            let chosen = chosen::within(&record, quote);
            (record, chosen)
        }
        None => (Value::from(text), Some(chosen::WHOLE.to_owned())),
    };
    Cited { fragment: String::new(), line, value, chosen, hearsay: false }
}

/// The record at a pointer: the innermost object around it, or the value itself if there is none. Lists of
/// objects inside it are left out, because their items are records too.
fn of_json(json: &Value, pointer: &str, quote: &str) -> Result<Cited, String> {
    let value = json.pointer(pointer).ok_or_else(|| format!("there is nothing at {pointer:?} in the result"))?;
    let objects = value.as_array().map_or(0, |items| items.iter().filter(|i| i.is_object()).count());
    if objects > 0 {
        return Err(format!("{pointer:?} holds {objects} records: cite the one that shows it"));
    }
    if let Some(text) = value.as_str().filter(|text| text.trim_end().contains('\n')) {
        let (line, found) = lines_with(text, quote)
            .ok_or_else(|| format!("the quoted text {:?} is not there", casebook_protocol::one_line(quote, 80)))?;
        let cited = of_text(line, found, quote);
        // Inside a text that the recorded party chose, everything is chosen, even if it looks like a record.
        let field = pointer.rsplit('/').next().unwrap_or_default();
        let hearsay = chosen::by_name(field);
        let chosen = cited.chosen.or_else(|| hearsay.then(|| field.to_owned()));
        return Ok(Cited { fragment: format!("#{pointer}"), chosen, hearsay, ..cited });
    }
    let (path, record) = around(json, pointer).unwrap_or((pointer, value));
    let record = own(record, quote);
    let chosen = match &record {
        Value::Object(_) => chosen::within(&record, quote),
        _ => Some(chosen::WHOLE.to_owned()),
    };
    let beside = "the quoted text is in a list of records at that place or not there: cite the record that holds it";
    let mut local = Corpus::default();
    local.add_value(&record);
    if !local.has_quote(quote) {
        return Err(format!("{beside} ({:?})", casebook_protocol::one_line(quote, 80)));
    }
    Ok(Cited { fragment: format!("#{path}"), line: 1, value: record, chosen, hearsay: false })
}

/// The record around `pointer`, and its pointer. Each item of a list of objects is a record.
fn around<'v, 'p>(json: &'v Value, pointer: &'p str) -> Option<(&'p str, &'v Value)> {
    let mut path = pointer;
    loop {
        let value = json.pointer(path)?;
        if value.is_object() {
            return Some((path, value));
        }
        let above = path.get(..path.rfind('/')?)?;
        if json.pointer(above).is_some_and(lists_records) {
            return Some((path, value));
        }
        path = above;
    }
}

fn lists_records(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Value::is_object))
}

/// The record without inner records. Of texts with several lines, only the quoted ones are kept.
fn own(value: &Value, quote: &str) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, inner)| !lists_records(inner));
            Value::Object(kept.map(|(key, inner)| (key.clone(), own(inner, quote))).collect::<Map<_, _>>())
        }
        Value::String(text) if text.trim_end().contains('\n') && when::inner(text).is_none() => {
            Value::from(lines_with(text, quote).map_or("", |(_, lines)| lines))
        }
        other => other.clone(),
    }
}

/// The number of the first quoted line (from 1), and the text of all quoted lines.
fn lines_with<'t>(text: &'t str, quote: &str) -> Option<(u64, &'t str)> {
    let whole = |range: std::ops::Range<usize>| {
        let (before, after) = (text.get(..range.start)?, text.get(range.end..)?);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(text.len(), |at| range.end + at);
        Some((before.matches('\n').count() as u64 + 1, text.get(start..end)?))
    };
    if let Some(at) = text.find(quote) {
        return whole(at..at + quote.trim_end_matches('\n').len());
    }
    let holds = |line: &&str| {
        let mut local = Corpus::default();
        local.add_text(line);
        local.has_quote(quote)
    };
    (1..).zip(text.lines()).find(|(_, line)| holds(line))
}

pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => Some(items.len() as u64),
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

/// Checks the window of an absence against the window in the arguments of the call. What the result says about
/// its window is not believed.
pub(super) fn window(
    exhibit: &Exhibit,
    edges: [Option<Timestamp>; 2],
    times: &mut Vec<CitedTime>,
) -> Result<(), String> {
    let mut asked = Vec::new();
    self::asked(exhibit, &mut asked);
    let named = |edge: &Timestamp| asked.iter().any(|t| t.at == *edge);
    let [from, to] = edges;
    let (first, last) = (asked.iter().map(|t| t.at).min(), asked.iter().map(|t| t.at).max());
    let covered = match (first, last) {
        (Some(first), Some(last)) if first < last => {
            from.is_some_and(|from| from >= first) && to.is_some_and(|to| to <= last)
        }
        // With only one edge, it is not known whether the window begins or ends there.
        (Some(only), _) => from == Some(only) || to == Some(only),
        _ => true,
    };
    if !covered {
        return Err("the absence is claimed over a window that was not searched: name the times of the call".to_owned());
    }
    let edges = [from, to].into_iter().flatten().filter(named);
    times.extend(edges.map(|at| CitedTime { at, basis: casebook_protocol::TimeBasis::Inferred }));
    Ok(())
}

/// Adds the times in the arguments of the call.
pub(super) fn asked(exhibit: &Exhibit, times: &mut Vec<CitedTime>) {
    let mut asked = Vec::new();
    if let Ok(arguments) = serde_json::from_str::<Value>(&exhibit.call.arguments) {
        when::of_record(&arguments, &mut asked);
    }
    times.extend(asked.into_iter().map(|time| CitedTime { basis: casebook_protocol::TimeBasis::Inferred, ..time }));
}

/// True if `pointer` leads into an item of a list of objects.
pub(super) fn in_item(json: &Value, pointer: &str) -> bool {
    let above = pointer.match_indices('/').filter_map(|(at, _)| pointer.get(..at));
    above.filter_map(|path| json.pointer(path)).any(lists_records)
}

#[cfg(test)]
mod tests;
