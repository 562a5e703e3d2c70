//! Records in answers of tools.

use std::collections::BTreeMap;

use casebook_protocol::{Bearing, Precision, TimeBasis, Weight};
use serde::Serialize;
use serde_json::Value;

use crate::catalog::{Catalog, kept};
use crate::index::Entry;
use crate::profile::cut;
use crate::query::is_named;
use crate::rules::{Judgement, Level, Rule};
use crate::{ReadError, Record};

const RAW_MAX: usize = 16 << 10;
/// Bytes of one value, and of all fields of a record.
const VALUE_MAX: usize = 8 << 10;
const FIELDS_MAX: usize = 96 << 10;
/// In bytes.
const ANSWER_MAX: usize = (1 << 20) - (64 << 10);

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    source: String,
    file: String,
    line: u64,
    /// None for the first record on the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    nth: Option<u32>,
    time: Option<String>,
    time_basis: TimeBasis,
    time_field: Option<String>,
    precision: Option<Precision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingested: Option<String>,
    #[serde(skip_serializing_if = "not")]
    malformed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    raw: String,
    #[serde(skip_serializing_if = "not")]
    raw_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "not")]
    fields_cut: bool,
    /// The Sigma rules that it meets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Met>,
}

/// A rule that a record meets, in short.
#[derive(Debug, Serialize)]
struct Met {
    rule: String,
    title: String,
    level: Level,
    bearing: Bearing,
    strength: Weight,
    #[serde(skip_serializing_if = "Option::is_none")]
    technique: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    look_next: Option<String>,
}

impl From<Rule> for Met {
    fn from(rule: Rule) -> Self {
        let technique = rule.technique();
        let Judgement { bearing, strength, look_next, .. } = rule.judgement;
        Self { rule: rule.id, title: rule.title, level: rule.level, bearing, strength, technique, look_next }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn not(flag: &bool) -> bool {
    !*flag
}

impl Shown {
    pub(crate) fn new(record: &Record, met: Vec<Rule>, wanted: &Wanted) -> Self {
        let text = record.text();
        let raw = cut(&text, RAW_MAX);
        let (fields, fields_cut) = fields(record, wanted);
        Self {
            source: record.source.clone(),
            file: record.file.clone(),
            line: record.line,
            nth: Some(record.nth).filter(|n| *n > 1),
            time: record.time.map(|t| t.to_string()),
            time_basis: record.time_basis,
            time_field: record.time_field.clone(),
            precision: record.precision,
            ingested: record.ingested.map(|t| t.to_string()),
            malformed: record.malformed,
            bytes: Some(record.length).filter(|n| *n > raw.len() as u64),
            raw_cut: raw.len() < text.len() || record.oversize,
            raw: raw.to_owned(),
            fields,
            fields_cut,
            rules: met.into_iter().filter(|rule| !rule.part).map(Met::from).collect(),
        }
    }
}

/// Which fields of a record an answer has.
#[derive(Debug)]
pub(crate) enum Wanted {
    None,
    All,
    Named(Vec<String>),
}

impl Wanted {
    fn has(&self, path: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| is_named(path, name)),
        }
    }
}

fn fields(record: &Record, wanted: &Wanted) -> (Option<BTreeMap<String, Value>>, bool) {
    if matches!(wanted, Wanted::None) {
        return (None, false);
    }
    let mut shown: BTreeMap<String, Value> = BTreeMap::new();
    let (mut size, mut short) = (0, false);
    for (path, value) in record.fields().into_iter().filter(|(path, _)| wanted.has(path)) {
        let part = cut(&value, VALUE_MAX);
        size += path.len() + part.len();
        if size > FIELDS_MAX {
            short = true;
            break;
        }
        short |= part.len() < value.len();
        let new = Value::String(part.to_owned());
        match shown.get_mut(&path) {
            None => {
                shown.insert(path, new);
            }
            Some(Value::Array(all)) => all.push(new),
            // The key occurs more than once. Show all values.
            Some(one) => *one = Value::Array(vec![one.take(), new]),
        }
    }
    (Some(shown), short)
}

/// The records that fit into the answer, and the number of the others.
pub(crate) fn records(catalog: &Catalog, entries: &[Entry], wanted: &Wanted) -> Result<(Vec<Value>, usize), ReadError> {
    let (mut shown, mut size) = (Vec::new(), 0);
    for entry in entries {
        let bytes = catalog.bytes(entry, 0, kept(entry))?;
        let record = catalog.record_of(entry, bytes);
        let record = Shown::new(&record, catalog.rules_met(entry.source, &record), wanted);
        let value = serde_json::to_value(&record).unwrap_or_default();
        size += value.to_string().len();
        if size > ANSWER_MAX && !shown.is_empty() {
            break;
        }
        shown.push(value);
    }
    let left = entries.len() - shown.len();
    Ok((shown, left))
}
