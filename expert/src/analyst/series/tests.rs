use casebook_agent::reasoner::Done;
use casebook_protocol::{Alert, Bearing, ExpertView, Question, Toolset, Weight};
use casebook_trust::Exhibits;
use serde_json::{Map, Value};

use super::super::{Case, rec};
use super::beside::{changes, reached, signed_in_before};
use super::*;

/// A case of one alerted record, whose requests were answered with these texts.
struct Scene {
    alerted: Value,
    answers: Vec<Value>,
}

pub(in crate::analyst) fn done(number: usize, request: &CallRequest, result: &Value) -> Done {
    let id = format!("r1.investigate.identity.t4.{number}");
    Rec::answered(&id, &request.tool, &request.arguments, &result.to_string())
}

pub(in crate::analyst) fn record(line: u64, time: &str, raw: &str, fields: &[(&str, &str)]) -> Value {
    let fields: Map<String, Value> = fields.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
    json!({"source": "auth", "file": "auth.log", "line": line, "time": time, "time_basis": "record",
        "precision": "second", "time_field": "timestamp", "raw": raw, "fields": fields})
}

fn failed(line: u64, time: &str) -> Value {
    record(
        line,
        time,
        "sshd[7]: Failed password for root from 203.0.113.9 port 22 ssh2",
        &[("program", "sshd"), ("outcome", "Failed"), ("user", "root"), ("src_ip", "203.0.113.9")],
    )
}

fn accepted(line: u64, time: &str, address: &str) -> Value {
    record(
        line,
        time,
        &format!("sshd[9]: Accepted password for root from {address} port 22 ssh2"),
        &[("program", "sshd"), ("outcome", "Accepted"), ("user", "root"), ("src_ip", address)],
    )
}

pub(in crate::analyst) fn found(records: &[Value]) -> Value {
    json!({"total": records.len(), "returned": records.len(), "records": records, "searched": ["auth"],
        "window": {"from": null, "to": null}})
}

pub(in crate::analyst) fn counted(groups: &[(&str, u64)]) -> Value {
    let total: u64 = groups.iter().map(|(_, n)| n).sum();
    let groups: Vec<Value> = groups.iter().map(|(value, n)| json!({"value": value, "count": n})).collect();
    json!({"total": total, "distinct": groups.len(), "groups": groups, "searched": ["auth"],
        "window": {"from": null, "to": null}})
}

impl Scene {
    fn done(&self) -> Vec<Done> {
        let alerted = call("get_record", &json!({"file": "auth.log", "line": 5}));
        let first = done(0, &alerted, &self.alerted);
        let rec = &rec::collect(std::slice::from_ref(&first))[0];
        let mut asked = of(rec).map_or_else(Vec::new, |series| series.asked());
        asked.extend(signed_in_before(rec));
        asked.extend(reached(rec));
        asked.extend(changes(rec));
        let answers = asked.iter().zip(&self.answers).zip(1..).map(|((request, answer), n)| done(n, request, answer));
        std::iter::once(first).chain(answers).collect()
    }

    fn case(&self) -> (Case, Vec<Done>) {
        let done = self.done();
        (Case::of(&view(), &done, 1), done)
    }

    /// The findings, each with what the check of its citations says.
    fn findings(&self) -> Vec<FindingDraft> {
        let (case, done) = self.case();
        let mut exhibits = Exhibits::default();
        done.iter().for_each(|d| exhibits.add(d.call.clone(), false, d.result.as_bytes()));
        let all = findings(&case, &done);
        for finding in &all {
            assert!(exhibits.check(finding).valid(), "{finding:?}: {:?}", exhibits.check(finding));
        }
        all
    }
}

pub(in crate::analyst) fn view() -> ExpertView {
    let alert = br#"{"id":"a","title":"Failed logins","event_ref":{"file":"auth.log","line":5}}"#;
    ExpertView {
        alert: Alert::parse(alert).unwrap(),
        journal: Vec::new(),
        question: Question { text: "?".into(), follow: Vec::new(), to: Vec::new() },
        toolset: Toolset { name: "evidence".into(), about: String::new(), tools: Vec::new() },
        sources: Vec::new(),
    }
}

