//! The names in the alert by which its activity can be found in the evidence.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use casebook_protocol::{Alert, EntityKind, Timestamp};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use casebook_evidence::facet::{self, Facet, epoch, last, time_rank};
use casebook_evidence::programs::file_name;

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
    /// The first time is that of the event, not that of the alert.
    pub(crate) of_event: bool,
    pub(crate) records: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    about_the_rule: String,
    common: String,
    verbs: String,
    actions: String,
    kinds: BTreeMap<EntityKind, String>,
    ends: BTreeMap<EntityKind, String>,
    pattern: Vec<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    kind: EntityKind,
    text: String,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("names.toml")).expect("names.toml is valid"));

/// Names of actions in APIs and logs.
static ACTIONS: LazyLock<Regex> = LazyLock::new(|| pattern(&TABLE.actions));

/// What entities look like.
pub(super) static PATTERNS: LazyLock<Vec<(Regex, EntityKind)>> =
    LazyLock::new(|| TABLE.pattern.iter().map(|known| (pattern(&known.text), known.kind)).collect());

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("names.toml has regular expressions")
}

fn listed(words: &str, such: impl Fn(&str) -> bool) -> bool {
    words.split_whitespace().any(such)
}

pub(crate) fn of(alert: &Alert) -> Seeds {
    let mut found = Found::default();
    found.walk(&alert.json(), "", 0);
    let mut times: Vec<Timestamp> = found.times.into_values().flatten().collect();
    times.dedup();
    let mut names: Vec<Seed> = found.names.into_iter().map(|(text, kind)| Seed { text, kind }).collect();
    let rank = |kind: EntityKind| SPECIFIC_FIRST.iter().position(|known| *known == kind);
    names.sort_by_key(|seed| (rank(seed.kind), Reverse(seed.text.len()), seed.text.clone()));
    Seeds { names, times, of_event: event_time(alert).is_some(), records: found.records }
}

/// A session identifies more than a host.
const SPECIFIC_FIRST: [EntityKind; 9] = [
    EntityKind::Session,
    EntityKind::Hash,
    EntityKind::File,
    EntityKind::Address,
    EntityKind::Name,
    EntityKind::Process,
    EntityKind::User,
    EntityKind::Other,
    EntityKind::Host,
];

/// The time of the event at the top of the alert, and whether it has a zone.
pub(super) fn event_time(alert: &Alert) -> Option<(Timestamp, bool)> {
    // `timestamp` is missing, because it is often the time of the alert.
    const NAMES: &[&str] =
        &["eventtime", "eventtimestamp", "eventtimeepoch", "eventtimeutc", "occurredat", "timeutc", "utctime"];
    let body = alert.json();
    let (key, value) = body.as_object()?.iter().find(|(key, _)| NAMES.contains(&last(key, 1).as_str()))?;
    let mut found = Found::default();
    found.walk(value, &format!(".{key}"), 1);
    let zoned =
        value.as_str().is_none_or(|text| text.trim().parse::<Timestamp>().is_ok() || last(key, 1).contains("utc"));
    found.times.into_values().flatten().next().map(|at| (at, zoned))
}

/// The names and values of an alert.
#[derive(Default)]
struct Found {
    records: Vec<(String, u64)>,
    names: BTreeMap<String, EntityKind>,
    /// The likeliest times of the event first.
    times: BTreeMap<u8, Vec<Timestamp>>,
}

