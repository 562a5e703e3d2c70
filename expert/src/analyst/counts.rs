//! Counts over all records of a name in the alert: how its actions ended, from where it acted, and whether this is the
//! first time.

use std::collections::BTreeSet;

use casebook_agent::reasoner::CallRequest;
use casebook_agent::worker::call;
use casebook_evidence::facet::Facet;
use casebook_protocol::{Bearing, Entity, EntityKind, FindingDraft, FindingKind, Timestamp, Weight, apart};
use serde::Deserialize;
use serde_json::json;

use super::answers::{Answer, Answers};
use super::describe::quote;
use super::rec::Rec;
use super::seed::Seeds;
use super::{Case, account, compose, kin, rec};

/// Calls in one task.
const CALLS: usize = 8;
/// Values that a finding lists.
const SHOWN: usize = 3;
/// An address is usual if it has at least this many times the records of the address in the alert.
const USUAL: u64 = 20;
/// Seconds around the alert in which an address is new.
const NEW: f64 = 86_400.0;
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

/// Of a source, the records with the value `name.1` in the field `name.0`, by the values of another field.
struct Ask {
    source: String,
    name: (String, String),
    kind: EntityKind,
    by: String,
    /// The value of the alerted record; none for another account that the alert names.
    own: Option<String>,
    facet: Facet,
}

fn asks<'r>(alerted: impl Iterator<Item = &'r Rec>, seeds: &Seeds) -> Vec<Ask> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (rec, (of, kind, facet)) in alerted.flat_map(|rec| COUNTED.map(|counted| (rec, counted))) {
        let field = |facet| rec.facets.field_of(facet, &rec.fields);
        // The kinds of refusal are counted together.
        let ended = || Some((OUTCOME.to_owned(), rec.facets.get(Facet::Outcome)?.to_owned()));
        let by = if facet == Facet::Outcome { ended() } else { field(facet) };
        let (Some((name, value)), Some((by, own))) = (field(of), by) else { continue };
        let others = seeds.names.iter().filter(|seed| (facet, seed.kind) == (Facet::SrcIp, EntityKind::User));
        let others = others.map(|seed| (seed.text.clone(), None));
        for (value, own) in std::iter::once((value, Some(own))).chain(others) {
            let system = kind == EntityKind::User && account::of_system(&value);
            let (source, name, by) = (rec.source.clone(), (name.clone(), value), by.clone());
            if !system && seen.insert((source.clone(), name.clone(), by.clone())) {
                all.push(Ask { source, name, kind, by, own, facet });
            }
        }
    }
    all.truncate(CALLS);
    all
}

/// The records with one value.
#[derive(Deserialize)]
struct Group {
    value: String,
    count: u64,
    #[serde(rename = "first_time")]
    first: Option<Timestamp>,
}

/// An answer, with the most frequent value first.
struct Counted<'a> {
    ask: &'a Ask,
    answer: &'a Answer,
    groups: Vec<Group>,
    anchor: Timestamp,
}

impl Ask {
    fn request(&self) -> CallRequest {
        let (field, value) = &self.name;
        let of = json!([{"field": field, "op": "eq", "value": value}]);
        call("count_by", &json!({"field": self.by, "where": of, "sources": [self.source], "top": 20}))
    }

    fn counted<'a>(&'a self, answers: &'a Answers, anchor: Timestamp) -> Option<Counted<'a>> {
        let answer = answers.to(&self.request())?;
        let groups = rec::list(&answer.found, "groups").iter().map(Group::deserialize);
        Some(Counted { ask: self, answer, groups: groups.collect::<Result<_, _>>().ok()?, anchor })
    }
}

pub(super) fn ask(case: &Case) -> Vec<CallRequest> {
    asks(case.alerted(), &case.seeds).iter().filter(|_| case.near.anchor.is_some()).map(Ask::request).collect()
}

pub(super) fn findings(case: &Case) -> Vec<FindingDraft> {
    let asks = asks(case.alerted(), &case.seeds);
    let counted = |ask| Ask::counted(ask, &case.answers, case.near.anchor?)?.finding();
    asks.iter().filter_map(counted).collect()
}

/// Accounts of the alert, each with the address that is new for it.
pub(super) fn new(recs: &[Rec], seeds: &Seeds, answers: &Answers, anchor: Option<Timestamp>) -> Vec<(String, String)> {
    let new = |ask: &Ask| {
        let counted = ask.counted(answers, anchor?)?;
        let own = counted.groups.get(counted.own()?).filter(|own| counted.is_new(own))?;
        Some((ask.name.1.clone(), own.value.clone()))
    };
    asks(kin::alerted(recs), seeds).iter().filter_map(new).collect()
}