fn guesses(minutes: &[(&str, u64)], accounts: &[(&str, u64)], signed_in: &[Value]) -> Scene {
    let ends = [failed(1, "2026-03-01T10:00:00Z"), failed(9, "2026-03-01T10:20:00Z")];
    Scene {
        alerted: failed(5, "2026-03-01T10:10:00Z"),
        answers: vec![
            found(&ends[..1]),
            found(&ends[1..]),
            counted(minutes),
            counted(accounts),
            found(signed_in),
            found(&[accepted(3, "2026-03-01T10:05:00Z", "198.51.100.2")]),
        ],
    }
}

#[track_caller]
fn check(scene: &Scene, expect: &[(&str, Weight)]) {
    let got = scene.findings();
    let got: Vec<(&str, Weight)> = got.iter().map(|f| (f.claim.as_str(), f.weight)).collect();
    assert_eq!(got, expect);
}

#[test]
fn how_often_and_how_fast_says_what_failed_sign_ins_are() {
    let fast = [("2026-03-01T10:00:00Z", 90), ("2026-03-01T10:09:00Z", 30), ("2026-03-01T12:00:00Z", 1)];
    check(
        &guesses(&fast, &[("root", 100), ("admin", 21)], &[]),
        &[(
            "121 failed sign-ins from `203.0.113.9`, 2 accounts around the alert; no record of it says `Accepted`: passwords guessed at \
                 a pace that no person keeps",
            Weight::Decisive,
        )],
    );
    // The same number, over hours.
    let slow: Vec<(String, u64)> = (10..22).map(|h| (format!("2026-03-01T{h}:00:00Z"), 10)).collect();
    let slow: Vec<(&str, u64)> = slow.iter().map(|(t, n)| (t.as_str(), *n)).collect();
    check(
        &guesses(&slow, &[("root", 120)], &[]),
        &[(
            "120 failed sign-ins from `203.0.113.9`; no record of it says `Accepted`: repeated, by somebody who guesses or a program with an old password",
            Weight::Moderate,
        )],
    );
    let five = [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)];
    check(
        &guesses(&[("2026-03-01T10:10:00Z", 5)], &five, &[]),
        &[(
            "5 failed sign-ins from `203.0.113.9`, 5 accounts around the alert; no record of it says `Accepted`: one address tried the accounts of many",
            Weight::Strong,
        )],
    );
    check(&guesses(&[("2026-03-01T10:10:00Z", 3)], &[("mara", 3)], &[]), &[]);
}

#[test]
fn a_sign_in_after_guesses_is_told_and_points_to_an_attack() {
    let minute = [("2026-03-01T10:10:00Z", 30)];
    let in_at_last = [accepted(8, "2026-03-01T10:15:00Z", "203.0.113.9")];
    let scene = guesses(&minute, &[("root", 20), ("admin", 10)], &in_at_last);
    let (case, done) = scene.case();
    let all = super::super::compose::findings(&case, &done);
    let told: Vec<&FindingDraft> = all.iter().filter(|f| f.claim.contains("had guessed")).collect();
    assert_eq!(told.len(), 1, "{all:?}");
    assert_eq!((told[0].bearing, told[0].weight, told[0].about_alert), (Bearing::Incriminating, Weight::Strong, true));
    assert!(!all.iter().any(|f| f.claim.contains("no record of it says")), "somebody was let in: {all:?}");
    // Who signed in before anybody guessed, or after a few mistypes, is not told as one who guessed.
    let marked = |scene: &Scene| {
        let (case, done) = scene.case();
        after_guesses(&case, &done).len()
    };
    assert_eq!(marked(&guesses(&minute, &[("root", 30)], &in_at_last)), 1);
    let mut closed = in_at_last[0].clone();
    closed["fields"]["op"] = json!("PAM:session_close");
    closed["fields"]["type"] = json!("USER_END");
    assert_eq!(marked(&guesses(&minute, &[("root", 30)], &[closed.clone()])), 0, "a session that ends");
    closed["fields"]["op"] = json!("login");
    closed["fields"]["type"] = json!("backend sender");
    assert_eq!(marked(&guesses(&minute, &[("root", 30)], &[closed])), 1, "a word that holds another");
    assert_eq!(marked(&guesses(&minute, &[("root", 30)], &[accepted(8, "2026-03-01T10:05:00Z", "203.0.113.9")])), 0);
    let few = [("2026-03-01T10:10:00Z", 6)];
    assert_eq!(marked(&guesses(&few, &[("root", 6)], &in_at_last)), 0);
    let times: Vec<String> = all.iter().filter_map(|f| Some(f.time.as_ref()?.at.to_string())).collect();
    for end in ["2026-03-01T10:00:00Z", "2026-03-01T10:20:00Z"] {
        assert!(times.iter().any(|at| at == end), "where it began and ended: {times:?}");
    }
}

