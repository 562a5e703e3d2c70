//! Counts over all records of a name in the alert: how its actions ended, from where it acted, and whether this is the
//! first time.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_evidence::facet::Facet;
use casebook_protocol::{Bearing, Citation, Entity, EntityKind, FindingDraft, FindingKind, Locator, Timestamp, Weight};
use serde_json::{Value, json};

use super::describe::quote;
use super::rec::Rec;
use super::seed::Seeds;
use super::{Case, account, plan};

/// Calls in one task.
const CALLS: usize = 8;
/// Values that a finding lists.
const SHOWN: usize = 3;
/// An address is usual if it has at least this many times the records of the address in the alert.
const USUAL: u64 = 20;
const OUTCOME: &str = "$outcome";
/// So many failures for one success make the success what to read first.
const RARE: u64 = 20;

/// What is counted: of the records with a value in one facet, the values of another.
const COUNTED: [(Facet, EntityKind, Facet); 4] = [
    (Facet::SrcIp, EntityKind::Address, Facet::HttpStatus),
    (Facet::SrcIp, EntityKind::Address, Facet::Outcome),
    (Facet::User, EntityKind::User, Facet::Outcome),
    (Facet::User, EntityKind::User, Facet::SrcIp),
];

/// The value of the alerted record by which `of` is counted; none for another account that the alert names.
struct Ask {
    source: String,
    name: (String, String),
    kind: EntityKind,
    by: (String, Option<String>),
    facet: Facet,
}

fn asks(alerted: &[&Rec], seeds: &Seeds) -> Vec<Ask> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for rec in alerted {
        for (of, kind, by) in COUNTED {
            let field = |facet| rec.facets.field_of(facet, &rec.fields);
            // The kinds of refusal are counted together.
            let ended = || Some((OUTCOME.to_owned(), rec.facets.get(Facet::Outcome)?.to_owned()));
            let by_field = if by == Facet::Outcome { ended() } else { field(by) };
            let (Some(name), Some(by_field)) = (field(of), by_field) else { continue };
            let others = seeds.names.iter().filter(|seed| (by, seed.kind) == (Facet::SrcIp, EntityKind::User));
            let others = others.map(|seed| ((name.0.clone(), seed.text.clone()), None));
            for (name, own) in std::iter::once((name.clone(), Some(by_field.1.clone()))).chain(others) {
                let system = kind == EntityKind::User && account::of_system(&name.1);
                if !system && seen.insert((rec.source.clone(), name.clone(), by_field.0.clone())) {
                    let by_field = (by_field.0.clone(), own);
                    all.push(Ask { source: rec.source.clone(), name, kind, by: by_field, facet: by });
                }
            }
        }
    }
    all.truncate(CALLS);
    all
}

impl Ask {
    /// The group of the alerted record, or else that of an address that is new.
    fn own<'g>(&self, groups: &'g [Group], anchor: Timestamp) -> Option<&'g Group> {
        let own = |group: &&Group| match &self.by.1 {
            Some(value) => group.value == *value,
            None => unusual(self, group, groups, anchor),
        };
        groups.iter().find(own)
    }

    fn request(&self) -> CallRequest {
        let (field, value) = &self.name;
        let of = json!([{"field": field, "op": "eq", "value": value}]);
        call("count_by", &json!({"field": self.by.0, "where": of, "sources": [self.source], "top": 20}))
    }
}

pub(super) fn ask(case: &Case) -> Vec<CallRequest> {
    asks(&case.alerted(), &case.seeds).iter().filter(|_| case.anchor.is_some()).map(Ask::request).collect()
}

fn answer<'d>(ask: &Ask, done: &'d [Done]) -> Option<(&'d Done, Value)> {
    let request = ask.request();
    plan::answers(done, "count_by").find(|(done, _)| done.call.arguments == request.arguments)
}

pub(super) fn findings(case: &Case, done: &[Done]) -> Vec<FindingDraft> {
    let asks = asks(&case.alerted(), &case.seeds);
    let answered = asks.iter().filter_map(|ask| {
        let (done, answer) = answer(ask, done)?;
        finding(ask, done, &answer, case.anchor?)
    });
    answered.collect()
}

/// Accounts of the alert, each with the address that is new for it.
pub(super) fn new(alerted: &[&Rec], seeds: &Seeds, done: &[Done], anchor: Option<Timestamp>) -> Vec<(String, String)> {
    let new = |ask: &Ask| {
        let groups = groups(&answer(ask, done)?.1);
        let own = ask.own(&groups, anchor?)?;
        unusual(ask, own, &groups, anchor?).then(|| (ask.name.1.clone(), own.value.clone()))
    };
    asks(alerted, seeds).iter().filter_map(new).collect()
}

