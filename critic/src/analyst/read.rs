//! Reads the cited records: the role of the field with a value, the time of the record, and who could write the
//! field.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::Done;
use casebook_protocol::{Bearing, CallStatus, CheckedFinding, Citation, EntityKind, FindingDraft, Locator, Timestamp};
use casebook_trust::claim;
use serde_json::Value;

/// Seconds between the time of a finding and its records.
const MOMENT: i64 = 60;

/// The role of a field in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Source,
    Target,
    Parent,
    Program,
    User,
    Host,
}

/// Words between two names in a claim, and the roles of the first and the second name.
const READINGS: [(&str, &[Part], &[Part]); 4] = [
    ("` to `", &[Part::Source], &[Part::Target]),
    ("` started `", &[Part::Parent], &[Part::Program]),
    ("` as `", &[Part::Program], &[Part::User]),
    ("` on `", &[Part::Program, Part::User], &[Part::Host]),
];

/// Fields whose text the recorded party chooses.
const WRITTEN_BY_OTHERS: &str = "user_agent useragent referer referrer failed_user question query command_line commandline \
    branch subject uri";

/// By call and pointer.
pub(super) type Records = BTreeMap<(String, String), Record>;

/// The records that were looked up.
pub(super) fn records(done: &[Done]) -> Records {
    let record = |done: &Done| {
        let asked: Value = serde_json::from_str(&done.call.arguments).ok()?;
        let answer: Value = serde_json::from_str(&done.result).ok()?;
        let text = |key: &str| Some(asked.get(key)?.as_str()?.to_owned());
        Some(((text("call")?, text("pointer")?), Record::of(answer.pointer("/page/value")?)?))
    };
    done.iter().filter(|done| done.call.status == CallStatus::Answered).filter_map(record).collect()
}

#[derive(Debug, Default)]
pub(super) struct Record {
    time: Option<Timestamp>,
    text: String,
    fields: Vec<(String, String)>,
}

impl Record {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let raw = value.get("raw")?.as_str()?;
        let mut fields = Vec::new();
        match value.get("fields") {
            Some(known) => flatten("", known, &mut fields),
            None => flatten("", &serde_json::from_str(raw).unwrap_or_default(), &mut fields),
        }
        let time = value.get("time").and_then(Value::as_str).and_then(|t| t.parse().ok());
        Some(Self { time, text: value.to_string().to_lowercase(), fields })
    }

    /// True if a field in one of `parts` has exactly this name as its value.
    fn plays(&self, name: &str, parts: &[Part]) -> bool {
        let is = |value: &str| match name.strip_suffix('…') {
            Some(beginning) => value.starts_with(beginning),
            None => value == name,
        };
        self.fields.iter().any(|(key, value)| part(key).is_some_and(|p| parts.contains(&p)) && is(value))
    }

    fn holds(&self, name: &str) -> bool {
        let escaped = name.replace('\\', "\\\\");
        self.text.contains(&escaped) || self.fields.iter().any(|(_, value)| value.contains(name))
    }
}

fn flatten(path: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, item)| flatten(&format!("{path}.{key}"), item, fields)),
        Value::Array(items) => items.iter().for_each(|item| flatten(path, item, fields)),
        Value::String(text) => fields.push((path.to_lowercase(), text.to_lowercase())),
        Value::Number(number) => fields.push((path.to_lowercase(), number.to_string())),
        Value::Bool(_) | Value::Null => {}
    }
}

fn part(path: &str) -> Option<Part> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let named = |words: &[&str]| words.iter().any(|w| last.contains(w));
    let is = [
        (Part::Parent, path.contains("parent")),
        (Part::Source, named(&["src", "source", "orig", "client"])),
        (Part::Target, named(&["dst", "dest", "resp_h", "resp_p", "server"])),
        (Part::User, path.contains("user") || named(&["account", "actor", "login"])),
        (Part::Host, named(&["host", "computer", "node"])),
        (Part::Program, named(&["exe", "image", "cmd", "command", "process", "binary", "arguments"])),
    ];
    is.into_iter().find(|(_, it_is)| *it_is).map(|(part, _)| part)
}

/// The cited records that were read.
fn cited<'a>(draft: &FindingDraft, records: &'a Records) -> Vec<&'a Record> {
    let of = |citation: &Citation| match citation {
        Citation::Literal { call, at: Locator::Pointer(pointer), .. } => {
            records.get(&(call.as_str().to_owned(), pointer.clone()))
        }
        _ => None,
    };
    draft.citations.iter().filter_map(of).collect()
}

fn names(claim: &str) -> Vec<String> {
    claim::names(claim).filter(|n| !n.is_empty()).map(str::to_lowercase).collect()
}

