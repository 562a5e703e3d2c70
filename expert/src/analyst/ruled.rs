//! Findings from Sigma correlations, such as many refused passwords and then an accepted one. The title of a rule is a
//! judgement; each finding cites the records and their number.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::CallRequest;
use casebook_agent::worker::call;
use casebook_protocol::{Bearing, Citation, EntityKind, FindingDraft, FindingKind, Score, Weight};
use serde::Deserialize;
use serde_json::json;

use super::answers::Answer;
use super::kin::NEAR_SECONDS;
use super::rec::{self, Rec, Rule};
use super::{Case, account, compose};

pub(super) const TOOL: &str = "rule_hits";
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
    let first = match case.near.anchor {
        Some(at) => json!({"level": "low", "limit": HITS, "around": at, "within_seconds": WITHIN}),
        None => json!({"level": "medium", "limit": HITS}),
    };
    let actors = case.near.actors.iter().filter(|name| name.len() >= 4).take(ACTORS);
    let about = actors.map(|name| json!({"level": "medium", "limit": HITS / 2, "entity": name}));
    std::iter::once(first).chain(about).map(|arguments| call(TOOL, &arguments)).collect()
}

/// What correlations found about names of the alert, and about others near it. Rules about single records are read from
/// the records.
pub(super) fn findings(case: &Case) -> Vec<FindingDraft> {
    let correlations = case.answers.of(TOOL).flat_map(Correlation::all);
    let (about, others): (Vec<_>, Vec<_>) = correlations.partition(|found| found.concerns(case));
    let mut found: Vec<FindingDraft> = about.iter().filter_map(Correlation::finding).collect();
    // A rule often matches many records of one activity.
    let mut seen = BTreeSet::new();
    found.retain(|finding| seen.insert(finding.claim.clone()));
    found.sort_by_key(|f| (Reverse(f.weight), f.time.as_ref().map(|t| t.at)));
    found.truncate(FINDINGS);
    found.extend(beside(&others, case));
    found
}

