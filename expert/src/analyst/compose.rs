//! Turns records into findings: decides which records matter, groups those of one occurrence, and states what
//! they show.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::Done;
use casebook_protocol::{Bearing, FindingDraft, TimeBasis, Weight, one_line};
use casebook_trust::claim;

mod cite;
mod draft;
mod excuse;
mod harmless;
mod marks;
mod rank;

pub(super) use cite::cite;
use draft::drafts;
use marks::{mark_fetches, mark_networks, mark_shells, mark_sign_ins, mark_taken_roles};
use rank::{hands_on, rank, wraps};

use super::behaviour::Behaviour;
use super::link::{Kin, flow_keys, process_keys, seconds};
use super::rec::Rec;
use super::{Case, account, describe, logon};
use casebook_evidence::facet::{Class, Facet};

/// Findings of one Expert in one round, the strongest first.
const MOST: usize = 40;
/// Records of one kind of activity that are described one by one. Of more, only the first and the last are
/// described.
const ONE_BY_ONE: usize = 8;
/// Bytes sent in one connection that make it stand out.
const MUCH: u64 = 1_000_000;
/// The rank of the first and the last record of the alerted activity.
const END: u32 = 350;
const CITED: usize = 6;
/// Records that one explanation cites: a dismissal explains each.
const EXPLAINED: usize = 24;

struct Pick<'a> {
    rec: &'a Rec,
    kin: Kin,
    rank: u32,
    /// One of the few records that were searched for in addition to the alert.
    end: bool,
}

/// Records of one occurrence, the main one first.
struct Group<'a>(Vec<Pick<'a>>);

pub(super) fn findings(case: &Case, done: &[Done]) -> Vec<FindingDraft> {
    let picks = thin_out(picks(case));
    let mut groups = group(picks, excuse::wire(case));
    let others = |g: &Group<'_>| g.0.iter().all(|p| p.kin > Kin::Descendant && case.of_others(p.rec));
    groups.sort_by_key(|g| (others(g), std::cmp::Reverse(g.0.iter().map(|p| p.rank).max())));
    groups.truncate(MOST);
    join_alike(&mut groups, others);
    groups.sort_by_key(|g| g.0.first().and_then(|p| p.rec.time));
    let mut findings: Vec<FindingDraft> = groups.iter().flat_map(|g| drafts(g, case)).collect();
    if case.round == 1 {
        findings.extend(super::absence::findings(case, done));
        findings.extend(super::series::findings(case, done));
        mark_sign_ins(&mut findings, &groups, case, done);
        mark_fetches(&mut findings, &groups, case);
        mark_shells(&mut findings, &groups, case);
        mark_networks(&mut findings, &groups, case);
        mark_taken_roles(&mut findings, &groups, case);
    }
    findings.retain(|f| !case.journal.iter().any(|t| t.contains(&one_line(&f.claim, claim::NOTED))));
    findings
}

fn picks(case: &Case) -> Vec<Pick<'_>> {
    let mut picks: Vec<Pick<'_>> = Vec::new();
    for (index, rec) in case.recs.iter().enumerate() {
        let Some(kin) = case.links.kin(index).or_else(|| instruction(rec).then_some(Kin::Near)) else { continue };
        // Keep the first and the last record of any kind.
        let end = case.links.is_end(index).then_some(END);
        if let Some(rank) = rank(rec, kin, case).max(end).filter(|_| case.asked_for(rec)) {
            picks.push(Pick { rec, kin, rank, end: end.is_some() });
        }
    }
    if case.round == 1 {
        picks.extend(around_the_burst(case, &picks));
    }
    few_around(picks, case)
}

