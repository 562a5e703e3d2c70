//! Records near the alerted one: the sign-in and command before it, and names of an address.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use serde_json::json;

use super::{ACCEPTED, answer};
use crate::analyst::compose::{much, sent};
use crate::analyst::link::{moved, seconds};
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account, describe};
use casebook_evidence::facet::audit_prefix;
use casebook_evidence::facet::{Class, Facet, last};

/// The last SSH sign-in before a record of a system log.
pub(super) fn signed_in_before(rec: &Rec) -> Option<CallRequest> {
    let own =
        rec.field(&["program"]).is_some() && rec.class() != Class::LogonFailure && rec.class() != Class::Authentication;
    let at = rec.time.filter(|_| own)?;
    Some(call(
        "search",
        &json!({"terms": ACCEPTED, "mode": "any", "to": at, "order": "time_desc", "limit": 1, "include_fields": true}),
    ))
}

const MANAGEMENT: &[&str] = &["22", "23", "135", "139", "445", "3389", "5900", "5985", "5986"];

/// Other hosts that the same one connected to, if the alert is about remote management.
pub(super) fn reached(rec: &Rec) -> Option<CallRequest> {
    let is = |facet| rec.facets.field_of(facet, &rec.fields);
    let (from, port) = (is(Facet::SrcIp)?, is(Facet::DstPort)?);
    let managed = rec.class() == Class::NetworkConnection && MANAGEMENT.contains(&port.1.as_str());
    let at = rec.time.filter(|_| managed)?;
    let conditions: Vec<_> =
        [from, port].iter().map(|(field, value)| json!({"field": field, "op": "eq", "value": value})).collect();
    Some(call("search", &json!({"where": conditions, "near": at, "limit": 60, "include_fields": true})))
}

/// The first connection to each other host (none if there are very many), and the largest connections to the
/// same host.
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

/// The first record for each key that `what` gives.
pub(super) fn first_of<'c, K: Ord>(
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

pub(super) fn changes(rec: &Rec) -> Option<CallRequest> {
    let is = |facet| rec.facets.field_of(facet, &rec.fields);
    let (object, action) = (is(Facet::Object)?, is(Facet::Action)?);
    let at = rec.time.filter(|_| rec.class() == Class::ApiCall && object.1.len() >= 4)?;
    let conditions = json!([
        {"field": object.0, "op": "eq", "value": object.1},
        {"field": action.0, "op": "regex", "value": CHANGES},
    ]);
    Some(call("search", &json!({"where": conditions, "near": at, "limit": CHANGED, "include_fields": true})))
}

/// If there are more changes of one object, their kinds are not described.
const CHANGED: u64 = 40;
const CHANGES: &str = "(?i)^(create|update|patch|delete|put|add|remove|set|attach|detach|modify|enable|disable)";

/// The first of each kind of change, if there are few. A constantly changing object has nothing to report.
pub(in crate::analyst) fn changed(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let alerted = case.core.iter().filter_map(|i| changes(case.recs.get(*i)?));
    let few = alerted.filter_map(|r| answer(&r, done)).filter(|a| a.number("total").is_some_and(|n| n <= CHANGED));
    let places: BTreeSet<(String, u64)> = few.flat_map(|a| a.places().collect::<Vec<_>>()).collect();
    let kind =
        |rec: &Rec| rec.fields.iter().find(|(path, _)| last(path, 2) == "objectref.resource").map(|(_, v)| v.clone());
    let first = first_of(case, &places, |rec| Some((rec.facets.get(Facet::Action)?.to_owned(), kind(rec))));
    first.into_values().map(|r| (r.file.clone(), r.line)).collect()
}

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

/// Commands that people ran with higher rights around such a command, or around a change that is recorded for
/// the system itself: a person caused it.
pub(super) fn commands(rec: &Rec) -> Vec<CallRequest> {
    let changes = by_the_system(rec);
    // A system log names only the changed account.
    let no_actor = rec.class() == Class::AccountChange
        || rec.facets.get(Facet::User).is_none_or(|user| account::of_system(user) || matches!(user, "0" | "root"));
    let Some(at) = rec.time.filter(|_| changes && no_actor && of_unix(rec) || with_more_rights(rec)) else {
        return Vec::new();
    };
    let (Some(from), Some(to)) = (moved(at, -AROUND), moved(at, AROUND)) else { return Vec::new() };
    // The audit type of sudo commands, and the words of sudo. In other logs, any user may write these words, so
    // also search the log of the change alone.
    let terms = ["USER_CMD", "COMMAND="];
    let mut request =
        json!({"terms": terms, "mode": "any", "near": at, "from": from, "to": to, "limit": 40, "include_fields": true});
    let everywhere = call("search", &request);
    request.as_object_mut().and_then(|all| all.insert("sources".into(), json!([rec.source])));
    vec![call("search", &request), everywhere]
}