/// The nearest activity of others. It decides nothing about the alert.
fn beside(others: &[Correlation<'_>], case: &Case) -> Vec<FindingDraft> {
    let apart =
        |found: &Correlation<'_>| found.records.iter().map(|rec| case.near.apart(rec)).fold(f64::INFINITY, f64::min);
    let mut near: Vec<(f64, &Correlation<'_>)> = others.iter().map(|found| (apart(found), found)).collect();
    near.retain(|(apart, _)| *apart <= NEAR_SECONDS);
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = BTreeSet::new();
    near.retain(|(_, found)| seen.insert(&found.hit.by));
    let lighter = |found: FindingDraft| {
        let weight = found.weight.min(Weight::Moderate);
        FindingDraft { weight, about_alert: false, confidence: Score::clamped(0.6), ..found }
    };
    near.into_iter().filter_map(|(_, found)| found.finding()).take(BESIDE).map(lighter).collect()
}

#[derive(Deserialize)]
struct Hit {
    rule: String,
    #[serde(default)]
    count: u64,
    /// The values by which the records are grouped.
    #[serde(default)]
    by: BTreeMap<String, String>,
    first: Option<usize>,
    record: Option<usize>,
    #[serde(default)]
    parts: Vec<Part>,
}

/// The records of one of the rules that take part.
#[derive(Deserialize)]
struct Part {
    title: String,
    count: u64,
    first: Option<usize>,
    last: Option<usize>,
}

/// A hit of a correlation.
struct Correlation<'a> {
    answer: &'a Answer,
    place: usize,
    hit: Hit,
    rule: Rule,
    /// `event_count`, `temporal_ordered` and others.
    kind: &'a str,
    /// The records from the first to the last.
    records: Vec<Rec>,
}

impl<'a> Correlation<'a> {
    fn all(answer: &'a Answer) -> impl Iterator<Item = Self> {
        let hits = rec::list(&answer.found, "hits").iter().enumerate();
        hits.filter_map(|(place, hit)| Self::of(answer, place, Hit::deserialize(hit).ok()?))
    }

    fn of(answer: &'a Answer, place: usize, hit: Hit) -> Option<Self> {
        let rules = rec::list(&answer.found, "rules");
        let rule = rules.iter().find(|rule| rule.get("rule").is_some_and(|id| *id == *hit.rule))?;
        let kind = rule.get("correlation")?.as_str()?;
        let of_parts = hit.parts.iter().flat_map(|part| [part.first, part.last]);
        let mut places: Vec<usize> = [hit.first].into_iter().chain(of_parts).chain([hit.record]).flatten().collect();
        places.dedup();
        let all = rec::list(&answer.found, "records");
        let record = |place: &usize| rec::read(&answer.call, format!("/records/{place}"), all.get(*place)?);
        let records: Vec<Rec> = places.iter().filter_map(record).collect();
        let rule = Rule::deserialize(rule).ok()?;
        (!records.is_empty()).then_some(Self { answer, place, hit, rule, kind, records })
    }

    /// The hit is grouped by a name of the alert, or its records have a rare one or an actor. A host alone says little: a
    /// log is of one host.
    fn concerns(&self, case: &Case) -> bool {
        let mut names = case.seeds.names.iter().filter(|s| s.kind != EntityKind::Host && !account::of_system(&s.text));
        names.any(|seed| self.hit.by.values().any(|value| value.eq_ignore_ascii_case(&seed.text)))
            || self
                .records
                .iter()
                .any(|rec| case.specific.iter().any(|name| rec.names(name)) || case.near.has_actor(rec))
    }

    /// None for what a rule takes for harmless: that explains no alert.
    fn finding(&self) -> Option<FindingDraft> {
        if self.rule.bearing != Bearing::Incriminating {
            return None;
        }
        // A series is an event of the time when it began. In an order of steps, the last one completes the event.
        let ordered = self.kind == "temporal_ordered";
        let time = if ordered { self.records.last() } else { self.records.first() }?.event_time();
        let counts = self.counts();
        // The last record completes the hit.
        let cited: Vec<&Rec> = self.records.iter().rev().collect();
        let mut corpus = rec::corpus(&cited);
        counts.iter().for_each(|(_, count)| corpus.add_number(*count));
        let plain = || "A Sigma rule matches these records.".to_owned();
        let claim = Some(self.claim()).filter(|claim| compose::states(&corpus, claim)).unwrap_or_else(plain);
        let kind = if time.is_some() { FindingKind::Occurrence } else { FindingKind::State };
        let count = |(pointer, value)| compose::cite_count(&self.answer.call, pointer, value);
        let citations: Vec<Citation> =
            cited.iter().map(|rec| compose::cite(rec)).chain(counts.into_iter().map(count)).collect();
        Some(FindingDraft {
            time,
            entities: compose::entities(&cited, &corpus),
            bearing: self.rule.bearing,
            weight: self.rule.weight,
            technique: self.rule.technique.clone(),
            citations,
            look_next: self.rule.look_next.clone(),
            ..FindingDraft::neutral(kind, claim)
        })
    }

    /// The pointer to each count above one, with its value.
    fn counts(&self) -> Vec<(String, u64)> {
        let hit = format!("/hits/{}", self.place);
        let own = Some((format!("{hit}/count"), self.hit.count)).filter(|_| self.hit.parts.is_empty());
        let parts = self.hit.parts.iter().enumerate().map(|(n, part)| (format!("{hit}/parts/{n}/count"), part.count));
        own.into_iter().chain(parts).filter(|(_, count)| *count > 1).collect()
    }

    fn claim(&self) -> String {
        let plain = |text: &str| text.replace('`', "'");
        let by: Vec<String> = self.hit.by.values().map(|value| format!("`{}`", plain(value))).collect();
        let whose = if by.is_empty() { String::new() } else { format!(" for {}", by.join(" and ")) };
        let title = plain(&self.rule.title);
        let told = self.hit.parts.iter().map(|part| match (part.count, plain(&part.title)) {
            (count @ 2.., what) => format!("{count} records ({what})"),
            (_, what) => format!("one record ({what})"),
        });
        let then = if self.kind == "temporal_ordered" { ", then " } else { " and " };
        match self.hit.count {
            _ if !self.hit.parts.is_empty() => format!("{title}{whose}: {}.", told.collect::<Vec<_>>().join(then)),
            count @ 2.. if self.kind == "value_count" => format!("{title}: {count} different values{whose}."),
            count @ 2.. => format!("{title}: {count} records{whose}."),
            _ => format!("{title}{whose}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use casebook_agent::reasoner::Done;
    use casebook_trust::Exhibits;
    use serde_json::Value;

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

    fn found(done: &Done) -> Option<FindingDraft> {
        let (answers, _) = rec::collect(std::slice::from_ref(done));
        answers.of(TOOL).flat_map(Correlation::all).next().unwrap().finding()
    }

    fn finding(title: &str, bearing: &str) -> Option<FindingDraft> {
        let done = answer(title, bearing);
        let finding = found(&done)?;
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
        let finding = found(&done).unwrap();
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
