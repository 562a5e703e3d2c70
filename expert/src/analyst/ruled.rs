//! Findings from Sigma correlations, such as many refused passwords and then an accepted one. The title of a rule is a
//! judgement; each finding cites the records and their number.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_protocol::{Bearing, Citation, EntityKind, FindingDraft, FindingKind, Locator, Score, Weight};
use casebook_trust::claim;
use serde_json::{Value, json};

use super::kin::{NEAR_SECONDS, seconds};
use super::rec::Rec;
use super::{Case, account, compose, plan, rec};

const TOOL: &str = "rule_hits";
const HITS: u64 = 120;
/// Findings of correlations in one task, the gravest first.
const FINDINGS: usize = 8;
/// The same about activity of others near the alert.
const BESIDE: usize = 2;
/// Seconds before and after the alert: an address may be busy for a day.
const WITHIN: u64 = 86_400;
/// Names of the alert whose hits are asked for at any time.
const ACTORS: usize = 3;

/// Hits around the alert, and hits about its actors at any time.
pub(super) fn ask(case: &Case) -> Vec<CallRequest> {
    let around = case.anchor.map(|at| json!({"level": "low", "limit": HITS, "around": at, "within_seconds": WITHIN}));
    let all = || json!({"level": "medium", "limit": HITS});
    let actors = case.near.actors.iter().filter(|name| name.len() >= 4).take(ACTORS);
    let about = actors.map(|name| json!({"level": "medium", "limit": HITS / 2, "entity": name}));
    std::iter::once(around.unwrap_or_else(all)).chain(about).map(|arguments| call(TOOL, &arguments)).collect()
}

/// What correlations found about names of the alert, and about others near it. Rules about single records are read from
/// the records.
pub(super) fn findings(case: &Case, done: &[Done]) -> Vec<FindingDraft> {
    let answers: Vec<(&Done, Value)> = plan::answers(done, TOOL).collect();
    let places = |answer: &Value| 0..rec::list(answer, "hits").len();
    let all =
        answers.iter().flat_map(|(done, answer)| places(answer).filter_map(|place| Hit::read(done, answer, place)));
    let correlations = all.filter(|hit| hit.rule.get("correlation").is_some());
    let (about, others): (Vec<Hit<'_>>, Vec<Hit<'_>>) = correlations.partition(|hit| hit.concerns(case));
    let mut found: Vec<FindingDraft> = Vec::new();
    for finding in about.iter().filter_map(Hit::finding) {
        // A rule often matches many records of one activity.
        if !found.iter().any(|known| known.claim == finding.claim) {
            found.push(finding);
        }
    }
    found.sort_by_key(|f| (std::cmp::Reverse(f.weight), f.time.as_ref().map(|t| t.at)));
    found.truncate(FINDINGS);
    found.extend(beside(&others, case));
    found
}

