//! The published schemas of what is public, held against what is published.

use std::path::Path;

use serde_json::{Value, json};

fn schema(name: &str) -> jsonschema::Validator {
    let schema = read(name);
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/schemas/{name}.schema.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Allows no field that the schema does not name, so that a schema that leaves one out is found.
fn complete(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(complete);
            if object.get("type") == Some(&json!("object")) && object.contains_key("properties") {
                object.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(complete),
        _ => {}
    }
}

/// A schema without unknown fields.
pub(super) struct Complete(&'static str, jsonschema::Validator);

impl Complete {
    pub(super) fn of(name: &'static str) -> Self {
        let mut schema = read(name);
        if name != "alert" {
            complete(&mut schema);
        }
        Self(name, jsonschema::draft202012::new(&schema).unwrap())
    }

    pub(super) fn holds(&self, value: &Value) {
        let errors: Vec<String> = self.1.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(errors, Vec::<String>::new(), "{}: {value}", self.0);
    }
}

pub(super) fn holds(name: &'static str, bytes: &[u8]) {
    Complete::of(name).holds(&serde_json::from_slice(bytes).unwrap());
}

#[test]
fn a_schema_says_no_to_what_is_not_published() {
    let refuses = |name: &str, value: &Value| assert!(!schema(name).is_valid(value), "{name}: {value}");
    let log = include_str!("../../../../hub/fixtures/log-v1.ndjson");
    for line in log.lines() {
        holds("event", line.as_bytes());
        let mut event: Value = serde_json::from_str(line).unwrap();
        event["event"]["type"] = "something".into();
        refuses("event", &event);
    }
    let report = include_str!("../../../../hub/fixtures/report-v1.json");
    holds("report", report.as_bytes());
    let mut report: Value = serde_json::from_str(report).unwrap();
    report["verdict"] = "fine".into();
    refuses("report", &report);
    refuses("timeline", &json!({"narrative": "no events"}));
    refuses("opened", &json!({"investigation": "i-1"}));
    refuses("dead", &json!({"attempts": 1}));
    refuses("follow", &json!({"name": "two words"}));
    refuses("followed", &json!({"consumers": ["siem"]}));
    refuses("alert", &json!(["one", "two"]));
}