struct Group {
    place: usize,
    value: String,
    count: u64,
    first: Option<Timestamp>,
}

fn groups(answer: &Value) -> Vec<Group> {
    let all = answer.get("groups").and_then(Value::as_array).into_iter().flatten().enumerate();
    let read = |(place, group): (usize, &Value)| {
        let text = |key: &str| group.get(key).and_then(Value::as_str);
        let first = text("first_time").and_then(|time| time.parse().ok());
        Some(Group { place, value: text("value")?.to_owned(), count: group.get("count")?.as_u64()?, first })
    };
    all.filter_map(read).collect()
}

/// None if the counts say nothing: one way in which everything ended, or too few records to compare.
fn finding(ask: &Ask, done: &Done, answer: &Value, anchor: Timestamp) -> Option<FindingDraft> {
    let groups = groups(answer);
    let total = answer.get("total")?.as_u64()?;
    let own = ask.own(&groups, anchor)?;
    if groups.len() < 2 || total < 4 {
        return None;
    }
    let name = quote(&ask.name.1);
    let mut shown: Vec<&Group> = groups.iter().take(SHOWN).collect();
    if !shown.iter().any(|group| group.place == own.place) {
        shown.pop();
        shown.push(own);
    }
    let told: Vec<String> = shown.iter().map(|group| format!("{} with {}", group.count, quote(&group.value))).collect();
    let told = told.join(", ");
    let claim = match ask.facet {
        Facet::SrcIp => format!("Records of {name} by address: {told}"),
        _ => format!("How the actions of {name} ended: {told}"),
    };
    let ended = |what: &str| groups.iter().find(|group| ask.facet == Facet::Outcome && group.value == what);
    let rare = ended("success").zip(ended("failure"));
    let rare = rare.filter(|(good, bad)| bad.count >= good.count.saturating_mul(RARE)).is_some();
    let unusual = unusual(ask, own, &groups, anchor);
    let count = |group: &&Group| Citation::Count {
        call: done.call.id.clone(),
        at: Locator::Pointer(format!("/groups/{}/count", group.place)),
        value: group.count,
        again: None,
    };
    let more = if unusual { ": an address that is new for it" } else { "" };
    Some(FindingDraft {
        entities: vec![Entity { kind: ask.kind, value: ask.name.1.clone() }],
        bearing: if unusual { Bearing::Incriminating } else { Bearing::Neutral },
        weight: if unusual { Weight::Moderate } else { Weight::Weak },
        technique: unusual.then(|| "T1078".to_owned()),
        citations: shown.iter().map(count).collect(),
        look_next: rare.then(|| format!("Nearly all actions of {name} failed: what did the few do that succeeded?")),
        ..FindingDraft::neutral(FindingKind::Aggregate, format!("{claim}{more}"))
    })
}

/// The address is new around the alert, and the account has a usual one.
fn unusual(ask: &Ask, own: &Group, groups: &[Group], anchor: Timestamp) -> bool {
    let usual = groups.first().filter(|most| most.place != own.place && most.count >= own.count.saturating_mul(USUAL));
    let new = own.first.is_some_and(|first| (anchor.as_second() - first.as_second()).abs() <= 86_400);
    ask.facet == Facet::SrcIp && new && usual.is_some_and(|most| most.first < own.first)
}

#[cfg(test)]
mod tests {
    use casebook_trust::Exhibits;

    use super::*;

    /// The alerted record is of `mara` from 192.0.2.9, at noon.
    fn ask() -> Ask {
        let rec = Rec::with(&[("user", "mara"), ("source_ip", "192.0.2.9")]);
        let all = asks(&[&rec], &Seeds::default());
        all.into_iter().find(|ask| ask.kind == EntityKind::User && ask.facet == Facet::SrcIp).unwrap()
    }

    fn counted(groups: &[(&str, u64, &str)]) -> Option<FindingDraft> {
        let ask = ask();
        let total: u64 = groups.iter().map(|(_, count, _)| count).sum();
        let group =
            |(value, count, first): &(&str, u64, &str)| json!({"value": value, "count": count, "first_time": first});
        let groups: Vec<Value> = groups.iter().map(group).collect();
        let answer = json!({"total": total, "groups": groups});
        let arguments = ask.request().arguments;
        let done = Rec::answered("r1.investigate.identity.t1.1", "count_by", &arguments, &answer.to_string());
        let found = finding(&ask, &done, &answer, "2026-03-10T12:00:00Z".parse().unwrap());
        if let Some(draft) = &found {
            let mut exhibits = Exhibits::default();
            exhibits.add(done.call.clone(), false, done.result.as_bytes());
            let checked = exhibits.check(draft);
            assert!(checked.valid(), "{checked:?}");
        }
        found
    }

