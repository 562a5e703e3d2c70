use casebook_protocol::Alert;

use super::super::{rec, seed};
use super::*;

fn recs(lines: &[(&str, &str)]) -> Vec<Rec> {
    let record = |((time, text), line): (&(&str, &str), u64)| {
        json!({"source": "a", "file": "a.log", "line": line, "time": time, "time_basis": "record",
            "precision": "second", "time_field": "time", "raw": text, "fields": {"message": text}})
    };
    let records: Vec<Value> = lines.iter().zip(1..).map(record).collect();
    let result = json!({"total": records.len(), "records": records}).to_string();
    rec::collect(&[Rec::answered("r1.investigate.network.t2.0", "search", "{}", &result)])
}

#[track_caller]
fn check(alert: &str, lines: &[(&str, &str)], expect: &[u64]) {
    let seeds = seed::of(&Alert::parse(alert.as_bytes()).unwrap());
    let recs = recs(lines);
    let found = core(&recs, &seeds, &[]);
    assert_eq!(found.iter().map(|i| recs[*i].line).collect::<Vec<_>>(), expect);
}

#[test]
fn an_alert_that_points_to_no_record_is_about_the_one_that_names_most_of_it_at_its_time() {
    let alert =
        r#"{"id":"1","event_time":"2026-03-01T10:00:00Z","host":"web-7","src_ip":"203.0.113.9","user":"mara.k"}"#;
    let lines = [
        ("2026-03-01T09:00:00Z", "web-7 mara.k from 203.0.113.9"),
        ("2026-03-01T09:59:59Z", "web-7 mara.k from 203.0.113.9"),
        ("2026-03-01T10:00:00Z", "web-7 cron from nowhere"),
        ("2026-03-01T10:00:00Z", "web-7 somebody from 203.0.113.9"),
        ("2026-03-01T10:00:01.500Z", "web-7 mara.k from 203.0.113.9"),
    ];
    check(alert, &lines, &[2]);
    // Its clock may be off by more than a moment.
    check(alert, &[("2026-03-01T10:00:40Z", "mara.k again"), ("2026-03-01T10:00:20Z", "mara.k")], &[2]);
    // A host alone is many things.
    check(alert, &lines[2..3], &[]);
    check(alert, &[("2026-03-01T10:05:00Z", "web-7 mara.k from 203.0.113.9")], &[]);
    check(r#"{"id":"1","src_ip":"203.0.113.9"}"#, &lines, &[]);
}
