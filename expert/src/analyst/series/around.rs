//! Other records around an alert that belong to it by kind: package installations, and requests that a scanner
//! sent to a site.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_protocol::Timestamp;
use serde_json::json;

use super::answer;
use super::beside::{AROUND, by_the_system, first_of, of_unix};
use crate::analyst::Case;
use crate::analyst::link::moved;
use crate::analyst::rec::Rec;
use casebook_evidence::facet::{Class, Facet};

/// Seconds before and after such a change in which a package installation may be its cause.
const INSTALLING: (i64, i64) = (-120, 60);

/// Package installations around the alert or the change: packages create accounts, services and modules. The
/// package log may belong to another Expert.
pub(super) fn packages(case: &Case) -> Option<CallRequest> {
    const TERMS: [&str; 6] =
        ["status installed", "status half-configured", "Commandline:", "Installed:", "Upgraded:", "Erased:"];
    let (_, at) = change(case)?;
    let (from, to) = (moved(at, INSTALLING.0)?, moved(at, INSTALLING.1)?);
    Some(call(
        "search",
        &json!({"terms": TERMS, "mode": "any", "near": at, "from": from, "to": to, "limit": 100, "include_fields": true}),
    ))
}

/// The alerted change of a Unix system and its time, or the time of the alert if another Expert has the record.
fn change(case: &Case) -> Option<(Option<&Rec>, Timestamp)> {
    let alerted = case.alerted();
    if alerted.is_empty() {
        return Some((None, case.anchor?));
    }
    let rec = alerted.into_iter().find(|rec| of_unix(rec) && by_the_system(rec))?;
    Some((Some(rec), rec.time?))
}

/// For each package log: the first record of the installation, and the nearest before and after the change.
pub(in crate::analyst) fn installed(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let mut places = BTreeSet::new();
    let (Some((core, at)), Some(found)) = (change(case), packages(case).and_then(|r| answer(&r, done))) else {
        return places;
    };
    let found: BTreeSet<(String, u64)> = found.places().collect();
    let of = |rec: &&Rec| {
        rec.class() == Class::PackageOperation
            && found.contains(&(rec.file.clone(), rec.line))
            && core.is_none_or(|core| same_host_or_none(rec, core))
    };
    let mut logs: BTreeMap<&str, Vec<&Rec>> = BTreeMap::new();
    for rec in case.recs.iter().filter(of) {
        logs.entry(&rec.file).or_default().push(rec);
    }
    for all in logs.values() {
        let first = all.iter().min_by_key(|r| (r.time, r.line));
        let before = all.iter().filter(|r| r.time <= Some(at)).max_by_key(|r| (r.time, r.line));
        let next = all.iter().filter(|r| r.time > Some(at)).min_by_key(|r| (r.time, r.line));
        places.extend(first.into_iter().chain(before).chain(next).map(|r| (r.file.clone(), r.line)));
    }
    places
}

/// True if both have the same host, or one has none: a package log belongs to the host that it is on.
fn same_host_or_none(a: &Rec, b: &Rec) -> bool {
    match (a.facets.get(Facet::Host), b.facets.get(Facet::Host)) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        _ => true,
    }
}

/// What the address of a refused request sent to the same server and was accepted: a scanner uses what it finds.
pub(super) fn sent_to(rec: &Rec) -> Option<CallRequest> {
    let is = |facet| rec.facets.field_of(facet, &rec.fields);
    let (from, method, status) = (is(Facet::SrcIp)?, is(Facet::HttpMethod)?, is(Facet::HttpStatus)?);
    let at = rec.time.filter(|_| rec.class() == Class::HttpRequest && status.1.starts_with('4'))?;
    let conditions = json!([
        {"field": from.0, "op": "eq", "value": from.1},
        {"field": method.0, "op": "regex", "value": "^(?i:POST|PUT|PATCH|DELETE)$"},
        {"field": status.0, "op": "regex", "value": "^[23]"},
    ]);
    let since = moved(at, -AROUND)?;
    Some(call(
        "search",
        &json!({"where": conditions, "from": since, "order": "time", "limit": 300, "include_fields": true}),
    ))
}

/// The first such request for each path.
pub(in crate::analyst) fn let_through(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    const FEW: usize = 12;
    /// Requests repeated this often come from the page itself.
    const OFTEN: usize = 20;
    let found = case.core.iter().filter_map(|i| sent_to(case.recs.get(*i)?)).find_map(|r| answer(&r, done));
    let places: BTreeSet<(String, u64)> = found.iter().flat_map(|a| a.places().collect::<Vec<_>>()).collect();
    // Path parts with digits are ids of sessions and objects.
    let part = |part: &str| if part.contains(|c: char| c.is_ascii_digit()) { "#".to_owned() } else { part.to_owned() };
    let to = |rec: &Rec| {
        let path = rec.facets.get(Facet::Url)?.split('?').next()?;
        Some(path.split('/').map(part).collect::<Vec<_>>().join("/"))
    };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for path in case.recs.iter().filter(|r| places.contains(&(r.file.clone(), r.line))).filter_map(to) {
        *times.entry(path).or_default() += 1;
    }
    let few = |rec: &Rec| to(rec).filter(|path| times.get(path).is_none_or(|n| *n <= OFTEN));
    let mut first: Vec<&Rec> = first_of(case, &places, few).into_values().collect();
    first.sort_by_key(|rec| (rec.time, rec.key()));
    first.into_iter().take(FEW).map(|r| (r.file.clone(), r.line)).collect()
}
