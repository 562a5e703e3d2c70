//! The published schemas of what is public, held against what is published.

use std::path::Path;

use serde_json::{Value, json};

fn schema(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/schemas/{name}.schema.json"));
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

pub(super) fn holds(name: &str, bytes: &[u8]) {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    let errors: Vec<String> = schema(name).iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{name}: {value}");
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
    refuses("alert", &json!(["one", "two"]));
}