    #[test]
    fn new_address_beside_a_usual_one_incriminates() {
        let usual = ("192.0.2.1", 40, "2026-02-01T08:00:00Z");
        let new = ("192.0.2.9", 2, "2026-03-10T11:00:00Z");
        let found = counted(&[usual, new]).unwrap();
        assert_eq!(found.bearing, Bearing::Incriminating);
        assert_eq!(
            found.claim,
            "Records of `mara` by address: 40 with `192.0.2.1`, 2 with `192.0.2.9`: an address that is new for it"
        );

        let known = ("192.0.2.9", 2, "2026-02-03T11:00:00Z");
        let often = ("192.0.2.9", 3, "2026-03-10T11:00:00Z");
        let younger = ("192.0.2.1", 40, "2026-03-10T11:30:00Z");
        for groups in [[usual, known], [usual, often], [younger, new]] {
            assert_eq!(counted(&groups).unwrap().bearing, Bearing::Neutral, "{groups:?}");
        }
    }

    #[test]
    fn alerted_value_is_always_listed() {
        let first = "2026-03-10T11:00:00Z";
        let found = counted(&[("a", 9, first), ("b", 8, first), ("c", 7, first), ("192.0.2.9", 1, first)]).unwrap();
        assert!(found.claim.ends_with("9 with `a`, 8 with `b`, 1 with `192.0.2.9`"), "{}", found.claim);
        assert_eq!(found.citations.len(), SHOWN);
    }

    #[test]
    fn another_account_of_the_alert_is_followed_to_its_new_address() {
        let rec = Rec::with(&[("user", "mara"), ("source_ip", "192.0.2.9")]);
        let seed = super::super::seed::Seed { text: "robot@example.org".into(), kind: EntityKind::User };
        let seeds = Seeds { names: vec![seed], ..Seeds::default() };
        let ask = asks(&[&rec], &seeds).into_iter().find(|ask| ask.name.1 == "robot@example.org").unwrap();
        let group = |value: &str, count: u64, first: &str| json!({"value": value, "count": count, "first_time": first});
        let usual = group("10.0.0.1", 400, "2026-02-01T08:00:00Z");
        let of = |more: Value| {
            let answer = json!({"total": 404, "groups": [usual.clone(), more]});
            let done =
                Rec::answered("r1.investigate.x.t4.1", "count_by", &ask.request().arguments, &answer.to_string());
            new(&[&rec], &seeds, &[done], "2026-03-10T12:00:00Z".parse().ok())
        };
        let robot = |address: &str| vec![("robot@example.org".to_owned(), address.to_owned())];
        assert_eq!(of(group("192.0.2.7", 4, "2026-03-11T09:00:00Z")), robot("192.0.2.7"));
        assert!(of(group("192.0.2.7", 4, "2026-02-03T09:00:00Z")).is_empty());
    }

    #[test]
    fn refusals_of_all_kinds_are_counted_together() {
        let rec = Rec::with(&[("source_ip", "192.0.2.9"), ("status", "200"), ("outcome", "success")]);
        let ask = asks(&[&rec], &Seeds::default()).into_iter().find(|ask| ask.facet == Facet::Outcome).unwrap();
        assert_eq!(ask.by, (OUTCOME.to_owned(), Some("success".to_owned())));
        let first = "2026-03-10T11:00:00Z";
        let next = |failed: u64| {
            let group = |value: &str, count| json!({"value": value, "count": count, "first_time": first});
            let answer = json!({"total": failed + 1, "groups": [group("failure", failed), group("success", 1)]});
            let done =
                Rec::answered("r1.investigate.x.t1.1", "count_by", &ask.request().arguments, &answer.to_string());
            let found = finding(&ask, &done, &answer, first.parse().unwrap()).unwrap();
            (found.claim, found.look_next)
        };
        let (claim, look_next) = next(602);
        assert_eq!(claim, "How the actions of `192.0.2.9` ended: 602 with `failure`, 1 with `success`");
        assert!(look_next.unwrap().ends_with("what did the few do that succeeded?"));
        assert_eq!(next(7).1, None);
    }

    #[test]
    fn counts_without_a_comparison_say_nothing() {
        let first = "2026-03-10T11:00:00Z";
        assert!(counted(&[("192.0.2.9", 90, first)]).is_none(), "one address");
        assert!(counted(&[("192.0.2.1", 2, first), ("192.0.2.9", 1, first)]).is_none(), "three records");
        assert!(counted(&[("192.0.2.1", 9, first), ("192.0.2.2", 9, first)]).is_none(), "no group of the alert");
    }
}
