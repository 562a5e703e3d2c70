//! Sentences about a record, from its own values and the table `sentences.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use casebook_protocol::one_line;
use regex::Regex;
use serde::Deserialize;

use super::rec::{Rec, Rule};
use casebook_evidence::facet::{Class, Facet, event_id, last};

/// Characters of one value.
const VALUE: usize = 160;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Words that begin with a capital letter inside a sentence, too.
    names: Vec<String>,
    sentence: Vec<Sentence>,
    logon: BTreeMap<String, String>,
    /// By the name of the provider, the meaning of each event number.
    events: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    #[serde(default)]
    class: Vec<Class>,
    #[serde(default)]
    event: Vec<String>,
    outcome: Option<String>,
    #[serde(default)]
    bare: bool,
    text: String,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("sentences.toml")).expect("sentences.toml is valid"));

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static PARTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[[^\]]*\]|\{[^}]*\}|[^\[{]+").expect("the parts of a sentence are a pattern"));

impl Sentence {
    fn fits(&self, rec: &Rec) -> bool {
        let event = || event_id(&rec.fields).is_some_and(|id| self.event.iter().any(|known| known == id));
        (self.class.is_empty() || self.class.contains(&rec.class()))
            && (self.event.is_empty() || event())
            && self.outcome.as_ref().is_none_or(|outcome| outcome_of(rec) == Some(outcome))
            && (!self.bare || bare(rec))
    }
}

/// The record says little beside a text.
fn bare(rec: &Rec) -> bool {
    let action = rec.facets.get(Facet::Action);
    rec.fields.len() <= 3 || action.is_none_or(|action| action.bytes().all(|b| b.is_ascii_digit()))
}

fn outcome_of(rec: &Rec) -> Option<&str> {
    const DENIED: [&str; 5] = ["not in sudoers", "not allowed", "incorrect password", "password is required", "denied"];
    let said = rec.field(&["outcome"]).map(str::to_ascii_lowercase).unwrap_or_default();
    if DENIED.iter().any(|so| said.contains(so)) { Some("failure") } else { rec.facets.get(Facet::Outcome) }
}

/// What the event number of a Windows event means.
fn event(rec: &Rec) -> Option<&'static str> {
    let id = event_id(&rec.fields)?;
    let head = || rec.raw.get(..4096.min(rec.raw.len())).unwrap_or(&rec.raw);
    let known = TABLE.events.iter().filter(|(provider, _)| provider.is_empty() || head().contains(provider.as_str()));
    known.rev().find_map(|(_, events)| events.get(id)).map(String::as_str)
}

/// Puts a value in backquotes, on one line. The value ends at its first backquote. A cut value ends with `…`.
pub(super) fn quote(value: &str) -> String {
    let clean = value.split('`').next().unwrap_or_default();
    format!("`{}`", one_line(clean, VALUE))
}

/// The value of a name in a sentence.
fn value(rec: &Rec, name: &str) -> Option<String> {
    name.split('|').find_map(|name| {
        if name == "event" {
            return event(rec).map(str::to_owned);
        }
        if name == "logon" {
            return TABLE.logon.get(rec.field(&["logontype"])?).cloned();
        }
        let facet = serde_json::from_value::<Facet>(serde_json::Value::String(name.to_owned())).ok();
        let found = match facet {
            Some(facet) => rec.facets.get(facet),
            None if name.contains('.') => {
                rec.fields.iter().find(|(path, _)| last(path, 2) == name).map(|(_, v)| v.as_str())
            }
            None => rec.field(&[name]),
        };
        let usable = |v: &&str| !v.trim_matches([' ', '"', '\\']).is_empty() && *v != "-";
        found.filter(usable).map(|v| quote(v.trim_matches([' ', '"'])))
    })
}

/// None if a value outside of brackets is missing. `whole`: with the parts in brackets.
fn written(rec: &Rec, text: &str, whole: bool) -> Option<String> {
    let mut out = String::new();
    for part in PARTS.find_iter(text).map(|part| part.as_str()) {
        if let Some(optional) = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) {
            out.push_str(&written(rec, optional, whole).filter(|_| whole).unwrap_or_default());
        } else if let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            out.push_str(&value(rec, name)?);
        } else {
            out.push_str(part);
        }
    }
    Some(out)
}