/// What speaks against the finding when it is compared with its records, each with the highest score that it leaves.
/// `known`: names in valid findings.
pub(super) fn doubts(finding: &CheckedFinding, known: &BTreeSet<String>, records: &Records) -> Vec<(String, f64)> {
    let draft = &finding.finding.draft;
    let cited = cited(draft, records);
    let doubts = [
        (exchanged(draft, &cited), 0.2),
        (borrowed(draft, &cited), 0.4),
        (written_by_others(draft, &cited), 0.4),
        (unmarked(draft, known, &cited), 0.4),
        (too_often(draft, finding.checked.records().len()), 0.4),
    ];
    doubts.into_iter().filter_map(|(doubt, most)| Some((doubt?, most))).collect()
}

/// Two values that the claim confuses: in the record, each has the role of the other.
fn exchanged(draft: &FindingDraft, cited: &[&Record]) -> Option<String> {
    let claim = draft.claim.to_lowercase();
    let claim = claim.split("; with it").next().unwrap_or_default();
    let plays = |name: &str, parts: &[Part]| cited.iter().any(|r| r.plays(name, parts));
    READINGS.iter().find_map(|(words, left, right)| {
        let (before, after) = claim.split_once(words)?;
        let (first, second) = (before.rsplit('`').next()?, after.split('`').next()?);
        let swapped = plays(first, right) && !plays(first, left) && plays(second, left) && !plays(second, right);
        swapped.then(|| format!("the record has `{first}` and `{second}` in each other's place"))
    })
}

/// A claim whose names occur only in records of another time than it gives.
fn borrowed(draft: &FindingDraft, cited: &[&Record]) -> Option<String> {
    let at = draft.time.as_ref()?.at.as_second();
    let timed = cited.iter().filter_map(|record| Some((record.time?, record)));
    let (then, other): (Vec<_>, Vec<_>) = timed.partition(|(time, _)| (time.as_second() - at).abs() < MOMENT);
    let telling: Vec<String> = names(&draft.claim).into_iter().filter(|n| n.len() >= 4 && !n.ends_with('…')).collect();
    let hold = |all: &[(Timestamp, &&Record)], name: &str| all.iter().any(|(_, record)| record.holds(name));
    let elsewhere: Vec<&String> = telling.iter().filter(|n| !hold(&then, n) && hold(&other, n)).collect();
    let first = elsewhere.first()?;
    (!then.is_empty() && elsewhere.len() * 3 >= telling.len())
        .then(|| format!("`{first}` is recorded at another time than the finding gives"))
}

/// An exonerating claim whose names all come from fields that the attacker could choose.
fn written_by_others(draft: &FindingDraft, cited: &[&Record]) -> Option<String> {
    let names = names(&draft.claim);
    let others = |key: &str| WRITTEN_BY_OTHERS.split(' ').any(|word| key.contains(word));
    let by_others = |name: &String| {
        let fields = cited.iter().flat_map(|record| &record.fields);
        let mut within = fields.filter(|(_, value)| value.contains(name.trim_end_matches('…'))).peekable();
        within.peek().is_some() && within.all(|(key, _)| others(key))
    };
    (draft.bearing == Bearing::Exonerating && !names.is_empty() && names.iter().all(by_others))
        .then(|| "it rests on a field that the acting party could fill freely".to_owned())
}

/// A name that other findings know, in the plain text of the claim but in none of its records.
fn unmarked(draft: &FindingDraft, known: &BTreeSet<String>, cited: &[&Record]) -> Option<String> {
    // A name is missing only if all cited records were read.
    if cited.is_empty() || cited.len() < draft.citations.len() {
        return None;
    }
    let plain = claim::plain(&draft.claim);
    let words = plain.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'));
    let mut words = words.map(|w| w.trim_matches(['.', ':', '!', '?', '\'', '"']));
    let missing = words.find(|w| known.contains(*w) && !cited.iter().any(|r| r.holds(w)))?;
    Some(format!("it speaks of {missing}, which none of its records names"))
}

pub(super) fn known_names(findings: &[CheckedFinding]) -> BTreeSet<String> {
    let telling = |k: EntityKind| {
        matches!(k, EntityKind::User | EntityKind::Host | EntityKind::Process | EntityKind::File | EntityKind::Name)
    };
    let entities = findings.iter().filter(|f| f.checked.valid()).flat_map(|f| &f.finding.draft.entities);
    entities.filter(|e| telling(e.kind) && e.value.len() >= 4).map(|e| e.value.to_lowercase()).collect()
}