/// Of records that are only near the alert, keeps the nearest few of each source.
fn few_around<'a>(picks: Vec<Pick<'a>>, case: &Case) -> Vec<Pick<'a>> {
    const FEW: usize = 4;
    let distance = |p: &Pick<'_>| match (p.rec.time, case.anchor) {
        (Some(at), Some(anchor)) => (seconds(at, anchor).abs() * 1000.0) as u64,
        _ => u64::MAX,
    };
    let context =
        |p: &Pick<'_>| (p.kin == Kin::Near && p.rank < 90) || (p.kin == Kin::Named && case.round > 1 && !grave(p.rec));
    let (mut near, mut kept): (Vec<_>, Vec<_>) = picks.into_iter().partition(context);
    near.sort_by_key(|p| (!case.shares_actor(p.rec), distance(p), p.rec.file.clone(), p.rec.line));
    let shared: BTreeSet<&str> =
        near.iter().filter(|p| case.shares_actor(p.rec)).map(|p| p.rec.source.as_str()).collect();
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    near.retain(|p| {
        let count = taken.entry(p.rec.source.as_str()).or_default();
        *count += 1;
        *count <= FEW && (p.kin == Kin::Named || case.shares_actor(p.rec) || !shared.contains(p.rec.source.as_str()))
    });
    kept.extend(near);
    kept
}

fn instruction(rec: &Rec) -> bool {
    rec.shows.iter().any(|b| is_instruction(b))
}

fn is_instruction(behaviour: &Behaviour) -> bool {
    behaviour.id.contains("instruction") || behaviour.id.contains("prompt-injection")
}

/// The last record of the subject before its burst of activity and the first after it.
fn around_the_burst<'a>(case: &'a Case, picked: &[Pick<'a>]) -> Vec<Pick<'a>> {
    let close: Vec<&Rec> = picked.iter().filter(|p| p.kin <= Kin::Named).map(|p| p.rec).collect();
    let times = || close.iter().filter_map(|r| r.time);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return Vec::new() };
    let users: BTreeSet<&str> = case.core.iter().filter_map(|i| case.recs.get(*i)?.facets.get(Facet::User)).collect();
    let own = |rec: &&Rec| {
        !logon::upkeep(rec)
            && rec.facets.get(Facet::User).is_some_and(|u| users.contains(u) && !account::of_system(u))
            && matches!(
                rec.class(),
                Class::Authentication
                    | Class::ApiCall
                    | Class::TokenEvent
                    | Class::AccountChange
                    | Class::Other
                    | Class::LogonFailure
            )
    };
    let before = case.recs.iter().filter(own).filter(|r| r.time.is_some_and(|t| t < first)).max_by_key(|r| r.time);
    let after = case.recs.iter().filter(own).filter(|r| r.time.is_some_and(|t| t > last)).min_by_key(|r| r.time);
    let taken: BTreeSet<(&str, u64)> = picked.iter().map(|p| p.rec.key()).collect();
    before
        .into_iter()
        .chain(after)
        .filter(|r| !taken.contains(&r.key()))
        .map(|rec| Pick { rec, kin: Kin::Near, rank: 90, end: false })
        .collect()
}

/// Of many equal records, keeps the first and the last, and then the same for records of one kind. Serious and
/// alerted records stay.
fn thin_out(picks: Vec<Pick<'_>>) -> Vec<Pick<'_>> {
    let same = thin_by(picks, describe::kind_of_activity, false);
    thin_by(same, describe::family, true)
}

fn thin_by<'a>(picks: Vec<Pick<'a>>, key: fn(&Rec) -> String, keep_grave: bool) -> Vec<Pick<'a>> {
    let excused = picks.iter().any(|p| p.kin == Kin::Core && excused(p.rec));
    let mut kinds: BTreeMap<String, Vec<Pick<'_>>> = BTreeMap::new();
    for pick in picks {
        kinds.entry(key(pick.rec)).or_default().push(pick);
    }
    let mut kept = Vec::new();
    for (_, mut same) in kinds {
        same.sort_by_key(|p| (p.rec.time, p.rec.file.clone(), p.rec.line));
        if same.len() > ONE_BY_ONE {
            let last = same.pop();
            let mut first = true;
            let most = much(&same.iter().map(|p| p.rec).collect::<Vec<_>>());
            let mut shown: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
            same.retain(|p| {
                let times = shown.entry(p.rec.shows.iter().map(|b| b.id.as_str()).collect()).or_default();
                *times += 1;
                std::mem::take(&mut first)
                    || most.contains(&sent(p.rec))
                    || p.kin <= Kin::Core
                    || p.kin == Kin::Ancestor
                    // A dismissal explains each of them.
                    || excused && p.kin == Kin::Descendant
                    || p.end
                    // The family of a request contains what the request shows. Other behaviours are repeated
                    // only a few times: a file that a hundred commands write is one action.
                    || (keep_grave && grave(p.rec) && *times <= ONE_BY_ONE && p.rec.class() != Class::HttpRequest)
            });
            same.extend(last);
        }
        kept.extend(same);
    }
    kept
}

