//! What stands beside the alerted record: the sign-in and the command before it, and what an address is called.

use std::collections::BTreeSet;

use casebook_agent::mind::{CallRequest, Done};
use casebook_agent::worker::call;
use serde_json::json;

use super::{ACCEPTED, answer};
use crate::analyst::Case;
use crate::analyst::facet::{Class, Facet};
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
    let connection = |i: &usize| case.recs.get(*i).filter(|r| r.class() == Class::NetworkConnection);
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
