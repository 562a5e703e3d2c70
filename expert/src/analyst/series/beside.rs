//! What stands beside the alerted record: the sign-in and the command before it, and what an address is called.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::mind::{CallRequest, Done};
use casebook_agent::worker::call;
use serde_json::json;

use super::{ACCEPTED, answer};
use crate::analyst::Case;
use crate::analyst::compose::{much, sent};
use crate::analyst::facet::{Class, Facet, last};
use crate::analyst::link::seconds;
use crate::analyst::rec::Rec;

/// Who had signed in over SSH last, where the alerted record is of a system's own log.
pub(super) fn signed_in_before(rec: &Rec) -> Option<CallRequest> {
    let own =
        rec.field(&["program"]).is_some() && rec.class() != Class::LogonFailure && rec.class() != Class::Authentication;
    let at = rec.time.filter(|_| own)?;
    Some(call(
        "search",
        &json!({"terms": ACCEPTED, "mode": "any", "to": at, "order": "time_desc", "limit": 1, "include_fields": true}),
    ))
}

/// Ports by which one host runs something on another.
const MANAGEMENT: &[&str] = &["22", "23", "135", "139", "445", "3389", "5900", "5985", "5986"];

/// To which other hosts the same one connected in the same way, where that is a way to manage hosts.
pub(super) fn reached(rec: &Rec) -> Option<CallRequest> {
    let is = |facet| rec.facets.stands_in(facet, &rec.fields);
    let (from, port) = (is(Facet::SrcIp)?, is(Facet::DstPort)?);
    let managed = rec.class() == Class::NetworkConnection && MANAGEMENT.contains(&port.1.as_str());
    let at = rec.time.filter(|_| managed)?;
    let conditions: Vec<_> =
        [from, port].iter().map(|(field, value)| json!({"field": field, "op": "eq", "value": value})).collect();
    Some(call("search", &json!({"where": conditions, "near": at, "limit": 60, "include_fields": true})))
}

/// The first connection to each other host that was reached in the same way, of very many none, and those to the same
/// host that carried most.
pub(in crate::analyst) fn spread(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    const FEW: usize = 5;
    let alerted = || case.core.iter().filter_map(|i| case.recs.get(*i));
    let places: BTreeSet<(String, u64)> = alerted()
        .filter_map(reached)
        .filter_map(|r| answer(&r, done))
        .flat_map(|a| a.places().collect::<Vec<_>>())
        .collect();
    let known: BTreeSet<&str> = alerted().filter_map(|r| r.facets.get(Facet::DstIp)).collect();
    let mut first = first_of(case, &places, |rec| rec.facets.get(Facet::DstIp).filter(|to| !known.contains(to)));
    if first.len() > FEW {
        first.clear();
    }
    let same: Vec<&Rec> = case
        .recs
        .iter()
        .filter(|r| r.facets.get(Facet::DstIp).is_some_and(|to| known.contains(to)))
        .filter(|r| places.contains(&(r.file.clone(), r.line)))
        .collect();
    let most = much(&same);
    let carried = same.into_iter().filter(|r| most.contains(&sent(r)));
    first.into_values().chain(carried).map(|r| (r.file.clone(), r.line)).collect()
}

/// Of the records at these places, the first of each that `what` tells apart.
fn first_of<'c, K: Ord>(
    case: &'c Case,
    places: &BTreeSet<(String, u64)>,
    what: impl Fn(&'c Rec) -> Option<K>,
) -> BTreeMap<K, &'c Rec> {
    let mut first: BTreeMap<K, &Rec> = BTreeMap::new();
    for rec in case.recs.iter().filter(|r| places.contains(&(r.file.clone(), r.line))) {
        let Some(what) = what(rec) else { continue };
        if first.get(&what).is_none_or(|f| (rec.time, rec.key()) < (f.time, f.key())) {
            first.insert(what, rec);
        }
    }
    first
}

/// What else was changed of the object of an alerted call.
pub(super) fn changes(rec: &Rec) -> Option<CallRequest> {
    let is = |facet| rec.facets.stands_in(facet, &rec.fields);
    let (object, action) = (is(Facet::Object)?, is(Facet::Action)?);
    let at = rec.time.filter(|_| rec.class() == Class::ApiCall && object.1.len() >= 4)?;
    let conditions = json!([
        {"field": object.0, "op": "eq", "value": object.1},
        {"field": action.0, "op": "regex", "value": CHANGES},
    ]);
    Some(call("search", &json!({"where": conditions, "near": at, "limit": CHANGED, "include_fields": true})))
}

/// Changes of one object of which the kinds are told.
const CHANGED: u64 = 40;
/// How calls begin that change something.
const CHANGES: &str = "(?i)^(create|update|patch|delete|put|add|remove|set|attach|detach|modify|enable|disable)";

/// The first of each kind of change of the object of an alerted call, where they are few: an object that is changed all
/// the time has no story.
pub(in crate::analyst) fn changed(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let alerted = case.core.iter().filter_map(|i| changes(case.recs.get(*i)?));
    let few = alerted.filter_map(|r| answer(&r, done)).filter(|a| a.number("total").is_some_and(|n| n <= CHANGED));
    let places: BTreeSet<(String, u64)> = few.flat_map(|a| a.places().collect::<Vec<_>>()).collect();
    let kind =
        |rec: &Rec| rec.fields.iter().find(|(path, _)| last(path, 2) == "objectref.resource").map(|(_, v)| v.clone());
    let first = first_of(case, &places, |rec| Some((rec.facets.get(Facet::Action)?.to_owned(), kind(rec))));
    first.into_values().map(|r| (r.file.clone(), r.line)).collect()
}

/// What led to the alerted record: the sign-in before it, and the command that ran just before it.
pub(in crate::analyst) fn led_to(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    const JUST_BEFORE: f64 = 5.0;
    let alerted = || case.core.iter().filter_map(|i| case.recs.get(*i));
    let arrival = alerted().filter_map(signed_in_before).filter_map(|r| answer(&r, done)?.places().next());
    let before = |core: &Rec| {
        let at = core.time.filter(|_| core.class() != Class::ProcessStart)?;
        let ran = case.recs.iter().filter(|r| {
            let apart = r.time.map_or(f64::INFINITY, |t| seconds(at, t));
            r.class() == Class::ProcessStart
                && r.file == core.file
                && r.line < core.line
                && (0.0..=JUST_BEFORE).contains(&apart)
        });
        ran.max_by_key(|r| (r.time, r.line)).map(|r| (r.file.clone(), r.line))
    };
    arrival.chain(alerted().filter_map(before)).collect()
}

/// What an alerted address is called and what it says of itself: the first look-up, session and request that name it.
pub(in crate::analyst) fn named(case: &Case) -> BTreeSet<(String, u64)> {
    let wire = |r: &&Rec| matches!(r.class(), Class::NetworkConnection | Class::Alert);
    let connection = |i: &usize| case.recs.get(*i).filter(wire);
    let Some(address) = case.core.iter().filter_map(connection).find_map(|r| r.facets.get(Facet::DstIp)) else {
        return BTreeSet::new();
    };
    let first = |class: Class| {
        // A name server is named by each look-up that it answers.
        let asked = |r: &&Rec| class == Class::DnsQuery && r.facets.get(Facet::DstIp) == Some(address);
        let of = case.recs.iter().filter(|r| r.class() == class && r.names(address) && !asked(r));
        of.min_by_key(|r| (r.time, r.key())).map(|r| (r.file.clone(), r.line))
    };
    [Class::DnsQuery, Class::TlsSession, Class::HttpRequest].into_iter().filter_map(first).collect()
}
