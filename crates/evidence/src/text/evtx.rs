//! Decodes a Windows event log into lines: the record id, a tab, and the event as JSON.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Write};
use std::sync::Arc;

use evtx::err::EvtxError;
use evtx::{EvtxParser, EvtxRecord, ParserSettings};
use serde_json::{Map, Value};

/// Unreadable records that are named.
const NAMED: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// Each record id is greater than the one before it.
    pub(super) ordered: bool,
    /// A write failed, so that later events are missing.
    pub(super) cut: bool,
    pub(super) notes: Vec<String>,
}

/// Writes each event to `out`, oldest first. Damaged records are counted, and named in the notes.
///
/// Errors: `file` is not an event log.
pub(super) fn decode(file: File, out: &mut impl Write) -> Result<Decoded, EvtxError> {
    let settings = Arc::new(ParserSettings::default().indent(false));
    let mut parser = EvtxParser::from_read_seek(BufReader::new(file))?;
    let mut decoded = Decoded { ordered: true, ..Decoded::default() };
    let mut last = None;
    let (mut damaged, mut first) = (0u64, Vec::new());
    'file: for chunk in parser.chunks() {
        let mut faulty = |error: &dyn Error| {
            damaged += 1;
            if first.len() < NAMED {
                first.push(whole(error));
            }
        };
        let mut data = match chunk {
            Ok(data) => data,
            Err(error) => {
                faulty(&error);
                continue;
            }
        };
        let mut chunk = match data.parse(Arc::clone(&settings)) {
            Ok(chunk) => chunk,
            Err(error) => {
                faulty(&error);
                continue;
            }
        };
        for record in chunk.iter() {
            match record.and_then(line) {
                Ok((id, line)) => {
                    decoded.ordered &= last.is_none_or(|last| last < id) && id > 0 && i64::try_from(id).is_ok();
                    last = Some(id);
                    if writeln!(out, "{id}\t{line}").is_err() {
                        decoded.cut = true;
                        break 'file;
                    }
                }
                Err(error) => faulty(&error),
            }
        }
    }
    if damaged > 0 {
        let first = first.join("; ");
        decoded.notes.push(format!("{damaged} parts of the event log cannot be read and are not loaded: {first}"));
    }
    if !decoded.ordered {
        let note = "its record ids are not in order: a line number is the place of the event in the log, from 1";
        decoded.notes.push(note.to_owned());
    }
    Ok(decoded)
}

/// With its causes.
fn whole(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause: &&dyn Error| cause.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}

fn line(record: EvtxRecord<'_>) -> Result<(u64, String), EvtxError> {
    let record = record.into_json()?;
    let id = record.event_record_id;
    // JSON that is nested too deep for the parser stays as it was rendered.
    let line = serde_json::from_str::<Value>(&record.data).map_or(record.data, |event| named(event).to_string());
    Ok((id, line))
}

/// Gives attributes and values the names that they have in the XML of an event: `System.Provider.Name`.
fn named(mut event: Value) -> Value {
    match event.get_mut("Event").map(Value::take) {
        Some(Value::Object(inside)) => Value::Object(lifted(inside)),
        Some(other) => other,
        None => event,
    }
}

fn lifted(element: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in element {
        match value {
            Value::Object(attributes) if key == "#attributes" => {
                out.extend(attributes.into_iter().filter(|(name, _)| !name.starts_with("xmlns")));
            }
            Value::Object(mut inside) => match inside.remove("#text") {
                // `<EventID Qualifiers="1">4111</EventID>` becomes `EventID` and `EventID.Qualifiers`.
                Some(text) => {
                    let rest = lifted(inside).into_iter().map(|(name, value)| (format!("{key}.{name}"), value));
                    let rest: Vec<_> = rest.collect();
                    out.insert(key, text);
                    out.extend(rest);
                }
                None => drop(out.insert(key, Value::Object(lifted(inside)))),
            },
            other => drop(out.insert(key, other)),
        }
    }
    out
}