/// What happened, as far as the evidence supports it.
fn sentence(rec: &Rec, supported: &dyn Fn(&str) -> bool) -> String {
    let fitting = TABLE.sentence.iter().filter(|sentence| sentence.fits(rec));
    let mut texts = fitting.flat_map(|s| [true, false].map(|whole| written(rec, &s.text, whole))).flatten();
    let recorded = || Some(format!("recorded: {}", quote(&rec.raw))).filter(|text| supported(text));
    texts.find(|text| supported(text)).or_else(recorded).unwrap_or_else(|| "a record of the alerted activity".into())
}

/// What happened, and what the rule says of it. `supported` says whether the evidence states everything in a text. Parts
/// without support are left out.
pub(super) fn claim(main: &Rec, others: &[&Rec], shown: Option<&Rule>, supported: &dyn Fn(&str) -> bool) -> String {
    let mut text = sentence(main, supported);
    let mut seen = vec![label(main)];
    for label in others.iter().map(|other| label(other)) {
        if !label.is_empty() && !seen.contains(&label) && seen.len() < 4 {
            let more = format!("{text}; with it {label}");
            if supported(&more) && more.len() <= 600 {
                text = more;
            }
            seen.push(label);
        }
    }
    if let Some(rule) = shown {
        let title = rule.title.replace('`', "'");
        let more = format!("{text}: {}", lower_first(&title));
        if supported(&more) {
            text = more;
        }
    }
    begun(&text, char::to_uppercase)
}

/// That a person gave the command of the record.
pub(super) fn given(rec: &Rec, user: &str) -> String {
    let command = rec.facets.get(Facet::Command).or_else(|| rec.facets.get(Facet::Process)).unwrap_or_default();
    // Other logs have the command that `sudo` runs.
    let (command, with) = match command.strip_prefix("sudo ") {
        Some(command) if !command.starts_with('-') => (command, " with `sudo`"),
        _ => (command, ""),
    };
    let on = value(rec, "host").map(|host| format!(" on {host}")).unwrap_or_default();
    format!("{} ran {}{with}{on}", quote(user), quote(command))
}

/// The text with its first letter in another case.
fn begun<I: Iterator<Item = char>>(text: &str, case: impl FnMut(char) -> I) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(case).chain(chars).collect()
}

/// A title inside a sentence, unless it begins with a name.
fn lower_first(title: &str) -> String {
    let mut chars = title.chars();
    let plain = chars.next().is_some_and(char::is_uppercase) && chars.next().is_some_and(char::is_lowercase);
    let name = title.split_whitespace().next().is_some_and(|word| TABLE.names.iter().any(|name| name == word));
    if plain && !name { begun(title, char::to_lowercase) } else { title.to_owned() }
}

/// The record in a few words, beside another one.
fn label(rec: &Rec) -> String {
    let order: &[Facet] = match rec.class() {
        Class::ProcessStart => &[Facet::Command, Facet::Process],
        Class::NetworkConnection | Class::TlsSession => &[Facet::DstIp],
        Class::HttpRequest => &[Facet::Url],
        Class::DnsQuery => &[Facet::DomainName],
        _ => &[Facet::Action, Facet::Object, Facet::Command],
    };
    // The number of an event says nothing beside another record.
    let telling = |f: &Facet| rec.facets.get(*f).filter(|v| !v.is_empty() && !v.bytes().all(|b| b.is_ascii_digit()));
    order.iter().find_map(telling).map(quote).unwrap_or_default()
}

/// Records with the same text repeat an activity. With `family`, they are of one kind, with different details.
pub(super) fn kind_of(rec: &Rec, family: bool) -> String {
    let facet = |f: Facet| shape(rec.facets.get(f).unwrap_or_default());
    let all = |facets: &[Facet]| facets.iter().map(|f| facet(*f)).collect::<Vec<_>>().join("|");
    let rule = rec.shows.first().map_or("", |rule| &rule.rule);
    let what = match (rec.class(), family) {
        (Class::ProcessStart, true) => all(&[Facet::Process, Facet::Parent]),
        (Class::ProcessStart, false) => all(&[Facet::Process, Facet::Command]),
        (Class::HttpRequest, true) => all(&[Facet::SrcIp, Facet::DstIp, Facet::HttpMethod]),
        (Class::HttpRequest, false) => all(&[Facet::DstIp, Facet::HttpMethod, Facet::Url, Facet::HttpStatus]),
        (Class::NetworkConnection | Class::TlsSession, _) => all(&[Facet::SrcIp, Facet::DstIp, Facet::DstPort]),
        // From each address the first sign-in counts.
        (Class::Authentication, true) if rec.facets.get(Facet::Outcome) != Some("failure") => {
            all(&[Facet::Action, Facet::SrcIp])
        }
        (Class::DnsQuery, true) => all(&[Facet::SrcIp]),
        (Class::DnsQuery, false) => all(&[Facet::DomainName]),
        (
            Class::FileCreate
            | Class::FileDelete
            | Class::ProcessAccess
            | Class::ImageLoad
            | Class::RegistryChange
            | Class::FileRead,
            true,
        ) => all(&[Facet::Process]),
        (_, true) if rec.facets.get(Facet::Action).is_none() => words(rec),
        _ if rec.facets.get(Facet::Action).is_none() => shape(&rec.raw.chars().take(120).collect::<String>()),
        // The same verb about another kind of thing is another act.
        (_, true) => all(&[Facet::Action, Facet::Outcome]) + rec.field(&["resource"]).unwrap_or_default(),
        (_, false) => all(&[Facet::Action, Facet::Object, Facet::Outcome]),
    };
    format!("{}|{:?}|{}|{what}|{rule}", rec.source, rec.class(), facet(Facet::User))
}

