//! How records are linked to the alert: by ids that sensors wrote, by rare names, or by host, user or address and time.

use std::collections::{BTreeMap, BTreeSet};

use casebook_evidence::facet::{Class, Facet, audit_event, job_ids};
use casebook_evidence::programs::brought;
use casebook_protocol::{Bearing, Timestamp, Weight};

use super::account;
use super::rec::{Rec, Rule};

/// How a record is linked to the alert, closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kin {
    Core,
    /// The same process.
    Same,
    /// The start of a process above.
    Above,
    /// Of a process below.
    Below,
    /// The same connection or session.
    Joined,
    /// It shares a rare name with the alert.
    Named,
    /// It shares host, user or address with the alert and is near it in time.
    Near,
}

/// Seconds that count as near the alert.
pub(super) const NEAR_SECONDS: f64 = 3600.0;
/// The same for a name in the Director's question.
pub(super) const FOLLOWED_SECONDS: f64 = 24.0 * 3600.0;

pub(super) fn seconds(a: Timestamp, b: Timestamp) -> f64 {
    (a.as_nanosecond() - b.as_nanosecond()) as f64 / 1e9
}

/// Moves `at` by `by` seconds and cuts fractions. None if out of range.
pub(super) fn moved(at: Timestamp, by: i64) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second().saturating_add(by)).ok()
}

/// What makes a record near.
pub(super) struct Near {
    pub(super) subjects: BTreeSet<String>,
    pub(super) anchor: Option<Timestamp>,
    /// In seconds.
    pub(super) within: f64,
    /// Users and addresses among the subjects.
    pub(super) actors: BTreeSet<String>,
    /// Sources in which few records have a name of the alert, with the name.
    pub(super) scarce: Vec<(String, String)>,
    /// All names of the alert but hosts.
    pub(super) told: Vec<String>,
}

impl Near {
    pub(super) fn is_scarce(&self, rec: &Rec) -> bool {
        self.scarce.iter().any(|(source, name)| *source == rec.source && rec.names(name))
    }

    fn in_time(&self, rec: &Rec, within: f64) -> bool {
        matches!((rec.time, self.anchor), (Some(at), Some(anchor)) if seconds(at, anchor).abs() <= within)
    }
}

pub(super) fn of(recs: &[Rec], core: &BTreeSet<usize>, names: &[String], near: &Near) -> Vec<Option<Kin>> {
    let brought = brought_names(recs, core);
    // A log without hosts is that of one host.
    let hostless = |rec: &Rec| rec.facets.get(Facet::Host).is_none();
    let alone: BTreeSet<&str> =
        core.iter().filter_map(|i| recs.get(*i)).filter(|rec| hostless(rec)).map(|rec| rec.file.as_str()).collect();
    let event = |rec: &'_ Rec| Some((rec.file.clone(), audit_event(&rec.fields)?));
    let events: BTreeMap<_, Kin> = recs.iter().filter_map(|rec| Some((event(rec)?, rec.tie?))).collect();
    let link = |(index, rec): (usize, &Rec)| {
        if core.contains(&index) {
            return Some(Kin::Core);
        }
        if core.iter().filter_map(|i| recs.get(*i)).any(|alerted| twin(alerted, rec)) {
            return Some(Kin::Joined);
        }
        // Another Expert has the alerted record.
        let told = || near.told.iter().filter(|name| rec.names(name)).take(2).count() == 2;
        if core.is_empty() && near.in_time(rec, 2.0) && told() {
            return Some(Kin::Joined);
        }
        // The lines of one audit event belong together.
        let of_event = event(rec).and_then(|event| events.get(&event).copied());
        if let Some(tie) = [rec.tie, of_event].into_iter().flatten().min() {
            return Some(tie);
        }
        if near.in_time(rec, FOLLOWED_SECONDS) && near.is_scarce(rec) {
            return Some(Kin::Named);
        }
        if names.iter().any(|name| rec.names(name)) || brings(rec, near.anchor) && brought.iter().any(|n| rec.names(n))
        {
            return Some(Kin::Named);
        }
        let of_packages = rec.class() == Class::PackageOperation;
        let beside = || hostless(rec) && (of_packages || of_programs(rec) && alone.contains(rec.file.as_str()));
        // A host is busy, but what a rule finds about an actor of the alert matters for a day.
        let shown = || {
            let serious = |rule: &Rule| rule.bearing == Bearing::Incriminating && rule.weight >= Weight::Moderate;
            rec.shows.iter().any(serious) && near.actors.iter().any(|actor| rec.names_beside_host(actor))
        };
        if near.in_time(rec, FOLLOWED_SECONDS) && shown() {
            return Some(Kin::Named);
        }
        let close = near.in_time(rec, near.within) && (near.subjects.iter().any(|s| rec.names(s)) || beside());
        close.then_some(Kin::Near)
    };
    recs.iter().enumerate().map(link).collect()
}

