//! Whether an explanation is one of what was alerted. A dismissal hangs on it, so it has to be of the alerted thing itself,
//! and nothing on the way to it may come from where anybody can put a program.

use super::{Group, Pick};
use crate::analyst::Case;
use crate::analyst::facet::{Class, Facet};
use crate::analyst::link::{Kin, brought};
use crate::analyst::rec::Rec;
use casebook_protocol::Bearing;

/// The group's records explain what the alert is about. That a program was started by an update says nothing of whom it
/// then connects to, and an update that a program on somebody's desktop started is none.
pub(super) fn explains(group: &Group<'_>, case: &Case) -> bool {
    let shown = |p: &&Pick<'_>| p.rec.shows.iter().any(|b| b.bearing == Bearing::Exonerating);
    let wire = case.alerted().iter().any(|rec| on_the_network(rec));
    let alike = !wire || group.0.iter().filter(shown).any(|p| on_the_network(p.rec));
    let close = case.recs.iter().enumerate().filter(|(i, _)| case.links.kin(*i).is_some_and(|k| k <= Kin::Ancestor));
    alike && !group.0.iter().map(|p| p.rec).chain(close.map(|(_, rec)| rec)).any(runs_from_anywhere)
}

fn on_the_network(rec: &Rec) -> bool {
    matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
}

/// A program, or what started it, lies where any user may write.
fn runs_from_anywhere(rec: &Rec) -> bool {
    [Facet::Process, Facet::Parent].iter().any(|facet| rec.facets.get(*facet).is_some_and(brought))
}
