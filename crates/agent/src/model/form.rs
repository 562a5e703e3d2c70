//! Common parts of the roles' answer forms: closed sets, times, ids, and lists of faults.

use std::collections::BTreeSet;

use casebook_protocol::closed::Closed;
use casebook_protocol::{FindingId, Locator, Timestamp, one_line};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::schema::MAX_ERRORS;

/// The schema of a closed set: the stored names with their meanings.
pub fn one_of<T: Closed>(_: &mut SchemaGenerator) -> Schema {
    described::<T>("")
}

/// The same, with `about` before the meanings.
pub fn described<T: Closed>(about: &str) -> Schema {
    let each: Vec<String> = T::VALUES.iter().map(|value| format!("{}: {}", value.stored(), value.means())).collect();
    let about = format!("{about} {}", each.join("; "));
    json_schema!({"type": "string", "enum": names::<T>(), "description": about.trim()})
}

/// The schema of a closed set with self-explanatory names.
pub fn plain<T: Closed>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": names::<T>()})
}

fn names<T: Closed>() -> Vec<&'static str> {
    T::VALUES.iter().map(|value| value.stored()).collect()
}

/// The faults of an answer with their places, as many as a repair needs.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    pub fn add(&mut self, place: impl AsRef<str>, what: impl AsRef<str>) {
        if self.0.len() < MAX_ERRORS {
            self.0.push(one_line(&format!("{}: {}", place.as_ref(), what.as_ref()), 400));
        }
    }

    /// The trimmed text at `place`; a fault if it is empty.
    pub fn text(&mut self, place: impl AsRef<str>, text: &str) -> String {
        if text.trim().is_empty() {
            self.add(place, "is empty; write a sentence");
        }
        text.trim().to_owned()
    }

    pub fn finding(&mut self, place: &str, text: &str, known: &BTreeSet<FindingId>) -> Option<FindingId> {
        let id = FindingId::new(text.trim()).ok().filter(|id| known.contains(id));
        if id.is_none() {
            self.add(place, format!("expected the id of a finding in the sections, got {:?}", one_line(text, 80)));
        }
        id
    }

    pub fn findings(&mut self, place: &str, texts: &[String], known: &BTreeSet<FindingId>) -> Vec<FindingId> {
        let mut seen = BTreeSet::new();
        let ids: Vec<FindingId> = texts
            .iter()
            .enumerate()
            .filter_map(|(i, text)| self.finding(&format!("{place}/{i}"), text, known))
            .collect();
        ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
    }

    /// The place in `text`: `""`, `/a/0`, or `line 3`.
    pub fn place(&mut self, place: impl AsRef<str>, text: &str) -> Option<Locator> {
        let escapes = |p: &str| p.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        let line = text.trim().strip_prefix("line ").and_then(|n| n.trim().parse().ok()).filter(|n| *n > 0);
        let read = match line {
            Some(line) => Some(Locator::Line(line)),
            None if text.is_empty() || (text.starts_with('/') && escapes(text)) => {
                Some(Locator::Pointer(text.to_owned()))
            }
            None => None,
        };
        if read.is_none() {
            let text = one_line(text, 80);
            self.add(place, format!("{text:?} is not a place; write a JSON pointer such as /records/0/raw, or line 3"));
        }
        read
    }

    pub fn or<T>(self, answer: T) -> Result<T, Vec<String>> {
        if self.0.is_empty() { Ok(answer) } else { Err(self.0) }
    }
}

pub fn read<T: serde::de::DeserializeOwned>(object: &Value) -> Result<T, Vec<String>> {
    serde_json::from_value(object.clone()).map_err(|e| vec![one_line(&format!("the answer: {e}"), 400)])
}

/// The moment in `text`; a fault at `place` if it is invalid.
pub fn moment(place: &str, text: &str, faults: &mut Faults) -> Option<Timestamp> {
    let read = text.trim().parse().ok();
    if read.is_none() {
        let what = format!("expected a time, got {:?}; write UTC as 2026-01-31T23:59:59.123Z", one_line(text, 80));
        faults.add(place, what);
    }
    read
}

/// The parts of a wire schema that some provider refuses, each with its place: open objects, optional fields,
/// alternatives other than `anyOf`, limits, references.
pub fn strict_faults(schema: &Value, place: &str) -> Vec<String> {
    const TAKEN: [&str; 8] =
        ["type", "description", "enum", "properties", "required", "additionalProperties", "items", "anyOf"];
    let Some(map) = schema.as_object() else { return vec![format!("{place}: is {schema}, not a schema")] };
    let mut faults: Vec<String> =
        map.keys().filter(|k| !TAKEN.contains(&k.as_str())).map(|k| format!("{place}: has {k}")).collect();
    let object =
        map.get("type").is_some_and(|t| t == "object" || t.as_array().is_some_and(|t| t.contains(&"object".into())));
    let fields = map.get("properties").and_then(Value::as_object);
    if object {
        let names: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let required = map.get("required").and_then(Value::as_array);
        let all = names.iter().all(|name| required.is_some_and(|r| r.contains(&Value::from(*name))));
        if map.get("additionalProperties") != Some(&Value::Bool(false)) || names.is_empty() || !all {
            faults.push(format!("{place}: is open, or has optional fields"));
        }
    }
    faults.extend(
        fields.into_iter().flatten().flat_map(|(name, field)| strict_faults(field, &format!("{place}/{name}"))),
    );
    faults.extend(map.get("items").into_iter().flat_map(|items| strict_faults(items, &format!("{place}/items"))));
    let any = map.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    faults.extend(any.flat_map(|one| strict_faults(one, &format!("{place}/anyOf"))));
    faults
}