impl Counted<'_> {
    /// The place of the group of the alerted record, or else that of an address that is new.
    fn own(&self) -> Option<usize> {
        self.groups.iter().position(|group| match &self.ask.own {
            Some(value) => group.value == *value,
            None => self.is_new(group),
        })
    }

    /// The address is new around the alert, and the account has a usual one.
    fn is_new(&self, own: &Group) -> bool {
        let usual = |most: &Group| most.count >= own.count.saturating_mul(USUAL) && most.first < own.first;
        self.ask.facet == Facet::SrcIp
            && own.first.is_some_and(|first| apart(first, self.anchor) <= NEW)
            && self.groups.first().is_some_and(usual)
    }

    /// None if the counts say nothing: one way in which everything ended, or too few records to compare.
    fn finding(&self) -> Option<FindingDraft> {
        let total = self.answer.found.get("total")?.as_u64()?;
        let place = self.own()?;
        let own = self.groups.get(place)?;
        if self.groups.len() < 2 || total < 4 {
            return None;
        }
        let last = place.max(SHOWN - 1);
        let shown = self.groups.iter().enumerate().filter(|(n, _)| *n < SHOWN - 1 || *n == last);
        let name = quote(&self.ask.name.1);
        let told = shown.clone().map(|(_, group)| format!("{} with {}", group.count, quote(&group.value)));
        let told = told.collect::<Vec<_>>().join(", ");
        let claim = match self.ask.facet {
            Facet::SrcIp => format!("Records of {name} by address: {told}"),
            _ => format!("How the actions of {name} ended: {told}"),
        };
        let ended =
            |what: &str| self.groups.iter().find(|group| self.ask.facet == Facet::Outcome && group.value == what);
        let rare = ended("success").zip(ended("failure"));
        let rare = rare.filter(|(good, bad)| bad.count >= good.count.saturating_mul(RARE)).is_some();
        let new = self.is_new(own);
        let cite = |(n, group): (usize, &Group)| {
            compose::cite_count(&self.answer.call, format!("/groups/{n}/count"), group.count)
        };
        let more = if new { ": an address that is new for it" } else { "" };
        Some(FindingDraft {
            entities: vec![Entity { kind: self.ask.kind, value: self.ask.name.1.clone() }],
            bearing: if new { Bearing::Incriminating } else { Bearing::Neutral },
            weight: if new { Weight::Moderate } else { Weight::Weak },
            technique: new.then(|| "T1078".to_owned()),
            citations: shown.map(cite).collect(),
            look_next: rare
                .then(|| format!("Nearly all actions of {name} failed: what did the few do that succeeded?")),
            ..FindingDraft::neutral(FindingKind::Aggregate, format!("{claim}{more}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use casebook_agent::reasoner::Done;
    use casebook_trust::Exhibits;
    use serde_json::Value;

    use super::*;

    /// The alerted record is of `mara` from 192.0.2.9, at noon.
    fn ask() -> Ask {
        let rec = Rec::with(&[("user", "mara"), ("source_ip", "192.0.2.9")]);
        let all = asks([&rec].into_iter(), &Seeds::default());
        all.into_iter().find(|ask| ask.kind == EntityKind::User && ask.facet == Facet::SrcIp).unwrap()
    }

    fn told(ask: &Ask, done: &Done, anchor: &str) -> Option<FindingDraft> {
        let (answers, _) = rec::collect(std::slice::from_ref(done));
        ask.counted(&answers, anchor.parse().unwrap())?.finding()
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
        let found = told(&ask, &done, "2026-03-10T12:00:00Z");
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
        let mut rec = Rec::with(&[("user", "mara"), ("source_ip", "192.0.2.9")]);
        rec.kin = Some(kin::Kin::Core);
        let seed = super::super::seed::Seed { text: "robot@example.org".into(), kind: EntityKind::User };
        let seeds = Seeds { names: vec![seed], ..Seeds::default() };
        let ask = asks([&rec].into_iter(), &seeds).into_iter().find(|ask| ask.name.1 == "robot@example.org").unwrap();
        let group = |value: &str, count: u64, first: &str| json!({"value": value, "count": count, "first_time": first});
        let usual = group("10.0.0.1", 400, "2026-02-01T08:00:00Z");
        let of = |more: Value| {
            let answer = json!({"total": 404, "groups": [usual.clone(), more]});
            let done =
                Rec::answered("r1.investigate.x.t4.1", "count_by", &ask.request().arguments, &answer.to_string());
            let (answers, _) = rec::collect(&[done]);
            new(std::slice::from_ref(&rec), &seeds, &answers, "2026-03-10T12:00:00Z".parse().ok())
        };
        let robot = |address: &str| vec![("robot@example.org".to_owned(), address.to_owned())];
        assert_eq!(of(group("192.0.2.7", 4, "2026-03-11T09:00:00Z")), robot("192.0.2.7"));
        assert!(of(group("192.0.2.7", 4, "2026-02-03T09:00:00Z")).is_empty());
    }

    #[test]
    fn refusals_of_all_kinds_are_counted_together() {
        let rec = Rec::with(&[("source_ip", "192.0.2.9"), ("status", "200"), ("outcome", "success")]);
        let ask =
            asks([&rec].into_iter(), &Seeds::default()).into_iter().find(|ask| ask.facet == Facet::Outcome).unwrap();
        assert_eq!((&*ask.by, ask.own.as_deref()), (OUTCOME, Some("success")));
        let first = "2026-03-10T11:00:00Z";
        let next = |failed: u64| {
            let group = |value: &str, count| json!({"value": value, "count": count, "first_time": first});
            let answer = json!({"total": failed + 1, "groups": [group("failure", failed), group("success", 1)]});
            let done =
                Rec::answered("r1.investigate.x.t1.1", "count_by", &ask.request().arguments, &answer.to_string());
            let found = told(&ask, &done, first).unwrap();
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