/// A claim that says "several times" but cites fewer records.
fn too_often(draft: &FindingDraft, records: usize) -> Option<String> {
    const SMALL: &str = "two three four five six seven eight nine ten";
    const LARGE: [(&str, usize); 4] = [("dozen", 12), ("dozens of", 24), ("hundreds of", 200), ("thousands of", 2000)];
    let plain = claim::plain(&draft.claim);
    let numbers = SMALL.split(' ').zip(2..).chain(LARGE).map(|(number, least)| (format!("{number} times"), least));
    let mut numbers = [("twice".to_owned(), 2)].into_iter().chain(numbers);
    let (words, least) = numbers.find(|(words, _)| plain.contains(words))?;
    let counted = !draft.citations.iter().all(|c| matches!(c, Citation::Literal { .. }));
    (records < least && !counted).then(|| format!("it says \"{words}\" and cites {records} records"))
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{CallId, EventTime, FindingKind, Precision, TimeBasis};
    use serde_json::json;

    use super::*;

    fn records() -> Records {
        let first = json!({"file": "a", "line": 1, "raw": "{}", "time": "2024-01-01T10:00:00Z", "fields":
            {"src_ip": "10.0.0.1", "dest_ip": "10.0.0.2", "process.parent.exe": "/bin/sh", "process.exe": "/bin/id",
             "user.name": "mara", "host": "web-1", "http.user_agent": "approved by secops"}});
        let second = json!({"file": "a", "line": 2, "raw": "later", "time": "2024-01-01T12:00:00Z", "fields": {}});
        let read =
            |place: usize, value: &Value| (("c.0".to_owned(), format!("/records/{place}")), Record::of(value).unwrap());
        [read(0, &first), read(1, &second)].into_iter().collect()
    }

    fn finding(claim: &str, bearing: Bearing, time: &str, cited: &[usize]) -> FindingDraft {
        let cite = |place: &usize| Citation::Literal {
            call: CallId::new("c.0").unwrap(),
            at: Locator::Pointer(format!("/records/{place}")),
            quote: "xyz".into(),
        };
        let time = EventTime {
            at: time.parse().unwrap(),
            until: None,
            precision: Precision::Second,
            basis: TimeBasis::Record,
            field: String::new(),
        };
        FindingDraft {
            time: Some(time),
            bearing,
            citations: cited.iter().map(cite).collect(),
            ..FindingDraft::neutral(FindingKind::Occurrence, claim.into())
        }
    }

    fn read<T>(draft: &FindingDraft, reading: impl Fn(&FindingDraft, &[&Record]) -> T) -> T {
        reading(draft, &cited(draft, &records()))
    }

    const NOW: &str = "2024-01-01T10:00:00Z";

    #[test]
    fn values_in_each_others_place_are_seen() {
        let swapped = |claim: &str| read(&finding(claim, Bearing::Neutral, NOW, &[0]), exchanged).is_some();
        for claim in ["from `10.0.0.2` to `10.0.0.1`", "`/bin/id` started `/bin/sh`", "ran `mara` as `/bin/id`"] {
            assert!(swapped(claim), "{claim}");
        }
        for claim in ["from `10.0.0.1` to `10.0.0.2`", "`/bin/sh` started `/bin/id` as `mara` on `web-1`", "`x` to `y`"]
        {
            assert!(!swapped(claim), "{claim}");
        }
    }

    #[test]
    fn what_plain_words_add_is_seen() {
        let known: BTreeSet<String> = ["root", "mara"].map(str::to_owned).into();
        let unmarked = |draft: &_, cited: &[&_]| unmarked(draft, &known, cited);
        let of = |claim: &str| read(&finding(claim, Bearing::Neutral, NOW, &[0]), unmarked);
        assert!(of("ran `/bin/id` as root").is_some());
        assert!(of("ran `/bin/id` as mara, on purpose").is_none());
        let often = |claim: &str| too_often(&finding(claim, Bearing::Neutral, NOW, &[0]), 1);
        assert!(often("`mara` tried it a dozen times").is_some());
        assert!(often("`mara` tried it").is_none());
    }

    #[test]
    fn a_borrowed_time_is_seen() {
        let at = |time| read(&finding("`mara` ran `/bin/id`", Bearing::Neutral, time, &[0, 1]), borrowed);
        assert!(at("2024-01-01T12:00:00Z").is_some());
        assert!(at(NOW).is_none());
    }

    #[test]
    fn an_excuse_that_its_subject_wrote_is_seen() {
        let of = |claim: &str, bearing| read(&finding(claim, bearing, NOW, &[0]), written_by_others);
        assert!(of("`secops` approved it", Bearing::Exonerating).is_some());
        assert!(of("`secops` approved it", Bearing::Incriminating).is_none());
        assert!(of("`secops` approved it for `mara`", Bearing::Exonerating).is_none());
    }
}