/// The largest amounts sent, if they stand out: at least a megabyte, or many times the usual amount.
pub(super) fn much(same: &[&Rec]) -> Vec<u64> {
    let mut sorted: Vec<u64> = same.iter().map(|rec| sent(rec)).collect();
    sorted.sort_unstable();
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let apart = |bytes: &u64| *bytes >= MUCH || (*bytes >= MUCH / 10 && *bytes >= usual.saturating_mul(20));
    sorted.into_iter().rev().take(2).filter(apart).collect()
}

/// Bytes sent over a connection.
pub(super) fn sent(rec: &Rec) -> u64 {
    rec.facets.get(Facet::BytesOut).and_then(|b| b.parse().ok()).unwrap_or(0)
}

fn excused(rec: &Rec) -> bool {
    rec.shows.iter().any(|b| b.bearing == Bearing::Exonerating && b.weight >= Weight::Moderate)
}

/// True for what the alerted process did or started, unless it can do no harm. `wire`: the alert is about a connection,
/// which several sensors may record.
fn doubtful(pick: &Pick<'_>, wire: bool) -> bool {
    match pick.kin {
        Kin::Descendant => !harmless::is(pick.rec),
        Kin::Same if wire => !excuse::on_the_network(pick.rec),
        Kin::Same => !matches!(pick.rec.class(), Class::ProcessStart | Class::ProcessEnd),
        Kin::Core | Kin::Ancestor | Kin::Again | Kin::Between | Kin::Named | Kin::Near => false,
    }
}

fn grave(rec: &Rec) -> bool {
    rec.shows.iter().any(|b| b.bearing == Bearing::Incriminating && b.weight >= Weight::Strong)
}

/// Groups records of one occurrence: a connection or command that two sensors recorded, and the actions of one
/// actor in the same instant.
fn group(mut picks: Vec<Pick<'_>>, wire: bool) -> Vec<Group<'_>> {
    picks.sort_by_key(|p| (p.rec.time, p.rec.file.clone(), p.rec.line));
    let excused = picks.iter().any(|p| p.kin == Kin::Core && excused(p.rec));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for pick in picks {
        // An explanation of the alerted process covers nothing that the process did beside it.
        let alike = |g: &Group<'_>| !excused || g.0.iter().all(|p| doubtful(p, wire) == doubtful(&pick, wire));
        let near = groups.iter_mut().rev().take(24);
        let home = near.into_iter().find(|g| span(g, pick.rec) <= 1.0 && alike(g) && joins(g, pick.rec));
        match home {
            Some(group) => group.0.push(pick),
            None => groups.push(Group(vec![pick])),
        }
    }
    for group in &mut groups {
        group.0.sort_by_key(|p| (std::cmp::Reverse(p.rank), p.rec.time, p.rec.file.clone(), p.rec.line));
    }
    groups
}

/// Joins what other subjects did in the same way: one finding tells it.
fn join_alike(groups: &mut Vec<Group<'_>>, others: impl Fn(&Group<'_>) -> bool) {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut joined: Vec<Group<'_>> = Vec::new();
    for group in std::mem::take(groups) {
        let kind = group.0.first().filter(|_| others(&group)).map(|p| describe::kind_of_any(p.rec));
        match kind.as_ref().and_then(|kind| joined.get_mut(*kinds.get(kind)?)) {
            Some(first) => first.0.extend(group.0),
            None => {
                kinds.extend(kind.map(|kind| (kind, joined.len())));
                joined.push(group);
            }
        }
    }
    *groups = joined;
}

