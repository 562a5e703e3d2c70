use std::cmp::Reverse;

use casebook_protocol::coverage::bounded;
use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use crate::Source;
use crate::query::is_named;
use crate::source::FieldProfile;

pub(super) const DESCRIBE: &[&str] = &["source", "fields", "prefix"];
/// Fields that are described; of the others only the names are given.
const FIRST: usize = 24;
/// Hosts, and kinds of records of each, in a list of sources.
const COVERED: (usize, usize) = (12, 6);
/// Fields that are described if the caller chose them.
const CHOSEN_MAX: usize = 100;
/// Values of a field.
const VALUES: usize = 3;
/// Parts of the names of fields that say who did what, and where.
const TELLING: [&str; 26] = [
    "user",
    "account",
    "subject",
    "target",
    "actor",
    "principal",
    "host",
    "computer",
    "ip",
    "addr",
    "source",
    "dest",
    "image",
    "process",
    "command",
    "exe",
    "file",
    "path",
    "event",
    "action",
    "operation",
    "hash",
    "url",
    "domain",
    "status",
    "result",
];

impl EvidenceTools {
    pub(super) fn list_sources(&self) -> Value {
        Value::Array(self.with_sensors().map(|(source, sensor)| summary(source, sensor)).collect())
    }

    pub(super) fn describe_source(&self, args: &Args) -> Result<Value, String> {
        let wanted = args.required("source")?;
        let Some((source, sensor)) = self.with_sensors().find(|(s, _)| s.id == wanted || s.file == wanted) else {
            return args.fail(&format!("no source {wanted:?}; there are {}", self.known()));
        };
        let mut answer = summary(source, sensor);
        let names = args.texts("fields")?;
        let prefix = args.text("prefix")?.unwrap_or_default().to_lowercase();
        let asked = |field: &&FieldProfile| {
            let of_prefix = !prefix.is_empty() && field.name.to_lowercase().starts_with(&prefix);
            of_prefix || names.iter().any(|name| is_named(&field.name, name))
        };
        let chosen = !names.is_empty() || !prefix.is_empty();
        let mut fields: Vec<&FieldProfile> = source.fields.iter().filter(|field| !chosen || asked(field)).collect();
        if chosen && fields.is_empty() {
            return args.fail(&format!("{wanted} has no such field; leave out `fields` and `prefix` for all names"));
        }
        fields.sort_by_key(|field| (!telling(field, source.records), Reverse(field.filled), field.name.as_str()));
        let first = if chosen { fields.len().min(CHOSEN_MAX) } else { fields.len().min(FIRST) };
        let (first, others) = fields.split_at(first);
        let first: Vec<Value> = first.iter().map(|field| profile(field)).collect();
        let others: Vec<&str> = others.iter().map(|field| field.name.as_str()).collect();
        super::find::put(&mut answer, "fields", Value::Array(first));
        super::find::put(&mut answer, "other_fields", json!(others));
        super::find::put(&mut answer, "more_fields", json!(source.more_fields));
        let times: Vec<Value> =
            source.time_fields.iter().map(|f| json!({ "name": f.name, "role": f.role, "note": f.note })).collect();
        super::find::put(&mut answer, "time_fields", Value::Array(times));
        super::find::put(&mut answer, "malformed_examples", json!(source.malformed_examples));
        Ok(answer)
    }
}

fn summary(source: &Source, sensor: &str) -> Value {
    let mut summary = json!({
        "source": source.id,
        "file": source.file,
        "format": source.format,
        "domain": source.domain,
        "domain_reason": source.domain_reason,
        "sensor": sensor,
        "written_on_subject_host": source.on_subject_host(),
        "confirmed": source.confirmed,
        "acts": source.acts,
        "hosts": source.hosts,
        "coverage": bounded(&source.coverage, COVERED.0, COVERED.1),
        "records": source.records,
        "malformed": source.malformed,
        "oversize": source.oversize,
        "untimed": source.untimed,
        "bytes": source.bytes,
        "first_time": source.first_time.map(|t| t.to_string()),
        "last_time": source.last_time.map(|t| t.to_string()),
        "time_field": source.time_field,
        "time_basis": source.time_basis,
        "notes": source.notes,
    });
    if !source.confirmed {
        super::find::put(&mut summary, "guessed_sensor", json!(source.sensor));
    }
    summary
}

/// True if most records have the field, and its name says who, what or where.
fn telling(field: &FieldProfile, records: u64) -> bool {
    let last = field.name.rsplit('.').find(|part| *part != "*").unwrap_or_default().to_lowercase();
    field.filled.saturating_mul(2) >= records && TELLING.iter().any(|part| last.contains(part))
}

fn profile(field: &FieldProfile) -> Value {
    let distinct =
        if field.distinct_is_exact { json!(field.distinct) } else { json!(format!("more than {}", field.distinct)) };
    let top = field.top.iter().take(VALUES);
    let top: Vec<Value> = top.map(|t| json!({ "value": t.value, "count": t.count })).collect();
    json!({
        "name": field.name,
        "type": field.kind,
        "filled": field.filled,
        "distinct": distinct,
        "top": top,
    })
}
