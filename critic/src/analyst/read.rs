//! Reads the cited records: the role of the field with a value, the time of the record, and who could write the
//! field.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{Bearing, CheckedFinding, Citation, EntityKind, Locator, Timestamp};
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

#[derive(Debug, Default)]
pub(super) struct Record {
    time: Option<Timestamp>,
    text: String,
    fields: Vec<(String, String)>,
}

impl Record {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let raw = value.get("raw")?.as_str()?;
        let mut record = Self {
            time: value.get("time").and_then(Value::as_str).and_then(|t| t.parse().ok()),
            text: value.to_string().to_lowercase(),
            fields: Vec::new(),
        };
        match (value.get("fields"), serde_json::from_str::<Value>(raw)) {
            (Some(fields), _) => flatten("", fields, &mut record.fields),
            (None, Ok(inner)) => flatten("", &inner, &mut record.fields),
            (None, Err(_)) => {}
        }
        Some(record)
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
fn cited<'a>(finding: &CheckedFinding, records: &'a Records) -> Vec<&'a Record> {
    let of = |citation: &Citation| match citation {
        Citation::Literal { call, at: Locator::Pointer(pointer), .. } => {
            records.get(&(call.as_str().to_owned(), pointer.clone()))
        }
        _ => None,
    };
    finding.finding.draft.citations.iter().filter_map(of).collect()
}

fn names(claim: &str) -> Vec<String> {
    claim.split('`').skip(1).step_by(2).filter(|n| !n.is_empty()).map(str::to_lowercase).collect()
}

/// Finds two values that the claim confuses: in the record, each has the role of the other.
pub(super) fn exchanged(finding: &CheckedFinding, records: &Records) -> Option<String> {
    let claim = finding.finding.draft.claim.to_lowercase();
    let claim = claim.split("; with it").next().unwrap_or_default();
    let cited = cited(finding, records);
    let plays = |name: &str, parts: &[Part]| cited.iter().any(|r| r.plays(name, parts));
    READINGS.iter().find_map(|(words, left, right)| {
        let (before, after) = claim.split_once(words)?;
        let (first, second) = (before.rsplit('`').next()?, after.split('`').next()?);
        let swapped = plays(first, right) && !plays(first, left) && plays(second, left) && !plays(second, right);
        swapped.then(|| format!("the record has `{first}` and `{second}` in each other's place"))
    })
}

/// Finds a claim whose names occur only in records of another time than it gives.
pub(super) fn borrowed(finding: &CheckedFinding, records: &Records) -> Option<String> {
    let draft = &finding.finding.draft;
    let at = draft.time.as_ref()?.at.as_second();
    let (then, other): (Vec<&Record>, Vec<&Record>) = cited(finding, records)
        .into_iter()
        .filter(|r| r.time.is_some())
        .partition(|r| r.time.is_some_and(|t| (t.as_second() - at).abs() < MOMENT));
    let telling: Vec<String> = names(&draft.claim).into_iter().filter(|n| n.len() >= 4 && !n.ends_with('…')).collect();
    let elsewhere = telling.iter().filter(|n| !then.iter().any(|r| r.holds(n)) && other.iter().any(|r| r.holds(n)));
    let first = elsewhere.clone().next()?;
    (!then.is_empty() && elsewhere.count() * 3 >= telling.len())
        .then(|| format!("`{first}` is recorded at another time than the finding gives"))
}

/// Finds an exonerating claim whose names all come from fields that the attacker could choose.
pub(super) fn written_by_others(finding: &CheckedFinding, records: &Records) -> Option<String> {
    let draft = &finding.finding.draft;
    let cited = cited(finding, records);
    let names = names(&draft.claim);
    if draft.bearing != Bearing::Exonerating || cited.is_empty() || names.is_empty() {
        return None;
    }
    let fields: Vec<&(String, String)> = cited.iter().flat_map(|r| &r.fields).collect();
    let within =
        |name: &str| fields.iter().filter(|(_, v)| v.contains(name)).map(|(k, _)| k.as_str()).collect::<Vec<_>>();
    let others = |key: &str| WRITTEN_BY_OTHERS.split(' ').any(|word| key.contains(word));
    let all = names.iter().all(|name| {
        let keys = within(name.trim_end_matches('…'));
        !keys.is_empty() && keys.iter().all(|key| others(key))
    });
    all.then(|| "it rests on a field that the acting party could fill freely".to_owned())
}

