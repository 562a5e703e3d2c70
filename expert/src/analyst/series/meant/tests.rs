use serde_json::{Value, json};

use super::*;
use crate::analyst::series::tests::{done, found, record, view};

/// The line of the record that the alert on line 5, with these fields, is taken to be about.
fn means(alert: &[(&str, &str)], near: &[Value]) -> Option<u64> {
    let mut all = vec![record(5, "2026-03-01T10:10:00Z", "raised", alert)];
    all.extend(near.iter().cloned());
    let case = Case::of(&view(), &[done(0, &call("around", &json!({})), &found(&all))], 1);
    let raised = case.recs.iter().find(|rec| rec.line == 5)?;
    assert_eq!(raised.class(), Class::Alert);
    by(&case, raised).map(|rec| rec.line)
}

fn raised<'a>(what: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("event_type", "alert"), ("alert.signature", what), ("src_ip", "203.0.113.9")], more].concat()
}

#[test]
fn an_alert_about_sign_ins_means_one_that_failed() {
    let failed = |line: u64, time: &str, ip: &str| {
        let fields = [("program", "sshd"), ("outcome", "Failed"), ("user", "root"), ("src_ip", ip)];
        record(line, time, "sshd[7]: Failed password for root", &fields)
    };
    let near = [
        failed(1, "2026-03-01T10:01:00Z", "203.0.113.9"),
        failed(2, "2026-03-01T10:09:00Z", "203.0.113.9"),
        failed(3, "2026-03-01T10:09:30Z", "198.51.100.2"),
        failed(4, "2026-03-01T10:11:00Z", "203.0.113.9"),
    ];
    assert_eq!(means(&raised("Possible SSH brute force", &[]), &near), Some(2), "the last before it, from its address");
    assert_eq!(means(&raised("Port scan", &[]), &near), None);
    let long_ago = [failed(1, "2026-03-01T08:01:00Z", "203.0.113.9")];
    assert_eq!(means(&raised("Possible SSH brute force", &[]), &long_ago), None);
}

#[test]
fn an_alert_about_a_connection_means_that_connection() {
    let connected = |line: u64, time: &str, port: &str| {
        let fields = [
            ("uid", "C1"),
            ("id.orig_h", "203.0.113.9"),
            ("id.resp_h", "192.0.2.7"),
            ("id.resp_p", port),
            ("proto", "tcp"),
        ];
        record(line, time, "conn", &fields)
    };
    let near = [connected(1, "2026-03-01T10:09:00Z", "4444"), connected(2, "2026-03-01T10:09:30Z", "443")];
    let to = |port| raised("Known bad client", &[("dest_ip", "192.0.2.7"), ("dest_port", port)]);
    assert_eq!(means(&to("4444"), &near), Some(1));
    assert_eq!(means(&to("25"), &near), None);
}

#[test]
fn an_alert_of_a_firewall_before_a_site_means_the_request_for_that_page() {
    let asked = |line: u64, url: &str| {
        let fields = [("src_ip", "203.0.113.9"), ("http_method", "GET"), ("url", url), ("status_code", "200")];
        record(line, "2026-03-01T10:09:00Z", url, &fields)
    };
    let near = [asked(1, "/"), asked(2, "/a.php?id=1"), asked(3, "/a.phpx")];
    assert_eq!(means(&raised("SQL injection", &[("http.url", "/a.php?id=2")]), &near), Some(2));
    assert_eq!(means(&raised("SQL injection", &[("http.url", "/b.php")]), &near), None);
}
