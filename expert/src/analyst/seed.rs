//! The names in the alert by which its activity can be found in the evidence.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use casebook_protocol::{Alert, EntityKind, Timestamp};
use regex::Regex;
use serde_json::Value;

use casebook_evidence::facet::{epoch, last, time_rank};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seed {
    pub(crate) text: String,
    pub(crate) kind: EntityKind,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Seeds {
    pub(crate) names: Vec<Seed>,
    /// Times in the alert, as written. The clock may be wrong.
    pub(crate) times: Vec<Timestamp>,
    pub(crate) records: Vec<(String, u64)>,
}

/// Parts of an alert about the rule or the alert itself.
const ABOUT_THE_RULE: &[&str] = &[
    "rule",
    "datasources",
    "id",
    "source",
    "severity",
    "level",
    "tags",
    "references",
    "policy",
    "actions",
    "vendor",
    "product",
    "status",
    "title",
    "rulename",
    "eventtimenote",
];

pub(crate) fn of(alert: &Alert) -> Seeds {
    let mut seeds = Seeds::default();
    let mut found: BTreeMap<String, EntityKind> = BTreeMap::new();
    let body = alert.json();
    let mut times: BTreeMap<u8, Vec<Timestamp>> = BTreeMap::new();
    walk(&body, "", 0, &mut seeds.records, &mut found, &mut times);
    seeds.times = times.into_values().flatten().collect();
    seeds.times.dedup();
    let mut names: Vec<Seed> = found.into_iter().map(|(text, kind)| Seed { text, kind }).collect();
    names.sort_by_key(|s| (rank(s.kind), std::cmp::Reverse(s.text.len()), s.text.clone()));
    seeds.names = names;
    seeds
}

/// The time of the event at the top of the alert, and whether it has a zone.
pub(super) fn event_time(alert: &Alert) -> Option<(Timestamp, bool)> {
    // `timestamp` is missing, because it is often the time of the alert.
    const NAMES: &[&str] =
        &["eventtime", "eventtimestamp", "eventtimeepoch", "eventtimeutc", "occurredat", "timeutc", "utctime"];
    let body = alert.json();
    let own = body.as_object()?.iter().find(|(key, _)| NAMES.contains(&last(key, 1).as_str()))?;
    let (mut times, mut names, mut records) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    walk(own.1, &format!(".{}", own.0), 1, &mut records, &mut names, &mut times);
    let zoned =
        own.1.as_str().is_none_or(|text| text.trim().parse::<Timestamp>().is_ok() || last(own.0, 1).contains("utc"));
    times.into_values().flatten().next().map(|at| (at, zoned))
}

/// Specific kinds first: a session identifies more than a host.
const fn rank(kind: EntityKind) -> u8 {
    match kind {
        EntityKind::Session => 0,
        EntityKind::Hash => 1,
        EntityKind::File => 2,
        EntityKind::Address => 3,
        EntityKind::Name => 4,
        EntityKind::Process => 5,
        EntityKind::User => 6,
        EntityKind::Other => 7,
        EntityKind::Host => 8,
    }
}

fn walk(
    value: &Value,
    path: &str,
    depth: u8,
    records: &mut Vec<(String, u64)>,
    found: &mut BTreeMap<String, EntityKind>,
    times: &mut BTreeMap<u8, Vec<Timestamp>>,
) {
    if depth > 12 {
        return;
    }
    match value {
        Value::Object(map) => {
            if let (Some(file), Some(line)) =
                (map.get("file").and_then(Value::as_str), map.get("line").and_then(Value::as_u64))
            {
                records.push((file.to_owned(), line));
                return;
            }
            for (key, item) in map {
                let name = last(key, 1);
                if depth <= 1 && ABOUT_THE_RULE.contains(&name.as_str()) {
                    continue;
                }
                walk(item, &format!("{path}.{key}"), depth + 1, records, found, times);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, depth + 1, records, found, times)),
        Value::String(text) => text_seeds(&last(path, 1), text, found, times),
        Value::Number(number) => {
            let name = last(path, 1);
            if let Some(at) = number.as_f64().and_then(epoch)
                && ["time", "ts", "created", "date", "ms"].iter().any(|part| name.contains(part))
            {
                times.entry(time_rank(&name)).or_default().push(at);
            } else if matches!(name.as_str(), "pid" | "processid" | "ppid" | "parentprocessid" | "logonid") {
                found.insert(number.to_string(), EntityKind::Session);
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn text_seeds(
    name: &str,
    text: &str,
    found: &mut BTreeMap<String, EntityKind>,
    times: &mut BTreeMap<u8, Vec<Timestamp>>,
) {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        times.entry(time_rank(name)).or_default().push(at);
        return;
    }
    if text.len() >= 10
        && text.len() <= 30
        && let Ok(at) = format!("{}Z", text.replacen(' ', "T", 1)).parse::<Timestamp>()
    {
        times.entry(time_rank(name)).or_default().push(at);
        return;
    }
    let mut add = |text: &str, kind: EntityKind| {
        let text =
            text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')'));
        let text = text.trim_end_matches(['.', ':']);
        if text.len() >= 3 && text.len() <= 400 && !COMMON.contains(&text.to_ascii_lowercase().as_str()) {
            found.entry(text.to_owned()).or_insert(kind);
        }
    };
    if let Some(kind) = kind_by_name(name) {
        add(text, kind);
        let mut parts = text.split(['/', '\\']).filter(|p| p.len() >= 5);
        match kind {
            EntityKind::User => parts.for_each(|part| add(part, kind)),
            EntityKind::Host => short(text).into_iter().for_each(|part| add(part, kind)),
            EntityKind::File | EntityKind::Process => parts.next_back().into_iter().for_each(|part| add(part, kind)),
            _ => {}
        }
    }
    if matches!(name, "description" | "message" | "summary" | "details" | "reason") {
        let mut hits: Vec<&str> = done().find_iter(text).map(|hit| hit.as_str()).collect();
        hits.sort_by_key(|hit| !says_what(hit));
        hits.into_iter().take(6).for_each(|hit| add(hit, EntityKind::Other));
    }
    for (regex, kind) in patterns() {
        for hit in regex.find_iter(text) {
            add(hit.as_str(), *kind);
            if matches!(kind, EntityKind::File)
                && let Some(base) = hit.as_str().rsplit(['/', '\\']).next()
                && base.len() >= 4
            {
                add(base, EntityKind::File);
            }
        }
    }
}

/// A host name without its domain, as other hosts write it.
pub(super) fn short(host: &str) -> Option<&str> {
    let (name, _) = host.split_once('.')?;
    (name.len() >= 4 && host.parse::<std::net::IpAddr>().is_err()).then_some(name)
}

const COMMON: &[&str] = &[
    "root",
    "system",
    "admin",
    "user",
    "none",
    "null",
    "true",
    "false",
    "unknown",
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "sudo",
    "bash",
    "/bin",
    "/usr",
    "/usr/bin",
    "/usr/sbin",
    "/usr/share",
    "windows",
    "system32",
    "assumed-role",
    "tcp",
    "udp",
    "c:\\windows",
    "device",
    "login",
    "bin/sh",
    "/bin/sh",
    "sh",
];

fn kind_by_name(name: &str) -> Option<EntityKind> {
    Some(match name {
        "user" | "username" | "account" | "accountname" | "principal" | "actor" | "userprincipalname" | "subject"
        | "arn" | "targetuser" | "targetusername" | "email" | "login" | "loginuser" => EntityKind::User,
        "host" | "hostname" | "computer" | "computername" | "device" | "devicename" | "machine" | "node"
        | "nodename" | "agent" => EntityKind::Host,
        "process" | "image" | "processname" | "binary" | "exe" | "executable" | "parentimage" => EntityKind::Process,
        "file" | "filename" | "path" | "filepath" | "module" | "object" | "bucket" | "bucketname" | "key"
        | "resource" | "package" | "cwd" => EntityKind::File,
        "uid" | "fuid" | "sessionid" | "session" | "processguid" | "logonguid" | "execid" | "parentexecid"
        | "accesskeyid" | "flowid" | "correlationid" | "requestid" | "uuid" | "guid" | "conn" | "instanceid"
        | "serial" => EntityKind::Session,
        "domain" | "dnsname" | "query" | "sni" | "url" | "uri" | "servername" => EntityKind::Name,
        "command" | "commandline" | "cmdline" | "arguments" | "sub" | "name" | "useragent" => EntityKind::Other,
        // Sensors with several fields of a kind put a prefix before them.
        _ => {
            let ends: [(&[&str], EntityKind); 5] = [
                (&["accountname", "username", "accountupn", "principalemail"], EntityKind::User),
                (&["hostname", "computername", "computerdnsname", "devicename", "machinename"], EntityKind::Host),
                (&["processname", "processfilename", "processpath"], EntityKind::Process),
                (&["processguid"], EntityKind::Session),
                (&["commandline", "cmdline"], EntityKind::Other),
            ];
            ends.into_iter().find(|(ends, _)| ends.iter().any(|end| name.ends_with(end)))?.1
        }
    })
}

/// True if it has a separator or begins with a verb, so that it is more specific than two joined words.
fn says_what(name: &str) -> bool {
    const VERBS: &[&str] = &[
        "Add",
        "Assume",
        "Attach",
        "Create",
        "Delete",
        "Describe",
        "Detach",
        "Disable",
        "Enable",
        "Get",
        "Grant",
        "Insert",
        "Invoke",
        "List",
        "Modify",
        "New",
        "Put",
        "Remove",
        "Reset",
        "Revoke",
        "Run",
        "Set",
        "Start",
        "Stop",
        "Terminate",
        "Update",
    ];
    name.contains(['-', '_']) || VERBS.iter().any(|verb| name.starts_with(verb))
}

/// Names of actions in APIs and logs: `Set-Mailbox`, `DAEMON_END`, `PutBucketPolicy`.
#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
fn done() -> &'static Regex {
    static DONE: OnceLock<Regex> = OnceLock::new();
    const NAMES: &str = r"(?x) \b[A-Z][a-z]+-[A-Z][A-Za-z]{4,}\b | \b[A-Z][A-Z0-9]{2,}_[A-Z0-9_]{2,}\b
        | \b[A-Z][a-z]+(?:[A-Z][a-z]+){1,4}\b";
    DONE.get_or_init(|| Regex::new(NAMES).expect("names of actions are a regular expression"))
}

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
pub(crate) fn patterns() -> &'static [(Regex, EntityKind)] {
    static PATTERNS: OnceLock<Vec<(Regex, EntityKind)>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let all: [(&str, EntityKind); 10] = [
            (r"\b(?:\d{1,3}\.){3}\d{1,3}\b", EntityKind::Address),
            (r"\b[0-9a-fA-F]{32,64}\b", EntityKind::Hash),
            (r"\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}?", EntityKind::Session),
            (r"\bS-1-5-21-\d+-\d+-\d+-\d+\b", EntityKind::User),
            (r"\bi-[0-9a-f]{8,17}\b|\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b", EntityKind::Session),
            (r"[A-Za-z]:\\[^\s,;|<>]+", EntityKind::File),
            (r"(?:/[A-Za-z0-9._+@-]+){2,}", EntityKind::File),
            (r"\b[A-Za-z0-9_-]+\.(?:exe|dll|sys|ps1|vbs|js|hta|bat|cmd|msi|scr|lnk|docm?|xlsm?|zip|7z|rar|iso|jar|class|war|jsp|php|aspx?|py|sh|pl|elf|so|ko|bin|txt|conf|key|pem)\b", EntityKind::File),
            (r"\b[A-Za-z0-9+/]{24,}={0,2}(?:\s|$|\}|,|\|)", EntityKind::Other),
            (r"\b(?:[a-z0-9-]+\.)+(?:com|net|org|info|io|ru|cn|xyz|top|biz|co|local|lan|internal|onion)\b", EntityKind::Name),
        ];
        let compiled = |pattern| Regex::new(pattern).expect("an entity is a regular expression");
        all.into_iter().map(|(pattern, kind)| (compiled(pattern), kind)).collect()
    })
}