/// What watches the network has no words of a sign-in, and its alert is about those that failed before it.
#[test]
fn another_products_alert_is_about_the_sign_ins_that_failed_and_success_is_what_is_not_failure() {
    let session = |line: u64, time: &str, success: &str| {
        let fields =
            [("id.orig_h", "203.0.113.9"), ("id.resp_h", "192.0.2.5"), ("id.resp_p", "22"), ("auth_success", success)];
        record(line, time, &format!("203.0.113.9 {success}"), &fields)
    };
    let notice = [("note", "SSH::Password_Guessing"), ("suppress_for", "3600"), ("src", "203.0.113.9")];
    let notice = record(5, "2026-03-01T10:10:00Z", "SSH::Password_Guessing 203.0.113.9", &notice);
    let failed = session(3, "2026-03-01T10:09:00Z", "false");
    let first = [done(0, &call("around", &json!({})), &found(&[notice, failed]))];
    let case = Case::of(&view(), &first, 1);
    let series = alerted(&case).unwrap();
    let signed_in = series.signed_in().unwrap();
    assert!(signed_in.arguments.contains(r#""field":"auth_success""#), "{}", signed_in.arguments);
    assert!(signed_in.arguments.contains(r#""value":"true""#), "{}", signed_in.arguments);
    let mut all = first.to_vec();
    all.push(done(1, &series.count(), &counted(&[("2026-03-01T10:09:00Z", 40)])));
    all.push(done(2, &signed_in, &found(&[session(9, "2026-03-01T10:20:00Z", "true")])));
    let case = Case::of(&view(), &all, 1);
    let marked: Vec<u64> = after_guesses(&case, &all).into_iter().map(|(_, line)| line).collect();
    assert_eq!(marked, [9]);
    // An alert about something else is not about sign-ins that failed, nor is one about those after it.
    let of = |notice: &str, at: &str| {
        let fields = [("note", notice), ("suppress_for", "3600"), ("src", "203.0.113.9")];
        let notice = record(5, at, &format!("{notice} 203.0.113.9"), &fields);
        let near = session(3, "2026-03-01T10:09:00Z", "false");
        alerted(&Case::of(&view(), &[done(0, &call("around", &json!({})), &found(&[notice, near]))], 1)).is_some()
    };
    assert!(of("SSH::Password_Guessing", "2026-03-01T10:10:00Z"));
    assert!(!of("SSL::Invalid_Server_Cert", "2026-03-01T10:10:00Z"));
    assert!(!of("SSH::Password_Guessing", "2026-03-01T10:00:00Z"));
}

#[test]
fn many_names_below_one_domain_are_no_look_ups() {
    let query = |line: u64, name: &str| {
        record(line, "2026-03-01T10:00:00Z", name, &[("qname", name), ("qtype", "TXT"), ("src_ip", "10.0.0.5")])
    };
    let scene = |names: u64| Scene {
        alerted: query(5, "aaaa.t.example"),
        answers: vec![
            found(&[query(1, "first.t.example")]),
            found(&[query(9, "last.t.example")]),
            counted(&[("2026-03-01T10:00:00Z", names)]),
            json!({"total": names, "distinct": names, "groups": [], "searched": ["auth"], "window": {"from": null, "to": null}}),
        ],
    };
    check(
        &scene(60),
        &[(
            "60 look-ups of names below `t.example` from `10.0.0.5`, 60 names around the alert: so many names below one \
             domain carry data or are made by a program",
            Weight::Strong,
        )],
    );
    check(
        &scene(4),
        &[("4 look-ups of names below `t.example` from `10.0.0.5`, 4 names around the alert", Weight::Weak)],
    );
}

#[test]
fn the_domain_of_a_name_is_what_somebody_owns() {
    let check = |name: &str, expect: Option<&str>| assert_eq!(domain(name).as_deref(), expect, "{name}");
    check("a.b.example.org.", Some(".example.org"));
    check("www.shop.co.uk", Some(".shop.co.uk"));
    check("shop.co.uk", None);
    check("example.org", None);
    check("5.0.0.10.in-addr.arpa", None);
}

#[test]
fn the_sign_in_and_the_command_before_the_alerted_record_are_told() {
    let made = |line: u64| {
        record(line, "2026-03-01T10:10:00Z", "useradd[3]: new user: name=x", &[("program", "useradd"), ("user", "x")])
    };
    let sudo = record(
        4,
        "2026-03-01T10:09:58Z",
        "sudo: mara : COMMAND=/root/make.sh",
        &[("program", "sudo"), ("user", "mara"), ("command", "/root/make.sh")],
    );
    let scene =
        Scene { alerted: made(5), answers: vec![found(&[accepted(2, "2026-03-01T09:00:00Z", "198.51.100.2")])] };
    let mut all = scene.done();
    all.push(done(9, &call("around", &json!({})), &found(&[sudo])));
    let view_done = scene.case().0;
    let case = Case { recs: rec::collect(&all), ..view_done };
    let core = case.recs.iter().position(|r| r.line == 5).unwrap();
    let case = Case { core: BTreeSet::from([core]), ..case };
    let lines: Vec<u64> = led_to(&case, &all).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, [2, 4]);
}

#[test]
fn what_very_many_records_show_sets_none_of_them_apart() {
    let lines: Vec<Value> = (1..=20).map(|n| failed(n, &format!("2026-03-01T10:00:{n:02}Z"))).collect();
    let scene = guesses(&[("2026-03-01T10:00:00Z", 20)], &[("root", 20)], &[]);
    let mut all = scene.done();
    all.push(done(9, &call("around", &json!({})), &found(&lines)));
    let alert =
        br#"{"id":"a","title":"Failed logins","src_ip":"203.0.113.9","event_ref":{"file":"auth.log","line":5}}"#;
    let view = ExpertView { alert: Alert::parse(alert).unwrap(), ..view() };
    let case = Case::of(&view, &all, 1);
    let showing = case.recs.iter().filter(|r| r.shows.iter().any(|b| b.id == "ssh-failed-password"));
    assert_eq!(showing.map(|r| r.line).collect::<Vec<_>>(), [1, 5, 9], "the first, the alerted, the last");
}

#[test]
fn what_an_alerted_address_is_called_is_told_once_for_each_kind_of_record() {
    let line = |line: u64, fields: &[(&str, &str)]| record(line, "2026-03-01T10:00:00Z", "198.51.100.7", fields);
    let flow = [("src_ip", "10.0.0.5"), ("dest_ip", "198.51.100.7"), ("dest_port", "443")];
    let look_up = [("rrname", "cdn.example"), ("qtype", "A"), ("src_ip", "10.0.0.5")];
    let session = [("sni", "cdn.example"), ("cipher", "x"), ("src_ip", "10.0.0.5")];
    let all = [line(5, &flow), line(7, &look_up), line(8, &look_up), line(9, &session)];
    let done = [done(1, &call("around", &json!({})), &found(&all))];
    let case = Case::of(&view(), &done, 1);
    let lines: Vec<u64> = named(&case).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, [7, 9]);
}

/// A record of this kind is noise where nothing ties it to the alert, or only its process does.
#[test]
fn the_first_and_the_last_of_the_same_are_told_whatever_sort_of_record_they_are() {
    let opened = |line: u64, time: &str| {
        let fields = [
            ("Channel", "Microsoft-Windows-Sysmon/Operational"),
            ("EventID", "10"),
            ("Hostname", "PC1"),
            ("SourceImage", r"C:\Tools\watch.exe"),
            ("TargetImage", r"C:\Windows\explorer.exe"),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
        record(line, time, &raw, &fields)
    };
    let scene = Scene {
        alerted: opened(5, "2026-03-01T10:10:00Z"),
        answers: vec![
            found(&[opened(1, "2026-03-01T10:00:00Z")]),
            found(&[opened(9, "2026-03-01T10:20:00Z")]),
            counted(&[("2026-03-01T10:00:00Z", 3)]),
        ],
    };
    let (case, done) = scene.case();
    let all = super::super::compose::findings(&case, &done);
    let times: Vec<String> = all.iter().filter_map(|f| Some(f.time.as_ref()?.at.to_string())).collect();
    assert_eq!(times, ["2026-03-01T10:00:00Z", "2026-03-01T10:10:00Z", "2026-03-01T10:20:00Z"]);
}

fn managed(line: u64, time: &str, to: &str, bytes: &str) -> Value {
    let fields = [("src_ip", "10.0.0.5"), ("dst_ip", to), ("dst_port", "5985"), ("orig_bytes", bytes)];
    record(line, time, &format!("10.0.0.5 {to} 5985 {bytes}"), &fields)
}

#[test]
fn where_else_a_host_was_managed_from_and_what_carried_most_is_told() {
    let at = |line: u64, to: &str, bytes: &str| managed(line, &format!("2026-03-01T10:{line:02}:00Z"), to, bytes);
    let all: Vec<Value> = (10..20).map(|line| at(line, "10.0.0.9", "700")).collect();
    let few = [at(30, "10.0.0.9", "900000"), at(31, "10.0.0.7", "1"), at(32, "10.0.0.7", "1"), at(33, "10.0.0.8", "1")];
    let scene = |records: &[Value]| {
        let ends = [found(&[at(5, "10.0.0.9", "1")]), found(&[at(5, "10.0.0.9", "1")]), counted(&[])];
        Scene { alerted: at(5, "10.0.0.9", "1"), answers: ends.into_iter().chain([found(records)]).collect() }
    };
    let told = |scene: &Scene| {
        let (case, done) = scene.case();
        spread(&case, &done).into_iter().map(|(_, line)| line).collect::<Vec<_>>()
    };
    assert_eq!(told(&scene(&[&all[..], &few].concat())), [30, 31, 33]);
    let many: Vec<Value> = (1..9).map(|n| at(40 + n, &format!("10.0.1.{n}"), "1")).collect();
    assert_eq!(told(&scene(&many)), [0; 0], "of many none stands out");
}

#[test]
fn that_it_was_raised_is_no_evidence_for_what_an_alert_says() {
    let alert = |line: u64, severity: &str| {
        let fields = [("AlertName", "Password spray"), ("AlertSeverity", severity), ("user", "mara")];
        let raw = format!(r#"{{"AlertName":"Password spray","AlertSeverity":"{severity}","user":"mara"}}"#);
        record(line, "2026-03-01T10:00:00Z", &raw, &fields)
    };
    let scene = Scene { alerted: alert(5, "High"), answers: Vec::new() };
    let mut done = scene.done();
    done.push(super::tests::done(9, &call("search", &json!({"terms": ["mara"]})), &found(&[alert(7, "High")])));
    let case = Case::of(&view(), &done, 1);
    let shows: Vec<(u64, usize)> = case.recs.iter().map(|r| (r.line, r.shows.len())).collect();
    assert_eq!(shows, [(5, 0), (7, 1)]);
}

#[test]
fn what_else_was_changed_of_the_alerted_object_is_told_once_for_each_kind() {
    let call = |line: u64, verb: &str, kind: &str| {
        let fields = [
            ("auditID", "1"),
            ("user.username", "mara"),
            ("verb", verb),
            ("objectRef.resource", kind),
            ("objectRef.name", "gate"),
        ];
        record(line, &format!("2026-03-01T10:{line:02}:00Z"), &format!("{verb} {kind} gate"), &fields)
    };
    let changes = [call(7, "create", "roles"), call(9, "create", "roles"), call(8, "delete", "roles")];
    let told = |total: usize| {
        let mut answer = found(&changes);
        answer["total"] = json!(total);
        let ends = [found(&[call(5, "update", "hooks")]), found(&[call(5, "update", "hooks")]), counted(&[])];
        let scene = Scene { alerted: call(5, "update", "hooks"), answers: ends.into_iter().chain([answer]).collect() };
        let (case, done) = scene.case();
        changed(&case, &done).into_iter().map(|(_, line)| line).collect::<Vec<_>>()
    };
    assert_eq!(told(3), [7, 8]);
    assert_eq!(told(4000), [0; 0], "an object that is changed all the time");
}
