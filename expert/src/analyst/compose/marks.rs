//! What findings amount to beside others: a record that says little alone.

use casebook_agent::mind::Done;
use casebook_protocol::{Bearing, FindingDraft, Weight};

use super::cite::cite;
use super::{Group, on_the_wire};
use crate::analyst::Case;
use crate::analyst::facet::{Class, Facet};
use crate::analyst::link::seconds;
use crate::analyst::rec::Rec;

/// A sign-in from an address that had guessed is what the guesses were for.
pub(super) fn mark_sign_ins(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case, done: &[Done]) {
    let places = crate::analyst::series::after_guesses(case, done);
    let cited = groups.iter().flat_map(|g| &g.0).filter(|p| {
        let (file, line) = p.rec.key();
        p.rec.facets.get(Facet::Outcome) != Some("failure")
            && p.rec.class() == Class::Authentication
            && places.contains(&(file.to_owned(), line))
    });
    let cited: Vec<_> = cited.map(|p| cite(p.rec)).collect();
    for finding in findings.iter_mut().filter(|f| f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": sign-in from an address that had guessed");
        finding.bearing = Bearing::Incriminating;
        finding.weight = Weight::Strong;
        finding.about_alert = true;
        finding.technique = Some("T1078".into());
    }
}

/// A program that was fetched from the very host that the alerted connection goes to, on another port right after it.
pub(super) fn mark_fetches(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case) {
    const RIGHT_AFTER: f64 = 3600.0;
    let ends = |rec: &Rec| {
        let get = |facet| rec.facets.get(facet).map(str::to_owned);
        Some((get(Facet::SrcIp)?, get(Facet::DstIp)?, get(Facet::DstPort)?))
    };
    let alerted = case.alerted();
    let goes_there = |rec: &Rec| {
        let Some((from, to, port)) = ends(rec) else { return false };
        alerted.iter().filter(|core| on_the_wire(core) && core.class() != Class::HttpRequest).any(|core| {
            let after =
                matches!((rec.time, core.time), (Some(a), Some(b)) if (0.0..=RIGHT_AFTER).contains(&seconds(b, a)));
            after && ends(core).is_some_and(|(f, t, p)| f == from && t == to && p != port)
        })
    };
    let fetched = groups.iter().flat_map(|g| &g.0).filter(|p| {
        p.rec.class() == Class::HttpRequest
            && p.rec.shows.iter().any(|b| b.id.starts_with("executable-download"))
            && goes_there(p.rec)
    });
    let cited: Vec<_> = fetched.map(|p| cite(p.rec)).collect();
    for finding in findings.iter_mut().filter(|f| f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": program fetched from the host that the alerted connection goes to");
        finding.bearing = Bearing::Incriminating;
        finding.weight = finding.weight.max(Weight::Strong);
        finding.about_alert = true;
        finding.technique = Some("T1105".into());
    }
}