#[cfg(test)]
mod tests {
    use casebook_table::{blocks, expect_file};

    use super::*;

    #[test]
    fn the_events_time_is_what_the_alert_itself_says() {
        let of = |alert: &str| {
            event_time(&Alert::parse(alert.as_bytes()).unwrap()).map(|(at, zoned)| format!("{at} {zoned}"))
        };
        let at = Some("2024-01-02T03:04:05Z true".to_owned());
        assert_eq!(
            of(r#"{"id":"x","event_time":"2024-01-02 03:04:05"}"#),
            at.as_ref().map(|at| at.replace("true", "false"))
        );
        assert_eq!(of(r#"{"id":"x","event_time":1704164645}"#), at);
        assert_eq!(of(r#"{"id":"x","event_time":"2024-01-02T03:04:05Z","created_at":"2024-01-02T09:00:00Z"}"#), at);
        assert_eq!(of(r#"{"id":"x","time_utc":"2024-01-02 03:04:05"}"#), at);
        assert_eq!(of(r#"{"id":"x","timestamp":"2024-01-02T03:04:05Z"}"#), None);
        assert_eq!(
            of(r#"{"id":"x","created_at":"2024-01-02T09:00:00Z","record":{"event_time":"2024-01-02T03:04:05Z"}}"#),
            None
        );
    }

    #[test]
    fn what_an_alert_names_is_looked_for() {
        blocks(&expect_file!["seed.txt"], |_, alert| {
            let seeds = of(&Alert::parse(alert.as_bytes()).unwrap());
            let names: String = seeds.names.iter().map(|seed| format!("{}\n", seed.text)).collect();
            format!("{names}and {} times", seeds.times.len())
        });
    }
}