/// The nearest activity of others. It decides nothing about the alert.
fn beside(others: &[Hit<'_>], case: &Case) -> Vec<FindingDraft> {
    let mut near: Vec<(f64, &Hit<'_>)> = others.iter().map(|hit| (hit.apart(case), hit)).collect();
    near.retain(|(apart, _)| *apart <= NEAR_SECONDS);
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = BTreeSet::new();
    near.retain(|(_, hit)| seen.insert(hit.by()));
    let found = near.into_iter().filter_map(|(_, hit)| hit.finding()).take(BESIDE);
    let lighter = |found: FindingDraft| {
        let weight = found.weight.min(Weight::Moderate);
        FindingDraft { weight, about_alert: false, confidence: Score::clamped(0.6), ..found }
    };
    found.map(lighter).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

struct Hit<'a> {
    done: &'a Done,
    place: usize,
    hit: &'a Value,
    rule: &'a Value,
    /// The records from the first to the last.
    records: Vec<Rec>,
}

impl<'a> Hit<'a> {
    fn read(done: &'a Done, answer: &'a Value, place: usize) -> Option<Self> {
        let hit = rec::list(answer, "hits").get(place)?;
        let rule = rec::list(answer, "rules").iter().find(|rule| text(rule, "rule") == text(hit, "rule"))?;
        let of_parts = rec::list(hit, "parts").iter().flat_map(|part| [part.get("first"), part.get("last")]);
        let places = [hit.get("first")].into_iter().chain(of_parts).chain([hit.get("record")]);
        let mut places: Vec<u64> = places.flatten().filter_map(Value::as_u64).collect();
        places.dedup();
        let record = |place: &u64| {
            let item = rec::list(answer, "records").get(usize::try_from(*place).ok()?)?;
            rec::read(&done.call.id, format!("/records/{place}"), item)
        };
        let records: Vec<Rec> = places.iter().filter_map(record).collect();
        (!records.is_empty()).then_some(Self { done, place, hit, rule, records })
    }

    fn by(&self) -> Vec<&str> {
        self.hit.get("by").and_then(Value::as_object).into_iter().flatten().filter_map(|(_, v)| v.as_str()).collect()
    }

    /// The hit is grouped by a name of the alert, or its records have a rare one or an actor. A host alone says little: a
    /// log is of one host.
    fn concerns(&self, case: &Case) -> bool {
        let mut names = case.seeds.names.iter().filter(|s| s.kind != EntityKind::Host && !account::of_system(&s.text));
        let by = self.by();
        names.any(|seed| by.iter().any(|value| value.eq_ignore_ascii_case(&seed.text)))
            || self.records.iter().any(|rec| case.specific.iter().any(|name| rec.names(name)) || case.shares_actor(rec))
    }

    /// Seconds between the alert and the nearest record.
    fn apart(&self, case: &Case) -> f64 {
        let apart = |rec: &Rec| Some(seconds(rec.time?, case.anchor?).abs());
        self.records.iter().filter_map(apart).fold(f64::INFINITY, f64::min)
    }

    fn finding(&self) -> Option<FindingDraft> {
        let known = |key: &str| self.rule.get(key).cloned().unwrap_or_default();
        let bearing: Bearing = serde_json::from_value(known("bearing")).ok()?;
        let weight: Weight = serde_json::from_value(known("strength")).ok()?;
        // What a rule takes for harmless explains no alert.
        if bearing != Bearing::Incriminating {
            return None;
        }
        // A series is an event of the time when it began. In an order of steps, the last one completes the event.
        let ordered = text(self.rule, "correlation") == "temporal_ordered";
        let of_time = if ordered { self.records.last() } else { self.records.first() };
        let counts = self.counts();
        let mut corpus = rec::corpus(&self.records);
        counts.iter().for_each(|(_, count)| corpus.add_number(*count));
        let honest = |claim: &String| claim::faults(claim, &corpus, &[]).is_empty();
        let plain = || "A Sigma rule matches these records.".to_owned();
        let claim = Some(self.claim()).filter(honest).unwrap_or_else(plain);
        let count = |(pointer, value): &(String, u64)| Citation::Count {
            call: self.done.call.id.clone(),
            at: Locator::Pointer(pointer.clone()),
            value: *value,
            again: None,
        };
        let mut citations: Vec<Citation> = self.records.iter().rev().map(compose::cite).collect();
        citations.extend(counts.iter().map(count));
        let time = of_time?.event_time();
        let kind = if time.is_some() { FindingKind::Occurrence } else { FindingKind::State };
        Some(FindingDraft {
            time,
            // The last record completes the hit.
            entities: compose::entities(&self.records.iter().rev().collect::<Vec<_>>(), &corpus),
            bearing,
            weight,
            technique: self.rule.get("technique").and_then(Value::as_str).map(str::to_owned),
            citations,
            look_next: self.rule.get("look_next").and_then(Value::as_str).map(str::to_owned),
            ..FindingDraft::neutral(kind, claim)
        })
    }

    /// The pointer to each count above one, with its value.
    fn counts(&self) -> Vec<(String, u64)> {
        let parts = rec::list(self.hit, "parts");
        let own = self.hit.get("count").and_then(Value::as_u64).filter(|_| parts.is_empty());
        let own = own.map(|count| (format!("/hits/{}/count", self.place), count));
        let of_parts = parts.iter().enumerate().filter_map(|(n, part)| {
            Some((format!("/hits/{}/parts/{n}/count", self.place), part.get("count")?.as_u64()?))
        });
        own.into_iter().chain(of_parts).filter(|(_, count)| *count > 1).collect()
    }

    fn claim(&self) -> String {
        let plain = |text: &str| text.replace('`', "'");
        let title = plain(text(self.rule, "title"));
        let by: Vec<String> = self.by().iter().map(|value| format!("`{}`", plain(value))).collect();
        let whose = if by.is_empty() { String::new() } else { format!(" for {}", by.join(" and ")) };
        let parts = rec::list(self.hit, "parts");
        let many = |value: &Value| value.get("count").and_then(Value::as_u64).filter(|count| *count > 1);
        if parts.is_empty() {
            let noun = if text(self.rule, "correlation") == "value_count" { "different values" } else { "records" };
            return match many(self.hit) {
                Some(count) => format!("{title}: {count} {noun}{whose}."),
                None => format!("{title}{whose}."),
            };
        }
        let told: Vec<String> = parts
            .iter()
            .map(|part| {
                let what = plain(text(part, "title"));
                many(part).map_or_else(|| format!("one record ({what})"), |count| format!("{count} records ({what})"))
            })
            .collect();
        let then = if text(self.rule, "correlation") == "temporal_ordered" { ", then " } else { " and " };
        format!("{title}{whose}: {}.", told.join(then))
    }
}

#[cfg(test)]
mod tests {
    use casebook_trust::Exhibits;

    use super::*;

    fn record(line: u64, raw: &str) -> Value {
        json!({"source": "auth", "file": "auth.log", "line": line, "time": "2026-03-01T10:00:00Z", "time_basis": "record",
            "precision": "second", "time_field": "timestamp", "raw": raw,
            "fields": {"src_ip": "192.0.2.9", "user": "root", "message": raw}})
    }

    fn counted() -> Done {
        let rule = json!({"rule": "x", "title": "Many passwords refused", "level": "high", "bearing": "incriminating",
            "strength": "strong", "correlation": "event_count"});
        let hit =
            json!({"rule": "x", "title": "Many passwords refused", "count": 147, "by": {}, "first": 0, "record": 1});
        let refused = "sshd[1]: Failed password for root from 192.0.2.9 port 4 ssh2";
        let mut later = record(147, refused);
        later["time"] = json!("2026-03-01T10:30:00Z");
        let result = json!({"total": 1, "rules": [rule], "hits": [hit], "records": [record(1, refused), later]});
        Rec::answered("r1.investigate.identity.t3.0", TOOL, "{}", &result.to_string())
    }

    fn answer(title: &str, bearing: &str) -> Done {
        let rule = json!({"rule": "x", "title": title, "level": "high", "bearing": bearing, "strength": "strong",
            "technique": "T1110.001", "correlation": "temporal_ordered",
            "look_next": "What did the session do?"});
        let parts = json!([{"rule": "a", "title": "SSH password refused", "count": 147, "first": 0, "last": 1},
            {"rule": "b", "title": "SSH login accepted", "count": 1, "first": 2, "last": 2}]);
        let hit = json!({"rule": "x", "title": title, "count": 1, "by": {"SourceIp": "192.0.2.9"}, "first": 0, "record": 2,
            "parts": parts});
        let refused = "sshd[1]: Failed password for root from 192.0.2.9 port 4 ssh2";
        let accepted = "sshd[1]: Accepted password for root from 192.0.2.9 port 4 ssh2";
        let records = [record(1, refused), record(147, refused), record(148, accepted)];
        let result = json!({"total": 1, "returned": 1, "rules": [rule], "hits": [hit], "records": records});
        Rec::answered("r1.investigate.identity.t3.0", TOOL, "{}", &result.to_string())
    }

    fn finding(title: &str, bearing: &str) -> Option<FindingDraft> {
        let done = answer(title, bearing);
        let json: Value = serde_json::from_str(&done.result).unwrap();
        let finding = Hit::read(&done, &json, 0).unwrap().finding()?;
        let mut exhibits = Exhibits::default();
        exhibits.add(done.call.clone(), false, done.result.as_bytes());
        let checked = exhibits.check(&finding);
        assert!(checked.valid(), "{checked:?}");
        Some(finding)
    }

    #[test]
    fn guesses_and_the_login_are_one_finding_with_citations_that_hold() {
        let found = finding("A password accepted after many were refused", "incriminating").unwrap();
        let claim = "A password accepted after many were refused for `192.0.2.9`: 147 records (SSH password refused), then one \
            record (SSH login accepted).";
        assert_eq!(found.claim, claim);
        assert_eq!((found.bearing, found.weight), (Bearing::Incriminating, Weight::Strong));
        assert_eq!(found.technique.as_deref(), Some("T1110.001"));
        assert_eq!(found.citations.len(), 4);
    }

    #[test]
    fn a_series_has_the_time_of_its_first_record() {
        let done = counted();
        let json: Value = serde_json::from_str(&done.result).unwrap();
        let finding = Hit::read(&done, &json, 0).unwrap().finding().unwrap();
        assert_eq!(finding.time.unwrap().at.to_string(), "2026-03-01T10:00:00Z");
        assert_eq!(finding.claim, "Many passwords refused: 147 records.");
    }

    #[test]
    fn a_title_that_states_what_no_record_has_is_left_out() {
        let found = finding("Seen with `evil.example` from 203.0.113.7 at 11:00:00", "incriminating").unwrap();
        assert_eq!(found.claim, "A Sigma rule matches these records.");
    }

    #[test]
    fn a_rule_that_calls_it_harmless_explains_nothing() {
        assert!(finding("This is fine", "exonerating").is_none());
        assert!(finding("This is fine", "neutral").is_none());
    }
}
