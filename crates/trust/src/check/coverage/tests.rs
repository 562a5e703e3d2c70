use casebook_protocol::{CallId, Citation, Entity, Locator};
use serde_json::json;

use super::super::tests::{add, draft};
use super::super::{Checked, Exhibits};
use super::*;

/// A search of web1 and web2 from ten to eleven that found nothing.
fn result(more: Value) -> Value {
    let hour = |hour: u32| format!("2026-03-01T{hour:02}:00:00Z");
    let span = |key: &str, name: &str, last| json!({key: name, "records": 600, "first_time": hour(10), "last_time": hour(last)});
    let mut source = span("source", "audit", 11);
    source["hosts"] = json!([span("host", "web1", 11), span("host", "web2.corp.example", 11)]);
    let mut result = json!({"total": 0, "window": {"from": null, "to": null}, "searched": ["audit"],
        "covered": [source], "hosts_of_other_sources": ["db1"], "in_no_record": []});
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

fn checked(claim: &str, window: &str, host: Option<&str>, arguments: &str, result: &Value) -> Checked {
    let mut all = Exhibits::default();
    add(&mut all, "t.0", "search", arguments, &result.to_string(), false);
    let (from, to) = window.split_once(' ').unwrap();
    let edge = |hour: &str| (hour != "-").then(|| format!("2026-03-01T{hour}Z").parse().unwrap());
    let call = CallId::new("t.0").unwrap();
    let at = Locator::Pointer("/total".into());
    let mut finding = draft(vec![Citation::Absence { call, at, from: edge(from), to: edge(to), again: None }]);
    finding.claim = claim.into();
    finding.about_alert = true;
    finding.entities.extend(host.map(|host| Entity { kind: EntityKind::Host, value: host.into() }));
    all.check_on(&finding, Some("db1"))
}

fn told(claim: &str, window: &str, host: Option<&str>, arguments: &str, result: &Value) -> String {
    let checked = checked(claim, window, host, arguments, result);
    checked.citations[0].note.clone()
}

const WEB1: &str = r#"{"terms":["web1","insmod"]}"#;

#[test]
fn absence_counts_where_its_host_and_window_are_covered() {
    let own = |claim: &str, window: &str| told(claim, window, None, WEB1, &result(json!({})));
    for window in ["- -", "10:00:00 11:00:00", "10:20:00 10:30:00", "09:59:10 11:00:50"] {
        let told = own("no `insmod` on `web1`", window);
        assert!(told.starts_with("nothing found"), "{window}: {told}");
    }
    let names = "audit has web1 from 2026-03-01T10:00:00Z to 2026-03-01T11:00:00Z, web2.corp.example from";
    for window in ["08:00:00 11:00:00", "10:00:00 12:00:00", "- 23:00:00"] {
        let told = own("no `insmod` on `web1`", window);
        assert!(told.starts_with("no searched source covers the window for host \"web1\": "), "{window}: {told}");
        assert!(told.contains(names), "{told}");
    }
}

#[test]
fn absence_on_a_host_that_shipped_nothing_is_refused() {
    let of = |host: &str, never: &[&str]| {
        let arguments = format!(r#"{{"terms":["{host}","insmod"]}}"#);
        let found = result(json!({"in_no_record": never}));
        told(&format!("no `insmod` on `{host}`"), "- -", Some(host), &arguments, &found)
    };
    assert!(of("db1", &["db1"]).starts_with("no searched source has any record of host \"db1\", at no time: audit"));
    assert!(of("db7", &["db7"]).starts_with("no searched source has any record of host \"db7\", at no time: audit"));
    // Other fields may name a host, and a name with dots that no source knows is what was looked for.
    assert!(of("db1", &[]).starts_with("nothing found"), "{}", of("db1", &[]));
    let sought = of("evil.example.org", &["evil.example.org"]);
    assert!(sought.starts_with("nothing found"), "{sought}");
    assert!(of("WEB2", &[]).starts_with("nothing found"));
}

#[test]
fn absence_about_the_alert_means_the_host_of_the_alert() {
    let any = |more: Value| told("no record names `insmod`", "- -", None, r#"{"terms":["insmod"]}"#, &result(more));
    assert!(any(json!({})).starts_with("no searched source has records of host \"db1\": audit has web1"));
    // The alert may give the host another name than the logs do.
    assert!(any(json!({"hosts_of_other_sources": []})).starts_with("nothing found"));
    assert!(any(json!({"covered_more": 3})).starts_with("nothing found"));
    // Results of older versions do not say what was covered.
    assert!(any(json!({"covered": []})).starts_with("nothing found"));
    let mut nameless = result(json!({}));
    nameless["covered"][0]["hosts"] = json!([]);
    let nameless = told("no record names `insmod`", "- -", None, r#"{"terms":["insmod"]}"#, &nameless);
    assert!(nameless.starts_with("nothing found"), "{nameless}");
}

#[test]
fn one_of_two_hosts_may_be_what_was_looked_for() {
    let arguments = r#"{"terms":["web1","db7"]}"#;
    let found = result(json!({"in_no_record": ["db7"]}));
    let told = told("no connection of `web1` to `db7`", "10:10:00 10:50:00", Some("db7"), arguments, &found);
    assert!(told.starts_with("nothing found"), "{told}");
}
