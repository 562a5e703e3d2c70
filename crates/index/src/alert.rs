//! What a list shows of an alert's own fields, and the text by which it is found.

use std::collections::BTreeSet;

use casebook_protocol::Alert;
use serde_json::Value;

const HOSTS: [&str; 12] = [
    "/host/name",
    "/host/hostname",
    "/host",
    "/hostname",
    "/computer",
    "/Computer",
    "/computer_name",
    "/ComputerName",
    "/DeviceName",
    "/agent/name",
    "/event/host",
    "/device/hostname",
];
const USERS: [&str; 9] = [
    "/user/name",
    "/user",
    "/username",
    "/UserName",
    "/account",
    "/AccountName",
    "/event/user",
    "/actor/user/name",
    "/user_name",
];
/// Longer values are prose or command lines.
const LONGEST_NAME: usize = 80;
const MOST_TEXT: usize = 1024;

pub(crate) struct Named {
    pub(crate) host: Option<String>,
    pub(crate) user: Option<String>,
    /// Title, id and the names in the alert.
    pub(crate) text: String,
}

pub(crate) fn named(alert: &Alert) -> Named {
    let body: Value = serde_json::from_str(&alert.body).unwrap_or_default();
    let first = |pointers: &[&str]| {
        let texts = pointers.iter().filter_map(|pointer| body.pointer(pointer)?.as_str());
        texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut names = BTreeSet::new();
    collect(&body, &mut names);
    let mut text = format!("{}\n{}", alert.title, alert.id);
    for name in names {
        if text.len() + name.len() > MOST_TEXT {
            break;
        }
        text.push('\n');
        text.push_str(name);
    }
    Named { host: first(&HOSTS), user: first(&USERS), text }
}

fn collect<'v>(value: &'v Value, names: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) if text.len() <= LONGEST_NAME && !text.trim().is_empty() => drop(names.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, names)),
        _ => {}
    }
}