/// The words of a sentence without the parts that vary.
fn words(rec: &Rec) -> String {
    let text = rec.field(&["message"]).unwrap_or(&rec.raw);
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | ',' | ';' | '='));
    let words = words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    words.take(24).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// A text in lower case with one `#` for each number.
fn shape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if !(c == '#' && out.ends_with('#')) {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use casebook_protocol::Bearing;

    use super::*;

    fn said(fields: &[(&str, &str)]) -> String {
        claim(&Rec::with(fields), &[], None, &|_| true)
    }

    #[test]
    fn values_of_a_sentence_are_facets_fields_or_meanings() {
        for sentence in &TABLE.sentence {
            for part in PARTS.find_iter(&sentence.text).map(|part| part.as_str()) {
                assert_eq!(part.matches('[').count(), part.matches(']').count(), "{}", sentence.text);
                assert_eq!(part.matches('{').count(), part.matches('}').count(), "{}", sentence.text);
            }
        }
    }

    #[test]
    fn records_of_many_logs_are_told_in_plain_words() {
        let sysmon = ("Channel", "Microsoft-Windows-Sysmon/Operational");
        assert_eq!(
            said(&[
                sysmon,
                ("EventID", "1"),
                ("Image", "C:\\a.exe"),
                ("CommandLine", "a -x"),
                ("ParentImage", "C:\\b.exe"),
                ("User", "CORP\\mara"),
                ("Computer", "PC1")
            ]),
            "`C:\\b.exe` started `a -x` as `CORP\\mara` on `PC1`"
        );
        assert_eq!(
            said(&[
                ("EventID", "4624"),
                ("LogonType", "3"),
                ("TargetUserName", "mara"),
                ("IpAddress", "192.0.2.7"),
                ("Computer", "PC1")
            ]),
            "Sign-in over the network of `mara` from `192.0.2.7` on `PC1`"
        );
        assert_eq!(
            said(&[("method", "GET"), ("url", "/a?b"), ("src_ip", "192.0.2.7"), ("status", "404")]),
            "HTTP request `GET` `/a?b` from `192.0.2.7`, answered `404`"
        );
        assert_eq!(
            said(&[
                ("eventName", "PutObject"),
                ("eventSource", "s3.amazonaws.com"),
                ("userIdentity.arn", "arn:x"),
                ("errorCode", "AccessDenied"),
                ("awsRegion", "r")
            ]),
            "`PutObject` as `arn:x`, which failed"
        );
        assert_eq!(said(&[("message", "kernel: hello")]), "Recorded: `kernel: hello`");
    }

    #[test]
    fn part_that_the_evidence_does_not_state_is_left_out() {
        let rec = Rec::with(&[("method", "GET"), ("url", "/a"), ("src_ip", "192.0.2.7")]);
        let rule = Rule {
            rule: "x".into(),
            title: "Request of a scanner".into(),
            bearing: Bearing::Incriminating,
            weight: casebook_protocol::Weight::Weak,
            technique: None,
            look_next: None,
        };
        let told = |unknown: &'static str| claim(&rec, &[], Some(&rule), &move |text| !text.contains(unknown));
        assert_eq!(told("*"), "HTTP request `GET` `/a` from `192.0.2.7`: request of a scanner");
        assert_eq!(told("192"), "HTTP request `GET` `/a`: request of a scanner");
        assert_eq!(told("scanner"), "HTTP request `GET` `/a` from `192.0.2.7`");
    }
}
