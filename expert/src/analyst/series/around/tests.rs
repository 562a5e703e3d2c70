use serde_json::{Value, json};

use super::*;
use crate::analyst::series::tests::{done, found, record, view};

/// The lines that `looked_for` picks in the case of the record on line 5 among `near`, where what it asks is answered with
/// `answer`.
fn lines(
    near: &[Value],
    request: impl Fn(&Case) -> Option<CallRequest>,
    answer: &[Value],
    looked_for: impl Fn(&Case, &[Done]) -> BTreeSet<(String, u64)>,
) -> Vec<u64> {
    let mut all = vec![done(0, &call("around", &json!({})), &found(near))];
    let asked = request(&Case::of(&view(), &all, 1));
    all.extend(asked.map(|request| done(1, &request, &found(answer))));
    looked_for(&Case::of(&view(), &all, 1), &all).into_iter().map(|(_, line)| line).collect()
}

#[test]
fn what_was_installed_around_a_change_of_the_system_is_told() {
    let made = |program: &str, raw: &str| {
        record(5, "2026-03-01T10:00:16Z", raw, &[("program", program), ("host", "web1"), ("message", raw)])
    };
    let package = |line: u64, second: u32, text: &str| {
        let raw = format!("2026-03-01 10:00:{second:02} {text}");
        let mut rec = record(line, &format!("2026-03-01T10:00:{second:02}Z"), &raw, &[("message", text)]);
        rec["file"] = json!("dpkg.log");
        rec
    };
    let log = [
        package(1, 10, "status half-configured libwrap0:amd64 7.6"),
        package(2, 12, "status installed libwrap0:amd64 7.6"),
        package(3, 15, "status half-configured openssh-server:amd64 7.6"),
        package(4, 19, "status installed openssh-server:amd64 7.6"),
        package(6, 20, "status installed man-db:amd64 2.8"),
        package(7, 14, "a disk was found"),
    ];
    let user = made("useradd", "new user: name=sshd, UID=110, GID=65534, home=/run/sshd");
    assert_eq!(lines(&[user], packages, &log, installed), [1, 3, 4], "the first, and those next to the change");
    let sign_in = made("sshd", "Accepted password for mara from 203.0.113.9 port 22 ssh2");
    assert_eq!(lines(&[sign_in], packages, &log, installed), [0; 0]);
}

#[test]
fn what_whoever_searches_through_a_site_sends_to_it_is_told_once_for_each_place() {
    let asked = |line: u64, second: u32, method: &str, url: &str, status: &str| {
        let fields = [("src_ip", "203.0.113.9"), ("http_method", method), ("url", url), ("status_code", status)];
        record(line, &format!("2026-03-01T10:{:02}:{:02}Z", second / 60, second % 60), url, &fields)
    };
    let alerted = asked(5, 0, "GET", "/backup.zip", "404");
    let mut sent = vec![
        asked(6, 10, "POST", "/login?from=%2F", "302"),
        asked(7, 20, "POST", "/job/1234/build", "201"),
        asked(8, 30, "POST", "/job/1235/build", "201"),
        asked(9, 40, "POST", "/script", "200"),
    ];
    sent.extend((100..130).map(|line| asked(line, line as u32, "POST", "/ajax/poll", "200")));
    let request = |case: &Case| sent_to(case.alerted().first()?);
    assert_eq!(
        lines(&[alerted], request, &sent, let_through),
        [6, 7, 9],
        "what is asked all the time is the page's own"
    );
    let served = asked(5, 0, "GET", "/", "200");
    assert_eq!(lines(&[served], request, &sent, let_through), [0; 0], "nothing was refused");
}
