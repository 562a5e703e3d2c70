//! A record with what links it to others.

use std::collections::BTreeMap;

use casebook_protocol::{RecordRef, Timestamp, one_line};

use super::kind::script;
use crate::facet::{Class, Facet, Facets, last, number, process_keys};
use crate::query::Hit;
use crate::{Catalog, Record};

/// Begins the key of a session.
pub(super) const SESSION: &str = "session:";

const WHAT_MAX: usize = 80;

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) record: RecordRef,
    /// Nanoseconds since 1970.
    pub(super) at: Option<i64>,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) facets: Facets,
    /// Keys of the acting process and session.
    pub(super) own: Vec<String>,
    pub(super) parents: Vec<String>,
}

impl Row {
    pub(super) fn of(catalog: &Catalog, hit: &Hit<'_>) -> Option<Self> {
        let (source, _) = catalog.inner(hit.entry.source).ok()?;
        let record = RecordRef {
            source: source.id.clone(),
            file: source.file.clone(),
            line: u64::try_from(hit.entry.line).unwrap_or(0),
        };
        let text = String::from_utf8_lossy(hit.raw).into_owned();
        Some(Self::new(record, hit.entry.time, hit.parsed(), text))
    }

    pub(super) fn read(record: &Record) -> Self {
        let place = RecordRef { source: record.source.clone(), file: record.file.clone(), line: record.line };
        let at = record.time.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        Self::new(place, at, record.fields(), record.text())
    }

    fn new(record: RecordRef, at: Option<i64>, list: Vec<(String, String)>, text: String) -> Self {
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        for (path, value) in list {
            // Of a field that is there twice with different values, either may be forged.
            let known = fields.entry(path).or_insert_with(|| value.clone());
            if *known != value {
                known.push('\n');
                known.push_str(&value);
            }
        }
        let facets = Facets::read(&fields, &text);
        let (mut own, parents) = process_keys(&fields, &facets);
        own.extend(sessions(&fields));
        Self { record, at, fields, facets, own, parents }
    }

    /// What is one act: the record, or the event of several lines.
    pub(super) fn act(&self) -> (String, u64, String) {
        let file = self.record.file.clone();
        match (self.fields.get("audit.time"), self.fields.get("audit.serial")) {
            (Some(time), Some(serial)) => (file, 0, format!("{time}:{serial}")),
            _ => (file, self.record.line, String::new()),
        }
    }

    pub(super) fn class(&self) -> Class {
        self.facets.class.unwrap_or(Class::Other)
    }

    pub(super) fn starts(&self) -> bool {
        self.class() == Class::ProcessStart
    }

    pub(super) fn is_any(&self, keys: &[String]) -> bool {
        self.own.iter().any(|key| keys.contains(key))
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.fields.values().any(|value| value.trim().eq_ignore_ascii_case(id))
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.facets.get(Facet::Host)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        Timestamp::from_nanosecond(self.at?.into()).ok()
    }

    pub(super) fn field(&self, wanted: &[&str]) -> Option<&str> {
        let named = |(path, value): &(&String, &String)| wanted.contains(&last(path, 1).as_str()) && !value.is_empty();
        self.fields.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// False if the two belong to different sign-ins, as far as the sensor writes it.
    pub(super) fn may_share_login(&self, other: &Self) -> bool {
        let differ = |name: &str| match (self.field(&[name]), other.field(&[name])) {
            (Some(one), Some(two)) => one != two,
            _ => false,
        };
        !["session", "ses", "logonid", "auid"].into_iter().any(differ)
    }

    pub(super) fn command(&self) -> Option<&str> {
        self.facets.get(Facet::Command)
    }

    pub(super) fn hashes(&self) -> Vec<String> {
        let hash = |value: &&str| matches!(value.len(), 32 | 40 | 64) && value.bytes().all(|b| b.is_ascii_hexdigit());
        let parts = self.fields.values().flat_map(|value| value.split(|c: char| !c.is_ascii_alphanumeric()));
        parts.filter(hash).map(str::to_ascii_lowercase).collect()
    }

    /// The path of its program.
    pub(super) fn program(&self) -> Option<&str> {
        self.facets.get(Facet::Process).filter(|path| path.contains(['/', '\\']))
    }

    /// The script that it runs.
    pub(super) fn script(&self) -> Option<&str> {
        script(self.facets.get(Facet::Process).unwrap_or_default(), self.command()?)
    }

    /// What was done, cut and without characters that a terminal or a model could take for more than a name.
    pub(super) fn what(&self) -> String {
        let facet = |facet| self.facets.get(facet);
        let text = match self.class() {
            Class::ProcessStart => self.command().or_else(|| facet(Facet::Process)),
            _ => facet(Facet::Object).or_else(|| facet(Facet::Action)).or_else(|| facet(Facet::DstIp)),
        };
        let text = text.or_else(|| facet(Facet::Process)).unwrap_or_default();
        let first = text.split_whitespace().take(1).chain(text.split_whitespace().skip(1).take(3));
        let words: Vec<String> = first.map(|word| plain(word.trim_matches(['"', '\'']))).collect();
        one_line(&words.join(" "), WHAT_MAX)
    }
}

fn plain(word: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '\\' | '.' | '_' | '-' | ':' | '@' | '=' | '+');
    word.chars().take(60).map(|c| if kept(c) { c } else { '?' }).collect()
}

/// Sessions and keys under which calls of a service were made.
fn sessions(fields: &BTreeMap<String, String>) -> impl Iterator<Item = String> + '_ {
    let named = |path: &str| {
        matches!(
            last(path, 1).as_str(),
            "accesskeyid" | "externalsessionid" | "uniquetokenidentifier" | "hashedtoken" | "sessioncontextid"
        )
    };
    let long = |value: &str| value.len() >= 8 && value.bytes().any(|b| b.is_ascii_digit());
    fields.iter().filter(move |(path, value)| named(path) && long(value)).map(|(_, v)| format!("{SESSION}{v}"))
}

/// False if the text has the term, a number, only as a part of a longer word.
pub(super) fn may_name(text: &[u8], term: &str) -> bool {
    let word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    !term.bytes().all(|b| b.is_ascii_digit())
        || memchr::memmem::find_iter(text, term)
            .any(|at| !word(at.checked_sub(1).and_then(|at| text.get(at))) && !word(text.get(at + term.len())))
}

/// The texts by which records with this key are found.
pub(super) fn terms_of(key: &str) -> Vec<String> {
    if let Some(session) = key.strip_prefix(SESSION) {
        return vec![session.to_owned()];
    }
    let Some((_, id)) = key.rsplit_once('#') else { return vec![key.to_owned()] };
    match number(id) {
        Some(number) => vec![number.to_string(), format!("0x{number:x}")],
        None => vec![id.to_owned()],
    }
}
