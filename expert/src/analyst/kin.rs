//! How records are linked to the alert: by ids that sensors wrote, by rare names, or by host, user or address and time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use casebook_evidence::facet::{Class, Facet, audit_event, job_ids};
use casebook_evidence::pointed;
use casebook_evidence::programs::{brought, file_name};
use casebook_protocol::{Bearing, EntityKind, Timestamp, Weight, apart};
use serde::Deserialize;

use super::account;
use super::answers::Answers;
use super::rec::Rec;
use super::seed::{Seed, Seeds};

/// How a record is linked to the alert, closest first. The tool `related` tells some of these links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kin {
    #[serde(skip)]
    Core,
    #[serde(rename = "same_process")]
    Same,
    /// The start of a process above.
    Above,
    /// Of a process below.
    Below,
    #[serde(rename = "same_connection", alias = "same_session")]
    Joined,
    /// It shares a rare name with the alert.
    #[serde(skip)]
    Named,
    /// It shares host, user or address with the alert and is near it in time.
    #[serde(skip)]
    Near,
}

/// Seconds that count as near the alert.
pub(super) const NEAR_SECONDS: f64 = 3600.0;
/// The same for a name in the Director's question.
pub(super) const FOLLOWED_SECONDS: f64 = 24.0 * 3600.0;

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

    /// True if the record is about an actor, and not only on a host whose name contains it.
    pub(super) fn has_actor(&self, rec: &Rec) -> bool {
        self.actors.iter().any(|actor| rec.names_beside_host(actor))
    }

    /// Seconds between the record and the alert.
    pub(super) fn apart(&self, rec: &Rec) -> f64 {
        rec.time.zip(self.anchor).map_or(f64::INFINITY, |(at, anchor)| apart(at, anchor))
    }

    fn names_two(&self, rec: &Rec) -> bool {
        self.told.iter().filter(|name| rec.names(name)).nth(1).is_some()
    }

    fn in_time(&self, rec: &Rec, within: f64) -> bool {
        self.apart(rec) <= within
    }
}

pub(super) fn alerted(recs: &[Rec]) -> impl Iterator<Item = &Rec> + Clone {
    recs.iter().filter(|rec| rec.kin == Some(Kin::Core))
}

/// Marks the alerted records: those that the alert points to, or else those with most names of the alert near its time.
/// `rare`: names of the alert in few records.
pub(super) fn mark_alerted(recs: &mut [Rec], seeds: &Seeds, answers: &Answers, rare: &[String]) {
    let core = core(recs, seeds, answers, rare);
    for (_, rec) in recs.iter_mut().enumerate().filter(|(place, _)| core.contains(place)) {
        rec.kin = Some(Kin::Core);
        // An alert is not evidence for its own claim.
        if rec.class() == Class::Alert {
            rec.shows.retain(|rule| rule.bearing != Bearing::Incriminating);
        }
    }
}