/// A record of Linux audit or syslog.
pub(super) fn of_unix(rec: &Rec) -> bool {
    audit_prefix(&rec.fields).is_some() || rec.field(&["program"]).is_some()
}

pub(super) fn by_the_system(rec: &Rec) -> bool {
    matches!(
        rec.class(),
        Class::ConfigChange
            | Class::ServiceChange
            | Class::KernelModule
            | Class::ScheduledTask
            | Class::AccountChange
            | Class::PackageOperation
    )
}

/// Seconds around the alerted record.
pub(super) const AROUND: i64 = 900;

/// True for the same host, or the same file if one has no host.
fn same_host(a: &Rec, b: &Rec) -> bool {
    match (a.facets.get(Facet::Host), b.facets.get(Facet::Host)) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        _ => a.file == b.file,
    }
}

/// Seconds from `core` to `rec`; negative if it is before.
fn after(rec: &Rec, core: &Rec) -> f64 {
    match (rec.time, core.time) {
        (Some(at), Some(core)) => seconds(at, core),
        _ => f64::INFINITY,
    }
}

/// A sudo command.
fn with_more_rights(rec: &Rec) -> bool {
    let audited = audit_prefix(&rec.fields)
        .is_some_and(|prefix| rec.fields.get(&format!("{prefix}type")).is_some_and(|kind| kind == "USER_CMD"));
    rec.class() == Class::ProcessStart && (audited || rec.field(&["targetuser"]).is_some())
}

/// Activity beside an alerted change: commands of people around it, and changes right after it, such as a start
/// after a stop.
pub(in crate::analyst) fn beside_it(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    const RIGHT_AFTER: f64 = 10.0;
    const FEW: usize = 12;
    let mut places = BTreeSet::new();
    for core in case.core.iter().filter_map(|i| case.recs.get(*i)) {
        let apart = |rec: &Rec| after(rec, core);
        let ran = commands(core).into_iter().filter_map(|r| Some(answer(&r, done)?.places().collect::<Vec<_>>()));
        let ran: BTreeSet<(String, u64)> = ran.flatten().collect();
        let own = core.facets.get(Facet::User).filter(|_| with_more_rights(core));
        let of_people = |rec: &Rec| {
            let by = rec.facets.get(Facet::User);
            with_more_rights(rec) && same_host(rec, core) && own.is_none_or(|own| by == Some(own))
        };
        let first = first_of(case, &ran, |rec| rec.facets.get(Facet::Command).filter(|_| of_people(rec)));
        let mut first: Vec<&Rec> = first.into_values().collect();
        first.sort_by(|a, b| apart(a).abs().total_cmp(&apart(b).abs()).then_with(|| a.key().cmp(&b.key())));
        places.extend(first.into_iter().take(FEW).map(|r| (r.file.clone(), r.line)));
        if matches!(core.class(), Class::ConfigChange | Class::ServiceChange) {
            let next = case.recs.iter().filter(|rec| {
                let soon = (0.0..=RIGHT_AFTER).contains(&apart(rec)) && rec.line != core.line;
                soon && rec.class() == core.class() && rec.file == core.file && same_host(rec, core)
            });
            let next = next.min_by(|a, b| apart(a).total_cmp(&apart(b)).then_with(|| a.line.cmp(&b.line)));
            places.extend(next.map(|r| (r.file.clone(), r.line)));
        }
    }
    places
}

/// Sentences of programs about sessions, sign-ins, refusals and files that came or went.
const SENTENCES: &str = r"(?i)(incoming (session|connection|remote)|session\b.{0,40}\b(ended|closed|terminated|opened|started|established)|(received|on)?endsession|authenticat\w*\b.{0,40}\b(success|succeed|fail|denied|reject)|\b(successful|failed) authenticat|\b(sign|signed|signing|log|logged|logging)[ -]?(in|out|on|off)\b|login (success|fail)|access (is |was )?denied|permission denied|(upload|download|transfer)(ed|ing)?\b.{0,40}\b(complete|success|succeeded|failed|finished))";

/// Other lines about sessions and files around an alerted line of a text log. Such lines have no account and
/// belong to one program.
pub(super) fn sentences_near(rec: &Rec) -> Option<CallRequest> {
    let at = rec.time.filter(|_| rec.is_sentence())?;
    let (from, to) = (moved(at, -AROUND)?, moved(at, AROUND)?);
    let condition = json!([{"field": "message", "op": "regex", "value": SENTENCES}]);
    Some(call(
        "search",
        &json!({"where": condition, "sources": [rec.source], "near": at, "from": from, "to": to, "limit": 80, "include_fields": true}),
    ))
}

