use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::shown::basis;
use crate::Source;
use crate::source::FieldProfile;

pub(super) const DESCRIBE: &[&str] = &["source"];
/// In bytes.
const FIELDS_MAX: usize = 800 << 10;

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
        let (mut fields, mut size) = (Vec::new(), 0);
        for field in &source.fields {
            let value = profile(field);
            size += value.to_string().len();
            fields.push(if size <= FIELDS_MAX { value } else { json!({ "name": field.name }) });
        }
        super::find::put(&mut answer, "fields", Value::Array(fields));
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
        "records": source.records,
        "malformed": source.malformed,
        "oversize": source.oversize,
        "untimed": source.untimed,
        "bytes": source.bytes,
        "first_time": source.first_time.map(|t| t.to_string()),
        "last_time": source.last_time.map(|t| t.to_string()),
        "time_field": source.time_field,
        "time_basis": basis(source.time_basis),
        "notes": source.notes,
    });
    if !source.confirmed {
        super::find::put(&mut summary, "guessed_sensor", json!(source.sensor));
    }
    summary
}

fn profile(field: &FieldProfile) -> Value {
    let distinct =
        if field.distinct_is_exact { json!(field.distinct) } else { json!(format!("more than {}", field.distinct)) };
    let examples: Vec<&str> = field.top.iter().take(3).map(|t| t.value.as_str()).collect();
    let top: Vec<Value> = field.top.iter().map(|t| json!({ "value": t.value, "count": t.count })).collect();
    json!({
        "name": field.name,
        "type": field.kind,
        "filled": field.filled,
        "distinct": distinct,
        "top": top,
        "examples": examples,
    })
}
