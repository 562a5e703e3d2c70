//! The names in the alert by which its activity can be found in the evidence.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use casebook_protocol::{Alert, EntityKind, Timestamp};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use casebook_evidence::facet::{self, Facet, epoch, last, time_rank};

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

fn listed(words: &str, such: impl Fn(&str) -> bool) -> bool {
    words.split_whitespace().any(such)
}

pub(crate) fn of(alert: &Alert) -> Seeds {
    let mut seeds = Seeds::default();
    let mut found: BTreeMap<String, EntityKind> = BTreeMap::new();
    let body = alert.json();
    let mut times: BTreeMap<u8, Vec<Timestamp>> = BTreeMap::new();
    walk(&body, "", 0, &mut seeds.records, &mut found, &mut times);
    seeds.times = times.into_values().flatten().collect();
    seeds.times.dedup();
    seeds.of_event = event_time(alert).is_some();
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
                if depth <= 1 && listed(&TABLE.about_the_rule, |known| known == name) {
                    continue;
                }
                walk(item, &format!("{path}.{key}"), depth + 1, records, found, times);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, depth + 1, records, found, times)),
        Value::String(text) => text_seeds(path, text, found, times),
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
    path: &str,
    text: &str,
    found: &mut BTreeMap<String, EntityKind>,
    times: &mut BTreeMap<u8, Vec<Timestamp>>,
) {
    let (name, text) = (&last(path, 1), text.trim());
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
        if text.len() >= 3 && text.len() <= 400 && !listed(&TABLE.common, |known| text.eq_ignore_ascii_case(known)) {
            found.entry(text.to_owned()).or_insert(kind);
        }
    };
    if let Some(kind) = kind_by_name(path) {
        add(text, kind);
        let mut parts = text.split(['/', '\\']).filter(|p| p.len() >= 5);
        match kind {
            // Every account of a domain has its name.
            EntityKind::User => {
                let account = text.rsplit('\\').next().unwrap_or(text);
                account.split('/').filter(|part| part.len() >= 5).for_each(|part| add(part, kind));
                // Other systems know the account without its domain.
                account
                    .split_once('@')
                    .filter(|(own, _)| own.len() >= 5)
                    .into_iter()
                    .for_each(|(own, _)| add(own, kind));
            }
            EntityKind::Host => short(text).into_iter().for_each(|part| add(part, kind)),
            EntityKind::File | EntityKind::Process => parts.next_back().into_iter().for_each(|part| add(part, kind)),
            _ => {}
        }
    }
    if matches!(name.as_str(), "description" | "message" | "summary" | "details" | "reason" | "comment" | "comments") {
        let mut hits: Vec<&str> = done().find_iter(text).map(|hit| hit.as_str()).collect();
        hits.sort_by_key(|hit| !says_what(hit));
        hits.into_iter().take(6).for_each(|hit| add(hit, EntityKind::Other));
    }
    for (regex, kind) in patterns() {
        // The domain of a mail address says little.
        let apart = |hit: &regex::Match<'_>| !text.get(..hit.start()).is_some_and(|before| before.ends_with('@'));
        for hit in regex.find_iter(text).filter(apart) {
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
        let compiled = |text: &str| Regex::new(text).expect("an entity is a regular expression");
        TABLE.pattern.iter().map(|pattern| (compiled(&pattern.text), pattern.kind)).collect()
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