/// Finds a name that other findings know, in the plain text of the claim but in none of its records.
pub(super) fn unmarked(finding: &CheckedFinding, known: &BTreeSet<String>, records: &Records) -> Option<String> {
    let cited = cited(finding, records);
    let literal = |c: &Citation| matches!(c, Citation::Literal { .. });
    let draft = &finding.finding.draft;
    // A name is missing only if all cited records were read.
    if cited.is_empty() || cited.len() < draft.citations.len() || !draft.citations.iter().all(literal) {
        return None;
    }
    let plain: String = draft.claim.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let words = plain.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'));
    let mut words = words.map(|w| w.trim_matches(['.', ':', '!', '?', '\'', '"']));
    let missing = words.find(|w| known.contains(*w) && !cited.iter().any(|r| r.holds(w)))?;
    Some(format!("it speaks of {missing}, which none of its records names"))
}

pub(super) fn known_names<'a>(findings: impl Iterator<Item = &'a CheckedFinding>) -> BTreeSet<String> {
    let telling = |k: EntityKind| {
        matches!(k, EntityKind::User | EntityKind::Host | EntityKind::Process | EntityKind::File | EntityKind::Name)
    };
    let entities = findings.filter(|f| f.checked.valid()).flat_map(|f| &f.finding.draft.entities);
    entities.filter(|e| telling(e.kind) && e.value.len() >= 4).map(|e| e.value.to_lowercase()).collect()
}

/// Finds a claim that says "several times" but cites fewer records.
pub(super) fn too_often(finding: &CheckedFinding) -> Option<String> {
    const SMALL: &str = "two three four five six seven eight nine ten";
    const LARGE: [(&str, usize); 4] = [("dozen", 12), ("dozens of", 24), ("hundreds of", 200), ("thousands of", 2000)];
    let draft = &finding.finding.draft;
    let plain: String = draft.claim.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let numbers = SMALL.split(' ').zip(2..).chain(LARGE).map(|(number, least)| (format!("{number} times"), least));
    let (words, least) =
        [("twice".to_owned(), 2)].into_iter().chain(numbers).find(|(words, _)| plain.contains(words))?;
    let records = finding.checked.records().len();
    let counted = !draft.citations.iter().all(|c| matches!(c, Citation::Literal { .. }));
    (records < least && !counted).then(|| format!("it says \"{words}\" and cites {records} records"))
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{
        CallId, Checked, Domain, EventTime, Finding, FindingDraft, FindingId, FindingKind, Precision, Score, TimeBasis,
        Weight,
    };
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

    fn finding(claim: &str, bearing: Bearing, time: &str, cited: &[usize]) -> CheckedFinding {
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
        let draft = FindingDraft {
            kind: FindingKind::Occurrence,
            claim: claim.into(),
            time: Some(time),
            entities: vec![],
            bearing,
            weight: Weight::Weak,
            about_alert: true,
            technique: None,
            confidence: Score::clamped(0.8),
            citations: cited.iter().map(cite).collect(),
            look_next: None,
        };
        let domain = Domain::new("endpoint").unwrap();
        let id = FindingId::of(1, &domain, 1);
        CheckedFinding {
            finding: Finding { id, domain, round: 1, draft },
            checked: Checked { citations: vec![], faults: vec![] },
        }
    }

    const NOW: &str = "2024-01-01T10:00:00Z";

    #[test]
    fn values_in_each_others_place_are_seen() {
        let swapped = |claim: &str| exchanged(&finding(claim, Bearing::Neutral, NOW, &[0]), &records()).is_some();
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
        let of = |claim: &str| unmarked(&finding(claim, Bearing::Neutral, NOW, &[0]), &known, &records());
        assert!(of("ran `/bin/id` as root").is_some());
        assert!(of("ran `/bin/id` as mara, on purpose").is_none());
        let often = |claim: &str| too_often(&finding(claim, Bearing::Neutral, NOW, &[0]));
        assert!(often("`mara` tried it a dozen times").is_some());
        assert!(often("`mara` tried it").is_none());
    }

    #[test]
    fn a_borrowed_time_is_seen() {
        let at = |time| borrowed(&finding("`mara` ran `/bin/id`", Bearing::Neutral, time, &[0, 1]), &records());
        assert!(at("2024-01-01T12:00:00Z").is_some());
        assert!(at(NOW).is_none());
    }

    #[test]
    fn an_excuse_that_its_subject_wrote_is_seen() {
        let of = |claim: &str, bearing| written_by_others(&finding(claim, bearing, NOW, &[0]), &records());
        assert!(of("`secops` approved it", Bearing::Exonerating).is_some());
        assert!(of("`secops` approved it", Bearing::Incriminating).is_none());
        assert!(of("`secops` approved it for `mara`", Bearing::Exonerating).is_none());
    }
}