fn core(recs: &[Rec], seeds: &Seeds, answers: &Answers, rare: &[String]) -> Vec<usize> {
    if !seeds.records.is_empty() {
        let files: Vec<&str> = recs.iter().map(|r| r.file.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
        let meant: Vec<(&str, u64)> =
            seeds.records.iter().filter_map(|(file, line)| Some((pointed(&files, file)?, *line))).collect();
        return recs.iter().enumerate().filter(|(_, r)| meant.contains(&r.key())).map(|(i, _)| i).collect();
    }
    let Some(time) = seeds.times.first() else { return Vec::new() };
    // Negative before the alert.
    let apart = |rec: &Rec| rec.time.map_or(f64::INFINITY, |at| at.duration_since(*time).as_secs_f64());
    let best = |(before, after, least): (f64, f64, usize)| -> Vec<usize> {
        let close = recs.iter().enumerate().filter(|(_, rec)| (-before..=after).contains(&apart(rec)));
        let mut close: Vec<_> = close.map(|(i, rec)| (named(rec, seeds, answers, rare), apart(rec).abs(), i)).collect();
        // If two records have the same names of the alert, choose the nearer one.
        close.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
        let Some((most, nearest, _)) = close.first().copied().filter(|(named, ..)| *named >= least) else {
            return Vec::new();
        };
        let meant = close.iter().filter(|(named, apart, _)| *named == most && *apart <= nearest + 0.05);
        meant.map(|(.., i)| *i).take(4).collect()
    };
    // An alert is often made some time after the event.
    let late = [(3600.0, 90.0, 2 * NAMED), (86_400.0, 90.0, 3 * NAMED)];
    let exact = [(2.0, 2.0, NAMED), (90.0, 90.0, NAMED)];
    let windows = if seeds.of_event { [exact, late] } else { [late, exact] };
    // A time with fractions is that of one record, even if its only name is everywhere.
    let same = Some((0.000_5, 0.000_5, 1)).filter(|_| time.subsec_nanosecond() != 0);
    let mut found = same.into_iter().chain(windows.into_iter().flatten()).map(best);
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// Without a pointer in the alert, a record needs names that weigh this much: more than a host.
const NAMED: usize = 3;

/// How well a record matches the names of the alert: rare names count most, a host least.
fn named(rec: &Rec, seeds: &Seeds, answers: &Answers, rare: &[String]) -> usize {
    let tells = |seed: &Seed| match seed.kind {
        _ if rare.contains(&seed.text) => 3 * NAMED,
        EntityKind::Host => 1,
        _ if answers.is_common(&seed.text) => 1,
        _ => NAMED,
    };
    seeds.names.iter().filter(|seed| rec.names(&seed.text)).map(tells).sum()
}

/// The time of the alert on a correct clock, as far as known: that of the alerted record, or else the one in the alert
/// with most records around it.
pub(super) fn anchor(recs: &[Rec], seeds: &Seeds) -> Option<Timestamp> {
    let near = |t: Timestamp| recs.iter().filter(|r| r.time.is_some_and(|at| apart(at, t) <= 300.0)).count();
    let own = alerted(recs).filter_map(|rec| rec.time).min();
    own.or_else(|| seeds.times.iter().copied().rev().max_by_key(|t| near(*t)))
}

/// Links all records to the alerted ones, which are already marked. `names`: those that link a record wherever it is.
pub(super) fn link(recs: &mut [Rec], names: &[String], near: &Near) {
    let brought = brought_names(recs);
    // A log without hosts is that of one host.
    let hostless = |rec: &Rec| rec.facets.get(Facet::Host).is_none();
    let alone: BTreeSet<&str> = alerted(recs).filter(|rec| hostless(rec)).map(|rec| rec.file.as_str()).collect();
    let event = |rec: &'_ Rec| Some((rec.file.clone(), audit_event(&rec.fields)?));
    let events: BTreeMap<_, Kin> = recs.iter().filter_map(|rec| Some((event(rec)?, rec.tie?))).collect();
    let link = |rec: &Rec| {
        if rec.kin.is_some() {
            return rec.kin;
        }
        // Another Expert has the alerted record.
        let elsewhere = || alerted(recs).next().is_none() && near.in_time(rec, 2.0) && near.names_two(rec);
        if alerted(recs).any(|alerted| twin(alerted, rec)) || elsewhere() {
            return Some(Kin::Joined);
        }
        // The lines of one audit event belong together.
        let of_event = event(rec).and_then(|event| events.get(&event).copied());
        if let Some(tie) = [rec.tie, of_event].into_iter().flatten().min() {
            return Some(tie);
        }
        // A host is busy, but what a rule finds about an actor of the alert matters for a day.
        let shown = || rec.heaviest(Bearing::Incriminating) >= Some(Weight::Moderate) && near.has_actor(rec);
        if names.iter().any(|name| rec.names(name))
            || brings(rec, near.anchor) && brought.iter().any(|name| rec.names(name))
            || near.in_time(rec, FOLLOWED_SECONDS) && (near.is_scarce(rec) || shown())
        {
            return Some(Kin::Named);
        }
        let beside = || match rec.class() {
            Class::PackageOperation => hostless(rec),
            Class::ProcessStart | Class::ProcessAccess | Class::FileCreate | Class::RegistryChange | Class::Script => {
                hostless(rec) && alone.contains(rec.file.as_str())
            }
            _ => false,
        };
        let close = near.in_time(rec, near.within) && (near.subjects.iter().any(|s| rec.names(s)) || beside());
        close.then_some(Kin::Near)
    };
    let links: Vec<Option<Kin>> = recs.iter().map(link).collect();
    recs.iter_mut().zip(links).for_each(|(rec, kin)| rec.kin = kin);
}

/// The request of an alert about one, in another log.
fn twin(alerted: &Rec, rec: &Rec) -> bool {
    let same = |facet| alerted.facets.get(facet).is_some_and(|value| rec.facets.get(facet) == Some(value));
    let close = alerted.time.zip(rec.time).is_some_and(|(a, b)| apart(a, b) <= 2.0);
    close && rec.source != alerted.source && same(Facet::Url) && same(Facet::SrcIp)
}

/// Ids of jobs and sessions that records close to the alert, or of other logs about it, name.
pub(super) fn ids(recs: &[Rec]) -> Vec<String> {
    const MOST: usize = 8;
    let close = |kin| matches!(kin, Some(Kin::Core | Kin::Same | Kin::Above | Kin::Named));
    let linked = recs.iter().filter(|rec| close(rec.kin));
    let all = linked.flat_map(|rec| job_ids(&rec.fields, &rec.facets, &rec.raw));
    let mut seen = BTreeSet::new();
    all.filter(|id| seen.insert(id.clone())).take(MOST).collect()
}

/// A record that may show how a program came to the host.
fn brings(rec: &Rec, anchor: Option<Timestamp>) -> bool {
    let later = matches!((rec.time, anchor), (Some(at), Some(anchor)) if at > anchor);
    !later && matches!(rec.class(), Class::FileCreate | Class::HttpRequest | Class::ProcessStart)
}

/// Names of close programs in folders where any user may write, without those that many records have.
fn brought_names(recs: &[Rec]) -> BTreeSet<String> {
    let close = recs.iter().filter(|rec| rec.kin.or(rec.tie).is_some_and(|kin| kin <= Kin::Above));
    let programs = close.filter_map(|rec| rec.facets.get(Facet::Process)).filter(|path| brought(path));
    let names = programs.map(|path| file_name(path).to_lowercase());
    names.filter(|name| name.len() >= 4 && few(recs, name)).collect()
}

fn few(recs: &[Rec], name: &str) -> bool {
    recs.iter().filter(|rec| rec.names(name)).count() * 4 <= recs.len()
}

/// Values of the alerted records that few collected records share: outside addresses, user agents, and accounts,
/// services and tasks that were made.
pub(super) fn telling_values(recs: &[Rec]) -> BTreeSet<String> {
    let inside = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_private() || address.is_loopback(),
        IpAddr::V6(address) => address.is_loopback(),
    };
    let outside = |value: &&str| value.len() >= 7 && !value.parse().is_ok_and(inside);
    let wanted = [Facet::UserAgent, Facet::DstIp, Facet::SrcIp];
    let values = alerted(recs).flat_map(|rec| wanted.iter().filter_map(|f| rec.facets.get(*f))).filter(outside);
    values.chain(alerted(recs).filter_map(made)).filter(|value| few(recs, value)).map(str::to_owned).collect()
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

    /// The links of the records. The first one may be the alerted one.
    fn linked<const N: usize>(mut recs: [Rec; N], first_is_alerted: bool, near: &Near) -> [Option<Kin>; N] {
        if let [alerted, ..] = &mut recs[..] {
            alerted.kin = Some(Kin::Core).filter(|_| first_is_alerted);
        }
        link(&mut recs, &[], near);
        recs.map(|rec| rec.kin)
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
        let found = linked([alerted, own, later], true, &near(&[], &[]));
        assert_eq!(found, [Some(Kin::Core), Some(Kin::Joined), None]);
    }

    #[test]
    fn lines_of_one_audit_event_have_the_same_link() {
        let line = |serial| [("type", "EXECVE"), ("audit.time", "1.2"), ("audit.serial", serial)];
        let mut start = at(&line("7"), "2026-03-01T10:00:00Z", "audit");
        start.tie = Some(Kin::Below);
        let rest = at(&line("7"), "2026-03-01T10:00:00Z", "audit");
        let other = at(&line("8"), "2026-03-01T10:00:00Z", "audit");
        assert_eq!(linked([start, rest, other], false, &near(&[], &[])), [Some(Kin::Below), Some(Kin::Below), None]);
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
        assert_eq!(linked([scanner, busy, server], false, &near), [Some(Kin::Named), None, Some(Kin::Joined)]);
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
        let found = linked([alerted, child, neighbour, late], true, &near);
        assert_eq!(found, [Some(Kin::Core), Some(Kin::Below), Some(Kin::Near), None]);
    }
}