/// The request of an alert about one, in another log.
fn twin(alerted: &Rec, rec: &Rec) -> bool {
    let same = |facet| alerted.facets.get(facet).is_some_and(|value| rec.facets.get(facet) == Some(value));
    let close = alerted.time.zip(rec.time).is_some_and(|(a, b)| seconds(a, b).abs() <= 2.0);
    close && rec.source != alerted.source && same(Facet::Url) && same(Facet::SrcIp)
}

/// Ids of jobs and sessions that records close to the alert, or of other logs about it, name.
pub(super) fn ids(recs: &[Rec], kin: &[Option<Kin>]) -> Vec<String> {
    const MOST: usize = 8;
    let linked =
        |kin: &Option<Kin>| kin.is_some_and(|kin| matches!(kin, Kin::Core | Kin::Same | Kin::Above | Kin::Named));
    let linked = recs.iter().zip(kin).filter(|(_, kin)| linked(kin)).map(|(rec, _)| rec);
    let all = linked.flat_map(|rec| job_ids(&rec.fields, &rec.facets, &rec.raw));
    let mut seen = BTreeSet::new();
    all.filter(|id| seen.insert(id.clone())).take(MOST).collect()
}

const fn of_programs(rec: &Rec) -> bool {
    matches!(
        rec.facets.class,
        Some(Class::ProcessStart | Class::ProcessAccess | Class::FileCreate | Class::RegistryChange | Class::Script)
    )
}

/// A record that may show how a program came to the host.
fn brings(rec: &Rec, anchor: Option<Timestamp>) -> bool {
    let later = matches!((rec.time, anchor), (Some(at), Some(anchor)) if at > anchor);
    !later && matches!(rec.class(), Class::FileCreate | Class::HttpRequest | Class::ProcessStart)
}

/// Names of close programs in folders where any user may write, without those that many records have.
fn brought_names(recs: &[Rec], core: &BTreeSet<usize>) -> BTreeSet<String> {
    let close = recs.iter().enumerate().filter(|(i, rec)| core.contains(i) || rec.tie.is_some_and(|t| t <= Kin::Above));
    let programs = close.filter_map(|(_, rec)| rec.facets.get(Facet::Process)).filter(|path| brought(path));
    let names = programs.filter_map(|path| path.rsplit(['/', '\\']).next()).map(str::to_lowercase);
    names.filter(|name| name.len() >= 4 && few(recs, name)).collect()
}

fn few(recs: &[Rec], name: &str) -> bool {
    recs.iter().filter(|rec| rec.names(name)).count() * 4 <= recs.len()
}

/// Values of the alerted records that few collected records share: outside addresses, user agents, and accounts,
/// services and tasks that were made.
pub(super) fn telling_values(recs: &[Rec], core: &BTreeSet<usize>) -> BTreeSet<String> {
    let outside = |value: &&str| {
        let inside = |a: std::net::IpAddr| match a {
            std::net::IpAddr::V4(a) => a.is_private() || a.is_loopback(),
            std::net::IpAddr::V6(a) => a.is_loopback(),
        };
        value.len() >= 7 && !value.parse().is_ok_and(inside)
    };
    let alerted = || core.iter().filter_map(|i| recs.get(*i));
    let of = |rec: &'_ Rec| {
        let wanted = [Facet::UserAgent, Facet::DstIp, Facet::SrcIp];
        wanted.into_iter().filter_map(|f| rec.facets.get(f)).map(str::to_owned).collect::<Vec<_>>()
    };
    let values = alerted().flat_map(of).filter(|value| outside(&value.as_str()));
    values.chain(alerted().filter_map(made).map(str::to_owned)).filter(|value| few(recs, value)).collect()
}

