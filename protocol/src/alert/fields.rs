//! Where products put title, severity, host and user of an alert. Names are compared without case and punctuation.

use serde_json::Value;

use super::{Severity, one_line};

/// Products that send an alert inside an object.
const WRAPPERS: [&str; 9] = ["", "record", "detail", "properties", "result", "event", "finding", "attributes", "data"];
/// Paths to a title, the best first.
const TITLES: [&str; 24] = [
    "rule.title",
    "rule.name",
    "title",
    "name",
    "rulename",
    "ruletitle",
    "alertrule",
    "alertname",
    "alerttitle",
    "alertdisplayname",
    "displayname",
    "detectname",
    "detectionname",
    "signature",
    "alert.signature",
    "searchname",
    "kibanaalertrulename",
    "signal.rule.name",
    "rule.description",
    "labels.alertname",
    "rule",
    "note",
    "description",
    "message",
];
const SEVERITIES: [&str; 8] = [
    "severity",
    "rule.level",
    "rule.severity",
    "level",
    "priority",
    "alertseverity",
    "kibanaalertseverity",
    "alert.severity",
];
pub(super) const HOST: &[&str] = &[
    "host",
    "hostname",
    "computer",
    "computername",
    "computerdnsname",
    "devicednsname",
    "device",
    "devicename",
    "agent",
    "agentname",
];
pub(super) const USER: &[&str] = &["user", "username", "account", "accountname", "principal", "login", "actor"];
pub(super) const TIME: &[&str] = &["eventtime", "time", "timestamp", "created", "detectedat"];
pub(super) const ABOUT: &[&str] = &["description", "message", "summary", "details", "note"];
/// The longest text of a field, in characters.
const LONG: usize = 300;

fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The value at a path of plain names.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(value, |value, name| {
        value.as_object()?.iter().find(|(key, _)| plain(key) == name).map(|(_, value)| value)
    })
}

fn first<'v, T: 'v>(value: &'v Value, paths: &[&str], read: impl Fn(&str, &'v Value) -> Option<T>) -> Option<T> {
    let within = |path: &&str| WRAPPERS.iter().find_map(|wrapper| read(path, at(at(value, wrapper)?, path)?));
    paths.iter().find_map(within)
}

pub(super) fn title(value: &Value) -> Option<String> {
    let text = |_: &str, value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    // A type of one word, such as `alert`, says nothing.
    first(value, &TITLES, text).or_else(|| first(value, &["type"], text).filter(|text| text.trim().contains(' ')))
}

pub(super) fn severity(value: &Value) -> Option<Severity> {
    first(value, &SEVERITIES, |path, value| match value {
        Value::String(text) => Severity::read(text),
        // Wazuh counts up to 15, Suricata from 1 as the most severe.
        Value::Number(level) if path == "rule.level" => Some(match level.as_u64()? {
            0..=3 => Severity::Informational,
            4..=6 => Severity::Low,
            7..=11 => Severity::Medium,
            12..=14 => Severity::High,
            _ => Severity::Critical,
        }),
        Value::Number(level) if path == "alert.severity" => Some(match level.as_u64()? {
            0 | 1 => Severity::High,
            2 => Severity::Medium,
            _ => Severity::Low,
        }),
        _ => None,
    })
}

impl Severity {
    fn read(text: &str) -> Option<Self> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "critical" | "crit" | "emergency" | "alert" | "fatal" => Self::Critical,
            "high" | "severe" | "error" | "major" => Self::High,
            "medium" | "moderate" | "warning" | "warn" => Self::Medium,
            "low" | "minor" => Self::Low,
            "informational" | "info" | "notice" | "debug" | "none" => Self::Informational,
            _ => return None,
        })
    }
}

/// The text of the first field with one of these names, the nearest to the top, on one line. For an object it is its
/// `name`, `hostname` or `id`.
pub(super) fn named(root: &Value, names: &[&str]) -> Option<String> {
    let mut level = vec![root];
    for _ in 0..4 {
        let mut below = Vec::new();
        for value in level {
            let Value::Object(map) = value else { continue };
            for (key, inner) in map {
                let text = names.contains(&plain(key).as_str()).then(|| text(inner)).flatten();
                let line = text.map(|text| one_line(&text, LONG)).filter(|line| !line.is_empty());
                if line.is_some() {
                    return line;
                }
                below.push(inner);
            }
        }
        level = below;
    }
    None
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => {
            ["name", "hostname", "id"].iter().find_map(|key| map.get(*key).and_then(Value::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}