pub(in crate::analyst) fn sentences(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    const FEW: usize = 8;
    let mut places = BTreeSet::new();
    for core in case.core.iter().filter_map(|i| case.recs.get(*i)) {
        let apart = |rec: &Rec| after(rec, core).abs();
        let Some(found) = sentences_near(core).and_then(|r| answer(&r, done)) else { continue };
        let found: BTreeSet<(String, u64)> = found.places().collect();
        let near = |rec: &&Rec| rec.file == core.file && found.contains(&(rec.file.clone(), rec.line));
        let mut all: Vec<&Rec> = case.recs.iter().filter(near).collect();
        all.sort_by(|a, b| apart(a).total_cmp(&apart(b)).then_with(|| a.key().cmp(&b.key())));
        let mut kinds = BTreeSet::new();
        all.retain(|rec| kinds.insert(describe::words(rec)));
        places.extend(all.into_iter().take(FEW).map(|r| (r.file.clone(), r.line)));
    }
    places
}

/// Other accounts at the address of an alerted sign-in or call: the first record and the nearest one of each
/// account, or all if there are few. An address with many accounts identifies no one.
pub(in crate::analyst) fn sharing(case: &Case) -> BTreeSet<(String, u64)> {
    const FEW: usize = 3;
    const DEEDS: usize = 5;
    let comes = |rec: &&Rec| {
        matches!(rec.class(), Class::Authentication | Class::LogonFailure | Class::ApiCall | Class::TokenEvent)
    };
    let mut places = BTreeSet::new();
    for core in case.core.iter().filter_map(|i| case.recs.get(*i)).filter(comes) {
        let (Some(user), Some(from)) = (core.facets.get(Facet::User), core.facets.get(Facet::SrcIp)) else { continue };
        let mut others: BTreeMap<String, Vec<&Rec>> = BTreeMap::new();
        // Password guessing names many accounts, so failures do not count.
        let succeeded = |rec: &&Rec| rec.facets.get(Facet::Outcome) != Some("failure");
        let here = case.recs.iter().filter(|r| r.facets.get(Facet::SrcIp) == Some(from));
        for rec in here.filter(comes).filter(succeeded) {
            let other = rec.facets.get(Facet::User).filter(|other| account::bare(other) != account::bare(user));
            others.entry(other.map(account::bare).unwrap_or_default()).or_default().push(rec);
        }
        others.remove("");
        if others.len() > FEW {
            continue;
        }
        let apart = |rec: &Rec| after(rec, core).abs();
        for all in others.values() {
            let first = all.iter().min_by_key(|r| (r.time, r.key()));
            let near = all.iter().min_by(|a, b| apart(a).total_cmp(&apart(b)).then_with(|| a.key().cmp(&b.key())));
            places.extend(first.into_iter().chain(near).map(|r| (r.file.clone(), r.line)));
            let mut deeds: BTreeMap<&str, &Rec> = BTreeMap::new();
            for rec in all {
                let Some(deed) = rec.facets.get(Facet::Action) else { continue };
                let known = deeds.entry(deed).or_insert(rec);
                if (rec.time, rec.key()) < (known.time, known.key()) {
                    *known = rec;
                }
            }
            if deeds.len() <= DEEDS {
                places.extend(deeds.values().map(|r| (r.file.clone(), r.line)));
            }
        }
    }
    places
}

/// Names of an alerted address: the first lookup, session and request with it.
pub(in crate::analyst) fn named(case: &Case) -> BTreeSet<(String, u64)> {
    let wire = |r: &&Rec| matches!(r.class(), Class::NetworkConnection | Class::Alert);
    let connection = |i: &usize| case.recs.get(*i).filter(wire);
    let Some(address) = case.core.iter().filter_map(connection).find_map(|r| r.facets.get(Facet::DstIp)) else {
        return BTreeSet::new();
    };
    let first = |class: Class| {
        // A name server appears in every lookup that it answers.
        let asked = |r: &&Rec| class == Class::DnsQuery && r.facets.get(Facet::DstIp) == Some(address);
        let of = case.recs.iter().filter(|r| r.class() == class && r.names(address) && !asked(r));
        of.min_by_key(|r| (r.time, r.key())).map(|r| (r.file.clone(), r.line))
    };
    [Class::DnsQuery, Class::TlsSession, Class::HttpRequest].into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests;