/// True if the record belongs to the group. Sessions of sudo follow each other, so a session never joins two
/// commands.
fn joins(group: &Group<'_>, rec: &Rec) -> bool {
    let starts = |rec: &Rec| rec.class() == Class::ProcessStart;
    let session = |a: &Rec, b: &Rec| its_session(a, b) || its_session(b, a);
    let free = !starts(rec) || !group.0.iter().any(|p| starts(p.rec));
    let alone = starts(rec) || group.0.len() == 1;
    group.0.iter().any(|p| one_occurrence(p.rec, rec) || free && alone && session(p.rec, rec))
}

fn its_session(ran: &Rec, opened: &Rec) -> bool {
    ran.class() == Class::ProcessStart
        && ran.field(&["targetuser"]).is_some()
        && opened.field(&["service"]) == Some("sudo")
        && opened.field(&["outcome"]) == Some("opened")
        && opened.field(&["byuser"]).is_some_and(|by| Some(by) == ran.facets.get(Facet::User))
        && opened.facets.get(Facet::Host) == ran.facets.get(Facet::Host)
        && opened.file == ran.file
        && opened.line.abs_diff(ran.line) == 1
}

fn span(group: &Group<'_>, rec: &Rec) -> f64 {
    let times = group.0.iter().filter_map(|p| p.rec.time);
    match (times.min(), rec.time) {
        (Some(first), Some(at)) => seconds(at, first).abs(),
        _ => f64::INFINITY,
    }
}

fn one_occurrence(a: &Rec, b: &Rec) -> bool {
    let (Some(at), Some(bt)) = (a.time, b.time) else { return false };
    if a.basis == TimeBasis::Aggregation || b.basis == TimeBasis::Aggregation {
        return false;
    }
    let apart = seconds(at, bt).abs();
    let same = |facet: Facet| {
        a.facets.get(facet).is_some_and(|v| b.facets.get(facet).is_some_and(|w| v.eq_ignore_ascii_case(w)))
    };
    let flow = || flow_keys(a).iter().any(|k| flow_keys(b).contains(k));
    let command = || a.class() == Class::ProcessStart && b.class() == Class::ProcessStart && same(Facet::Command);
    // A network sensor names itself as the host, so only the address identifies the actor.
    let no_user = a.facets.get(Facet::User).is_none() || b.facets.get(Facet::User).is_none();
    // Opening a session and the actions in it are separate occurrences.
    let opens = logon::of_session(a) != logon::of_session(b);
    let actor = || {
        if opens {
            return false;
        }
        same(Facet::SrcIp)
            || (same(Facet::Host) && !on_the_wire(a) && !on_the_wire(b) && (same(Facet::User) || no_user))
            || (same(Facet::User) && a.facets.get(Facet::Host).is_none())
    };
    let whole_seconds = a.source != b.source && apart <= 1.0;
    // `sudo x` and the resulting `x` are one occurrence.
    let (keys_a, keys_b) = (process_keys(a), process_keys(b));
    let below =
        |above: &Rec, own: &[String], parents: &[String]| wraps(above) && own.iter().any(|k| parents.contains(k));
    let becomes = || below(a, &keys_a.0, &keys_b.1) || below(b, &keys_b.0, &keys_a.1);
    // The same holds for `cmd /c x` and its `x`.
    let started = |own: &[String], parents: &[String]| own.iter().any(|k| parents.contains(k));
    let handed = || started(&keys_a.0, &keys_b.1) && hands_on(a, b) || started(&keys_b.0, &keys_a.1) && hands_on(b, a);
    // Audit times have whole seconds. Windows audit names the account of the creator, another sensor that of the
    // new process. A program loads its libraries one after the other.
    let once = || {
        a.class() == b.class()
            && matches!(a.class(), Class::ProcessStart | Class::ImageLoad)
            && keys_a.0.iter().any(|k| keys_b.0.contains(k))
    };
    (apart <= 0.05 && (flow() || command()))
        || (apart <= 1.0 && once())
        || (apart <= 0.02 && becomes())
        || (apart <= 1.0 && handed())
        || (apart <= 0.015 && actor())
        || (whole_seconds && actor() && command())
}

fn on_the_wire(rec: &Rec) -> bool {
    matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
        && rec.facets.get(Facet::Process).is_none()
}

#[cfg(test)]
mod tests;
