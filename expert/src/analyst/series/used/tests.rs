use serde_json::{Value, json};

use super::*;
use crate::analyst::series::tests::{done, found, record, view};

fn told(change: &str, later: &[Value]) -> Vec<u64> {
    let of = |raw: &str| [("program", "useradd"), ("message", raw)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let fields = of(change);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let alerted = record(5, "2026-03-01T10:00:00Z", &format!("useradd[7]: {change}"), &fields);
    let mut all = vec![done(0, &call("around", &json!({})), &found(&[alerted]))];
    let asked = request(&Case::of(&view(), &all, 1));
    all.extend(asked.map(|asked| done(1, &asked, &found(later))));
    places(&Case::of(&view(), &all, 1), &all).into_iter().map(|(_, line)| line).collect()
}

fn signed_in(line: u64, minute: u32, user: &str, how: &str) -> Value {
    let outcome = if how == "Failed" { "Failed" } else { "Accepted" };
    let raw = format!("sshd[9]: {how} password for {user} from 203.0.113.9 port 22 ssh2");
    let fields = [("program", "sshd"), ("outcome", outcome), ("user", user), ("src_ip", "203.0.113.9")];
    record(line, &format!("2026-03-01T10:{minute:02}:00Z"), &raw, &fields)
}

#[test]
fn the_first_sign_in_of_a_new_account_is_told() {
    let later = [
        signed_in(6, 1, "mallory", "Failed"),
        signed_in(7, 2, "mara", "Accepted"),
        signed_in(8, 3, "mallory", "Accepted"),
        signed_in(9, 4, "mallory", "Accepted"),
    ];
    assert_eq!(told("new user: name=mallory, UID=1001, GID=1001, home=/home/mallory", &later), [8]);
    assert_eq!(told("add 'mallory' to group 'sudo'", &later), [8]);
    assert_eq!(told("new user: name=nobody-else, UID=1002", &later), [0; 0]);
}

#[test]
fn what_names_no_account_asks_nothing() {
    let change = "new user: name=a'b;, UID=1001";
    assert_eq!(told(change, &[signed_in(8, 3, "a", "Accepted")]), [0; 0]);
}
