use serde_json::{Value, json};

use super::*;
use crate::analyst::series::tests::{done, found, record, view};

/// The case of the record on line 5 among `near`, and the lines that `looked_for` picks where the request of the record
/// is answered with `answer`.
fn lines(
    near: &[Value],
    request: fn(&Rec) -> Vec<CallRequest>,
    answer: &[Value],
    looked_for: impl Fn(&Case, &[Done]) -> BTreeSet<(String, u64)>,
) -> Vec<u64> {
    let mut all = vec![done(0, &call("around", &json!({})), &found(near))];
    let core = Case::of(&view(), &all, 1);
    let core = core.alerted().into_iter().next().unwrap();
    all.extend((1..).zip(request(core)).map(|(n, request)| done(n, &request, &found(answer))));
    let case = Case::of(&view(), &all, 1);
    looked_for(&case, &all).into_iter().map(|(_, line)| line).collect()
}

fn audited(line: u64, minute: u32, fields: &[(&str, &str)]) -> Value {
    let serial = line.to_string();
    let mut stamp = vec![("audit.time", "1.5"), ("audit.serial", serial.as_str())];
    if fields.iter().all(|(name, _)| *name != "node") {
        stamp.push(("node", "web1"));
    }
    let time = format!("2026-03-01T10:{minute:02}:00Z");
    let raw = fields.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
    record(line, &time, &raw, &[&stamp[..], fields].concat())
}

#[test]
fn who_ran_what_with_more_rights_and_what_followed_is_told_beside_a_change_of_the_system() {
    let ended = audited(5, 10, &[("type", "DAEMON_END"), ("op", "terminate"), ("auid", "0"), ("res", "success")]);
    let begun = audited(6, 10, &[("type", "DAEMON_START"), ("op", "start"), ("auid", "0"), ("res", "success")]);
    let ran = |line, minute, cmd| audited(line, minute, &[("type", "USER_CMD"), ("auid", "1000"), ("cmd", cmd)]);
    let mut commands_ = vec![ran(2, 9, "sh a.sh"), ran(3, 9, "sh a.sh"), ran(8, 20, "auditctl -l")];
    let mut elsewhere = audited(9, 11, &[("type", "USER_CMD"), ("auid", "1000"), ("cmd", "id"), ("node", "db9")]);
    elsewhere["file"] = json!("db9.log");
    commands_.push(elsewhere);
    // A log of many hosts.
    commands_.push(audited(10, 11, &[("type", "USER_CMD"), ("auid", "1000"), ("cmd", "id"), ("node", "db9")]));
    let told = lines(&[ended.clone(), begun], commands, &commands_, beside_it);
    assert_eq!(told, [2, 6, 8], "each command of this host once, and the start after the end");
    let all = [done(0, &call("around", &json!({})), &found(&[ended]))];
    let asked = commands(Case::of(&view(), &all, 1).alerted()[0]);
    assert_eq!(asked.len(), 2, "the log of the change is asked alone, too: others may be filled with the words");
    assert!(asked.iter().all(|r| r.arguments.contains("2026-03-01T09:55:00Z")), "{asked:?}");
    let by_somebody = audited(5, 10, &[("type", "CONFIG_CHANGE"), ("op", "add_rule"), ("auid", "1000")]);
    assert_eq!(lines(&[by_somebody], commands, &commands_, beside_it), [0; 0], "its own record says who");
    let own = audited(5, 10, &[("type", "USER_CMD"), ("auid", "1000"), ("acct", "mara"), ("cmd", "bash")]);
    let of = |line, who| audited(line, 9, &[("type", "USER_CMD"), ("acct", who), ("cmd", "vim rc.local")]);
    assert_eq!(lines(&[own], commands, &[of(3, "mara"), of(4, "eve")], beside_it), [3], "those of the same person");
}

#[test]
fn who_else_comes_from_the_address_of_a_sign_in_is_told_unless_it_is_everybodys() {
    let signed = |line: u64, user: &str| {
        let fields = [("OperationName", "Sign-in activity"), ("UserPrincipalName", user), ("IPAddress", "203.0.113.9")];
        record(line, &format!("2026-03-01T10:{line:02}:00Z"), user, &fields)
    };
    let few = [signed(5, "mara@corp.example"), signed(1, "eve@corp.example"), signed(2, "eve@corp.example")];
    let near = signed(6, "eve@corp.example");
    let same = signed(7, "MARA@corp.example");
    let of = |recs: &[Value]| lines(recs, |_| Vec::new(), &[], |case, _| sharing(case));
    assert_eq!(of(&[&few[..], &[near, same]].concat()), [1, 6], "the first and the nearest");
    let did = |line: u64, deed: &str| {
        let mut rec = signed(line, "eve@corp.example");
        rec["fields"]["OperationName"] = json!(deed);
        rec
    };
    let deeds = [
        signed(5, "mara@corp.example"),
        did(1, "Sign-in activity"),
        did(20, "Update application"),
        did(30, "Add owner"),
    ];
    assert_eq!(of(&deeds), [1, 20, 30], "each of the few things that the other did");
    let guessed: Vec<Value> = (10..20)
        .map(|n| {
            let mut failed = signed(n, &format!("guess{n}@corp.example"));
            failed["fields"]["ResultType"] = json!("50126");
            failed["fields"]["Status"] = json!("failure");
            failed
        })
        .collect();
    assert_eq!(of(&[&few[..], &guessed].concat()), [1, 2], "who guesses hides nobody");
    let many: Vec<Value> = (10..20).map(|n| signed(n, &format!("user{n}@corp.example"))).collect();
    assert_eq!(of(&[&few[..], &many].concat()), [0; 0]);
}

#[test]
fn what_a_log_of_sentences_says_of_sessions_is_told_once_for_each_kind() {
    let line = |line: u64, second: u32, text: &str| {
        record(line, &format!("2026-03-01T10:10:{second:02}Z"), text, &[("timestamp", "x"), ("message", text)])
    };
    let alerted = line(5, 10, "desktop process started, pid 7");
    let said = [
        line(3, 8, "incoming session via router 17"),
        line(4, 9, "incoming session via router 18"),
        line(8, 20, "authentication was successful"),
    ];
    assert_eq!(lines(&[alerted], |rec| told(rec).into_iter().collect(), &said, sentences), [4, 8]);
    let fields = [("host", "a"), ("program", "sshd"), ("user", "x"), ("src_ip", "192.0.2.1"), ("message", "x")];
    assert_eq!(
        lines(
            &[record(5, "2026-03-01T10:10:00Z", "x", &fields)],
            |rec| told(rec).into_iter().collect(),
            &said,
            sentences
        ),
        [0; 0]
    );
}

/// The pattern is one that the tools take.
#[test]
fn sentences_of_sessions_are_known() {
    let pattern = regex::Regex::new(TOLD).unwrap();
    for text in [
        "CreatePassiveSession(): incoming session via a.example",
        "authentication using dynamic password was successful",
        "Session to 7 ended. Latency=65ms",
        "sync_app.py:2057 Signing Out",
        "create_directories: Access is denied",
        "User logged in",
        "upload of a.pdf completed",
    ] {
        assert!(pattern.is_match(text), "{text}");
    }
    for text in ["session id is 7", "logging level: info", "the blog index was built", "passwords are kept"] {
        assert!(!pattern.is_match(text), "{text}");
    }
}