impl Found {
    fn walk(&mut self, value: &Value, path: &str, depth: u8) {
        match value {
            _ if depth > 12 => {}
            Value::Object(map) => {
                let pointer = map.get("file").and_then(Value::as_str).zip(map.get("line").and_then(Value::as_u64));
                if let Some((file, line)) = pointer {
                    self.records.push((file.to_owned(), line));
                    return;
                }
                let about_the_rule = |key: &str| listed(&TABLE.about_the_rule, |known| known == last(key, 1));
                for (key, item) in map.iter().filter(|(key, _)| depth > 1 || !about_the_rule(key)) {
                    self.walk(item, &format!("{path}.{key}"), depth + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, path, depth + 1)),
            Value::String(text) => self.text(path, text.trim()),
            Value::Number(number) => {
                let name = last(path, 1);
                let of_time = ["time", "ts", "created", "date", "ms"].iter().any(|part| name.contains(part));
                if let Some(at) = number.as_f64().and_then(epoch).filter(|_| of_time) {
                    self.times.entry(time_rank(&name)).or_default().push(at);
                } else if matches!(name.as_str(), "pid" | "processid" | "ppid" | "parentprocessid" | "logonid") {
                    self.names.insert(number.to_string(), EntityKind::Session);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn text(&mut self, path: &str, text: &str) {
        let name = last(path, 1);
        let without_zone = || format!("{}Z", text.replacen(' ', "T", 1)).parse().ok();
        let time = text.parse().ok().or_else(|| without_zone().filter(|_| (10..=30).contains(&text.len())));
        if let Some(at) = time {
            self.times.entry(time_rank(&name)).or_default().push(at);
            return;
        }
        if let Some(kind) = kind_by_name(path) {
            self.add(text, kind);
            match kind {
                // Every account of a domain has the name of the domain. Other systems know the account without it.
                EntityKind::User => {
                    let account = text.rsplit('\\').next().unwrap_or(text);
                    let own = account.split_once('@').map(|(own, _)| own);
                    account.split('/').chain(own).filter(|part| part.len() >= 5).for_each(|part| self.add(part, kind));
                }
                EntityKind::Host => short(text).into_iter().for_each(|part| self.add(part, kind)),
                EntityKind::File | EntityKind::Process => {
                    let last = text.split(['/', '\\']).rfind(|part| part.len() >= 5);
                    last.into_iter().for_each(|part| self.add(part, kind));
                }
                _ => {}
            }
        }
        if matches!(&*name, "description" | "message" | "summary" | "details" | "reason" | "comment" | "comments") {
            let mut hits: Vec<&str> = ACTIONS.find_iter(text).map(|hit| hit.as_str()).collect();
            hits.sort_by_key(|hit| !says_what(hit));
            hits.into_iter().take(6).for_each(|hit| self.add(hit, EntityKind::Other));
        }
        for (regex, kind) in &*PATTERNS {
            // The domain of a mail address says little.
            let of_mail = |at: usize| text.get(..at).is_some_and(|before| before.ends_with('@'));
            for hit in regex.find_iter(text).filter(|hit| !of_mail(hit.start())) {
                self.add(hit.as_str(), *kind);
                if *kind == EntityKind::File && file_name(hit.as_str()).len() >= 4 {
                    self.add(file_name(hit.as_str()), EntityKind::File);
                }
            }
        }
    }

    fn add(&mut self, text: &str, kind: EntityKind) {
        let around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')');
        let text = text.trim_matches(around).trim_end_matches(['.', ':']);
        let common = || listed(&TABLE.common, |known| text.eq_ignore_ascii_case(known));
        if (3..=400).contains(&text.len()) && !common() {
            self.names.entry(text.to_owned()).or_insert(kind);
        }
    }
}

/// A host name without its domain, as other hosts write it.
pub(super) fn short(host: &str) -> Option<&str> {
    let (name, _) = host.split_once('.')?;
    (name.len() >= 4 && host.parse::<std::net::IpAddr>().is_err()).then_some(name)
}

/// What the values of a field are, by its name.
fn kind_by_name(path: &str) -> Option<EntityKind> {
    let name = last(path, 1);
    let find = |table: &BTreeMap<EntityKind, String>, such: &dyn Fn(&str) -> bool| {
        table.iter().find(|(_, words)| listed(words, such)).map(|(kind, _)| *kind)
    };
    let of_facet = |parts| match facet::facet_of(path, parts)? {
        Facet::User => Some(EntityKind::User),
        Facet::Host => Some(EntityKind::Host),
        Facet::Process | Facet::Parent => Some(EntityKind::Process),
        Facet::Object => Some(EntityKind::File),
        Facet::SrcIp | Facet::DstIp => Some(EntityKind::Address),
        Facet::DomainName | Facet::Url => Some(EntityKind::Name),
        Facet::Command | Facet::ParentCommand | Facet::UserAgent => Some(EntityKind::Other),
        _ => None,
    };
    of_facet(2)
        .or_else(|| find(&TABLE.kinds, &|known| known == name))
        .or_else(|| of_facet(1))
        .or_else(|| find(&TABLE.ends, &|end| name.ends_with(end)))
}

/// True if it has a separator or begins with a verb, so that it is more specific than two joined words.
fn says_what(name: &str) -> bool {
    name.contains(['-', '_']) || listed(&TABLE.verbs, |verb| name.starts_with(verb))
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
