//! Decides whether an explanation applies to the alerted occurrence, because a dismissal depends on it
//! (docs/analyst.md):
//! - it must be about the alerted occurrence itself
//! - no program on the way to it may be in a place where any user can write
//! - it must rest on programs that only an administrator can put in their places

use casebook_evidence::facet::{Class, Facet, process_keys};
use casebook_evidence::programs::{brought, is_harmless, of_protection, of_the_system};
use casebook_protocol::{Bearing, Weight};

use super::{Group, Pick};
use crate::analyst::kin::Kin;
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account};

/// The records that explain the alerted activity. An update that started a program does not explain the program's
/// connections.
pub(super) fn explaining<'a>(group: &Group<'a>, case: &Case, wire: bool) -> Vec<&'a Rec> {
    let close = case.with(|kin| kin <= Kin::Above);
    if group.iter().map(|p| p.rec).chain(close).any(runs_from_anywhere) {
        return Vec::new();
    }
    let own: Vec<String> = case.alerted().flat_map(|rec| process_keys(&rec.fields, &rec.facets).0).collect();
    let is_it = |rec: &Rec| process_keys(&rec.fields, &rec.facets).0.iter().any(|key| own.contains(key));
    let alerted = group.iter().any(|p| p.kin == Kin::Core);
    // Other actions of the actor explain nothing, even in the same moment. Only the start of the alerted process
    // counts, what it started if that can do no harm, and what other sensors of the network recorded of a connection.
    let of_it = |p: &&Pick<'_>| match p.kin {
        Kin::Core => !wire || on_the_network(p.rec),
        Kin::Same if wire => alerted && on_the_network(p.rec),
        Kin::Joined => wire && on_the_network(p.rec),
        Kin::Same => p.rec.class() == Class::ProcessStart && is_it(p.rec),
        Kin::Below => !wire && is_harmless(&p.rec.facets),
        Kin::Named => !wire && case.round > 1 && on_the_network(p.rec),
        Kin::Above | Kin::Near => false,
    };
    group.iter().filter(of_it).map(|p| p.rec).filter(|rec| holds(rec)).collect()
}

/// True if a rule explains the record, by programs and parents that only an administrator can put there.
fn holds(rec: &Rec) -> bool {
    let explains = rec.shows.iter().any(|r| r.bearing == Bearing::Exonerating && r.weight >= Weight::Moderate);
    let placed = |facet| rec.facets.get(facet).is_none_or(|path| is_placed(path, rec));
    // Any user can make some system tools run any command (`rpm --eval`, `make`).
    let parent = rec.facets.get(Facet::Parent).is_none_or(|path| !path.starts_with('/')) || privileged(rec);
    explains && placed(Facet::Process) && placed(Facet::Parent) && parent
}

pub(super) fn on_the_network(rec: &Rec) -> bool {
    matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
}

/// True if the program or its parent is in a folder where any user may write.
fn runs_from_anywhere(rec: &Rec) -> bool {
    let anywhere = |path: &str| brought(path) && !of_protection(path);
    [Facet::Process, Facet::Parent].iter().any(|facet| rec.facets.get(*facet).is_some_and(anywhere))
}

/// The machine account: a user who can run programs under it could write anywhere. On the network it has the
/// name of its host.
fn privileged(rec: &Rec) -> bool {
    let host = rec.facets.get(Facet::Host).and_then(|host| host.split('.').next()).unwrap_or_default();
    let machine = |user: &str| {
        let name = user.rsplit('\\').next().and_then(|name| name.strip_suffix('$'));
        name.is_some_and(|name| !name.is_empty() && name.eq_ignore_ascii_case(host))
    };
    let user = rec.facets.get(Facet::User);
    user.is_some_and(|user| matches!(user, "root" | "0") || account::of_system(user) || machine(user))
}

/// Only an administrator can put a program there, or the machine itself runs it. A name without a folder says nothing.
fn is_placed(path: &str, rec: &Rec) -> bool {
    let absolute = path.starts_with('/') || path.get(1..3) == Some(":\\");
    of_the_system(path) || absolute && !brought(path) && !path.contains("..") && privileged(rec)
}