/// The name of a created account, service or task. Records of its use contain the name.
fn made(rec: &Rec) -> Option<&str> {
    let name = match rec.class() {
        Class::AccountChange => rec.field(&["targetusername", "targetuser"]),
        Class::ScheduledTask | Class::ServiceChange => rec.facets.get(Facet::Object),
        _ => None,
    };
    name.filter(|name| name.len() >= 4 && !account::of_system(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_what_was_made_links_the_records_of_its_use() {
        let made_as = |fields: &[(&str, &str)]| made(&Rec::with(fields)).map(str::to_owned);
        let account = [("EventID", "4720"), ("TargetUserName", "helper"), ("SubjectUserName", "mara")];
        assert_eq!(made_as(&account).as_deref(), Some("helper"));
        assert_eq!(made_as(&[("EventID", "4624"), ("TargetUserName", "helper")]), None);
        assert_eq!(made_as(&[("EventID", "4720"), ("TargetUserName", "WEB01$")]), None);
    }

    fn linked(recs: &[Rec], core: &[usize], near: &Near) -> Vec<Option<Kin>> {
        of(recs, &core.iter().copied().collect(), &[], near)
    }

    fn near(told: &[&str], scarce: &[(&str, &str)]) -> Near {
        Near {
            subjects: BTreeSet::new(),
            anchor: Some("2026-03-01T10:00:00Z".parse().unwrap()),
            within: NEAR_SECONDS,
            actors: BTreeSet::new(),
            scarce: scarce.iter().map(|(source, name)| ((*source).to_owned(), (*name).to_owned())).collect(),
            told: told.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn at(fields: &[(&str, &str)], time: &str, source: &str) -> Rec {
        let mut rec = Rec::with(fields);
        rec.time = Some(time.parse().unwrap());
        source.clone_into(&mut rec.source);
        rec
    }

    #[test]
    fn request_of_an_alert_is_found_in_the_log_of_the_server() {
        let request = [("src_ip", "192.0.2.9"), ("url", "/a/../b"), ("method", "GET")];
        let alerted = at(&request, "2026-03-01T10:00:00Z", "ids");
        let own = at(&request, "2026-03-01T10:00:01Z", "web");
        let later = at(&request, "2026-03-01T10:00:09Z", "web");
        let found = linked(&[alerted, own, later], &[0], &near(&[], &[]));
        assert_eq!(found, [Some(Kin::Core), Some(Kin::Joined), None]);
    }

    #[test]
    fn lines_of_one_audit_event_have_the_same_link() {
        let line = |serial| [("type", "EXECVE"), ("audit.time", "1.2"), ("audit.serial", serial)];
        let mut start = at(&line("7"), "2026-03-01T10:00:00Z", "audit");
        start.tie = Some(Kin::Below);
        let rest = at(&line("7"), "2026-03-01T10:00:00Z", "audit");
        let other = at(&line("8"), "2026-03-01T10:00:00Z", "audit");
        assert_eq!(linked(&[start, rest, other], &[], &near(&[], &[])), [Some(Kin::Below), Some(Kin::Below), None]);
    }

    #[test]
    fn names_link_where_they_are_scarce_or_two_in_the_same_moment() {
        let mut scanner = at(&[], "2026-03-01T09:30:00Z", "scanner");
        scanner.says("scan of 192.0.2.4 started");
        let mut busy = at(&[], "2026-03-01T09:30:00Z", "flows");
        busy.says("192.0.2.4 to 192.0.2.5");
        let mut server = at(&[], "2026-03-01T10:00:01Z", "web");
        server.says("192.0.2.9 /a.php");
        let near = near(&["192.0.2.9", "/a.php"], &[("scanner", "192.0.2.4")]);
        assert_eq!(linked(&[scanner, busy, server], &[], &near), [Some(Kin::Named), None, Some(Kin::Joined)]);
    }

    #[test]
    fn closest_link_counts() {
        let at = |text: &str| Some(text.parse().unwrap());
        let mut alerted = Rec::with(&[("user", "mara"), ("host", "web1")]);
        let mut child = Rec::with(&[("user", "mara"), ("host", "web1")]);
        child.tie = Some(Kin::Below);
        let mut neighbour = Rec::with(&[("user", "mara"), ("host", "web1")]);
        neighbour.says("mara on web1");
        let mut late = Rec::with(&[("user", "mara")]);
        late.says("mara");
        (alerted.time, neighbour.time, late.time) =
            (at("2026-03-01T10:00:00Z"), at("2026-03-01T10:20:00Z"), at("2026-03-01T15:00:00Z"));
        let near = Near {
            subjects: BTreeSet::from(["mara".into()]),
            anchor: alerted.time,
            within: NEAR_SECONDS,
            actors: BTreeSet::new(),
            scarce: Vec::new(),
            told: Vec::new(),
        };
        let found = of(&[alerted, child, neighbour, late], &BTreeSet::from([0]), &[], &near);
        assert_eq!(found, [Some(Kin::Core), Some(Kin::Below), Some(Kin::Near), None]);
    }
}
