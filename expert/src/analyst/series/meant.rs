//! Finds the sensor record that an alert of another product is about.

use super::*;

/// The last matching record before the alert: for sign-ins, a failed one from its address, or else a connection
/// from there to the same place, or a request from there for the same page.
pub(super) fn by<'c>(case: &'c Case, alert: &Rec) -> Option<&'c Rec> {
    const NEAR: f64 = 3600.0;
    const ABOUT: &[&str] = &["guess", "brute", "spray", "password", "login", "logon", "sign-in", "signin", "authentic"];
    let action = alert.facets.get(Facet::Action)?.to_ascii_lowercase();
    let sign_ins = ABOUT.iter().any(|w| action.contains(w));
    let (from, at) = (alert.facets.get(Facet::SrcIp)?, alert.time?);
    let apart = |rec: &Rec| rec.time.map_or(f64::INFINITY, |t| seconds(at, t));
    let same = |rec: &Rec, facet| rec.facets.get(facet).is_some_and(|v| alert.facets.get(facet) == Some(v));
    let alike = |rec: &&Rec| match rec.class() {
        Class::LogonFailure => sign_ins && rec.facets.get(Facet::SrcIp) == Some(from),
        Class::NetworkConnection => {
            !sign_ins && [Facet::SrcIp, Facet::DstIp, Facet::DstPort].into_iter().all(|facet| same(rec, facet))
        }
        Class::HttpRequest => same(rec, Facet::SrcIp) && page(rec).is_some_and(|known| page(alert) == Some(known)),
        _ => false,
    };
    let near = case.recs.iter().filter(alike).filter(|rec| (0.0..=NEAR).contains(&apart(rec)));
    near.min_by(|a, b| apart(a).total_cmp(&apart(b)).then_with(|| a.key().cmp(&b.key())))
}

/// The path without the query.
fn page(rec: &Rec) -> Option<&str> {
    rec.facets.get(Facet::Url)?.split(['?', '#']).next()
}
