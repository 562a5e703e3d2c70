//! Turns records into findings: decides which records matter, groups those of one occurrence, and states what
//! they show.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use casebook_evidence::facet::{Class, Facet, event_id, process_keys};
use casebook_evidence::programs::{file_name, is_harmless};
use casebook_protocol::{Bearing, FindingDraft, FindingKind, Score, TimeBasis, Weight, apart};

mod cite;
mod explain;

use cite::time;
pub(super) use cite::{cite, cite_count, entities, states};

use super::kin::Kin;
use super::rec::{self, Rec, Rule};
use super::{Case, absence, account, describe, origin};

/// Findings of one Expert in one round, the strongest first.
const MOST: usize = 40;
/// The same in a later round, which asks for names.
const MOST_LATER: usize = 12;
/// Records of one kind of activity that are described one by one. Of more, only the first and the last are
/// described.
const ONE_BY_ONE: usize = 4;
const CITED: usize = 6;
/// Records that one explanation cites: a dismissal explains each.
const EXPLAINED: usize = 24;
/// Records of each source that are only near the alert.
const NEARBY: usize = 20;
/// Records that meet one rule.
const OF_ONE_RULE: usize = 8;

struct Pick<'a> {
    rec: &'a Rec,
    kin: Kin,
    rank: u32,
}

/// Records of one occurrence, the main one first.
type Group<'a> = Vec<Pick<'a>>;

pub(crate) fn findings(case: &Case) -> Vec<FindingDraft> {
    // What led to the first command says nothing of the alert.
    let begin = origin::first(case).and_then(|rec| rec.time);
    let before = |rec: &Rec| rec.kin == Some(Kin::Above) && rec.time < begin;
    let pick = |rec| Some(Pick { rec, kin: rec.kin?, rank: rank(rec, rec.kin?, case)? });
    let picks = case.recs.iter().filter(|rec| case.asked_for(rec) && !before(rec)).filter_map(pick).collect();
    let picks = nearest(thin_out(thin_out(picks, false, case), true, case), case);
    // The alert is about a connection, which several sensors may record.
    let wire = case.alerted().any(explain::on_the_network);
    let mut groups = group(picks, wire);
    groups.sort_by_key(|g| Reverse(g.iter().map(|p| p.rank).max()));
    groups.truncate(if case.round == 1 { MOST } else { MOST_LATER });
    groups.sort_by_key(|g| g.first().and_then(|p| p.rec.time));
    groups.iter().flat_map(|g| drafts(g, case, wire)).collect()
}

fn against(rec: &Rec) -> Option<Weight> {
    rec.heaviest(Bearing::Incriminating)
}

/// Activity that is routine for any program unless a rule finds it serious.
fn routine(rec: &Rec) -> bool {
    // Handles closed and copied, privileges changed.
    event_id(&rec.fields).is_some_and(|id| matches!(id, "4658" | "4690" | "4703"))
        || matches!(
            rec.class(),
            Class::ProcessEnd
                | Class::ProcessAccess
                | Class::ImageLoad
                | Class::RegistryChange
                | Class::FileRead
                | Class::FileDelete
                | Class::Certificate
        )
}

/// How much the record matters. None if it needs no finding.
fn rank(rec: &Rec, kin: Kin, case: &Case) -> Option<u32> {
    /// Seconds around the alert in which alerts of other products count: a table of alerts covers a whole company.
    const ALERTS: f64 = 3.0 * 24.0 * 3600.0;
    if kin == Kin::Core {
        return Some(1000);
    }
    let (apart, acts) = (case.near.apart(rec), case.near.has_actor(rec));
    // A host has much other activity, so a record with no other link must be serious.
    let tied = kin != Kin::Near || case.round > 1 || case.answers.few() || acts;
    let serious = against(rec) >= Some(if tied { Weight::Moderate } else { Weight::Strong });
    let alike = kin == Kin::Same && case.alerted().any(|core| core.class() == rec.class());
    // What the alerted process did to a thing that the alert names.
    let meant = matches!(kin, Kin::Same | Kin::Below) && case.names_object(rec);
    if rec.class() == Class::Alert && apart > ALERTS || routine(rec) && !serious && !alike && !meant {
        return None;
    }
    // An explanation of other activity is worth no finding.
    let explains = rec.heaviest(Bearing::Exonerating).filter(|w| *w > Weight::Weak && kin != Kin::Near);
    let shows = match against(rec).max(explains) {
        Some(Weight::Decisive) => 400,
        Some(Weight::Strong) => 300,
        Some(Weight::Moderate) => 200,
        Some(Weight::Weak) => 60,
        None => 0,
    };
    let close = match kin {
        Kin::Above => 220,
        Kin::Core | Kin::Same => 150,
        Kin::Below => 120,
        Kin::Joined | Kin::Named => 110,
        Kin::Near if serious => 0,
        Kin::Near if arrival(rec, case) || does_what_is_claimed(rec, case) => 100,
        // What else its actor did around the alert, and changes of the system.
        Kin::Near => {
            // Of a log of packages, the lines that say what was done with one.
            let package = rec.class() == Class::PackageOperation && !rec.shows.is_empty();
            let change = package
                || matches!(
                    rec.class(),
                    Class::Script
                        | Class::AccountChange
                        | Class::ServiceChange
                        | Class::ConfigChange
                        | Class::KernelModule
                );
            let of_system = rec.facets.get(Facet::User).is_some_and(account::of_system);
            // A person works for minutes; programs make connections all the time.
            let by_hand = acts && (change || matches!(rec.class(), Class::ProcessStart | Class::ApiCall));
            let near = apart <= if by_hand { 600.0 } else { 120.0 } || case.answers.few() || case.round > 1;
            let spoken_of = apart <= 120.0 && case.of_another_system(rec);
            // If the processes around the alert are known, the others on the host are not of it.
            let other =
                rec.class() == Class::ProcessStart && case.round == 1 && case.with(|k| k == Kin::Above).count() > 0;
            if !spoken_of && (!near || other || of_system || !(change || acts)) {
                return None;
            }
            10
        }
    };
    Some(close + shows + if apart <= 120.0 { 30 } else { 0 })
}

/// Of records that are only near the alert and show nothing, keeps the nearest few of each source, and of those that meet
/// one rule the nearest few: a rule may be about all that an actor does.
fn nearest<'a>(picks: Vec<Pick<'a>>, case: &Case) -> Vec<Pick<'a>> {
    let near = |p: &Pick<'_>| p.kin == Kin::Near && p.rank < 100;
    let mut often: BTreeMap<&'a str, usize> = BTreeMap::new();
    let bad = |p: &Pick<'a>| p.rec.shows.iter().filter(|rule| rule.bearing == Bearing::Incriminating);
    picks.iter().flat_map(bad).for_each(|rule| *often.entry(&rule.rule).or_default() += 1);
    let rarest = |p: &Pick<'a>| bad(p).map(|rule| rule.rule.as_str()).min_by_key(|rule| often.get(rule));
    let of_rule = |p: &Pick<'a>| rarest(p).filter(|_| !matches!(p.kin, Kin::Core | Kin::Above));
    let (mut near, mut kept): (Vec<_>, Vec<_>) = picks.into_iter().partition(|p| near(p) || of_rule(p).is_some());
    near.sort_by(|a, b| {
        let (alone, apart) = (|p: &Pick<'_>| !case.near.has_actor(p.rec), |p: &Pick<'_>| case.near.apart(p.rec));
        alone(a).cmp(&alone(b)).then(apart(a).total_cmp(&apart(b))).then(a.rec.key().cmp(&b.rec.key()))
    });
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    near.retain_mut(|p| {
        let (kind, most) = of_rule(p).map_or((p.rec.source.as_str(), NEARBY), |rule| (rule, OF_ONE_RULE));
        let count = taken.entry(kind).or_default();
        *count += 1;
        // Each rule is reported once before one is reported again.
        p.rank += of_rule(p).map_or(0, |_| 60 / *count as u32);
        *count <= most
    });
    kept.extend(near);
    kept
}

/// Of many records of one kind, keeps the first and the last, the nearest grave ones, and those with a link or a meaning
/// of their own.
fn thin_out<'a>(picks: Vec<Pick<'a>>, family: bool, case: &Case) -> Vec<Pick<'a>> {
    let explained = picks.iter().any(|p| p.kin == Kin::Core && p.rec.heaviest(Bearing::Exonerating).is_some());
    let own = |p: &Pick<'_>| {
        matches!(p.kin, Kin::Core | Kin::Above)
            || p.kin == Kin::Joined && case.near.apart(p.rec) <= 2.0
            || case.near.is_scarce(p.rec)
            // A dismissal explains each process below.
            || explained && p.kin == Kin::Below
    };
    let mut kinds: BTreeMap<String, Vec<Pick<'a>>> = BTreeMap::new();
    for pick in picks {
        kinds.entry(describe::kind_of(pick.rec, family)).or_default().push(pick);
    }
    let mut kept = Vec::new();
    for mut same in kinds.into_values() {
        same.sort_by_key(|p| p.rec.order());
        let grave = |p: &&Pick<'a>| against(p.rec) >= Some(Weight::Strong) && p.rec.class() != Class::HttpRequest;
        let mut grave: Vec<&Rec> = same.iter().filter(grave).map(|p| p.rec).collect();
        grave.sort_by(|a, b| case.near.apart(a).total_cmp(&case.near.apart(b)));
        grave.truncate(ONE_BY_ONE);
        let (many, last) = (same.len() > ONE_BY_ONE, same.len() - 1);
        let keep = |(place, p): &(usize, Pick<'a>)| {
            !many || *place == 0 || *place == last || own(p) || grave.iter().any(|rec| rec.key() == p.rec.key())
        };
        kept.extend(same.into_iter().enumerate().filter(|item| keep(item)).map(|(_, pick)| pick));
    }
    kept
}

/// True for what the alerted process did or started, unless it can do no harm.
fn doubtful(pick: &Pick<'_>, wire: bool) -> bool {
    match pick.kin {
        Kin::Below => !is_harmless(&pick.rec.facets),
        Kin::Same if wire => !explain::on_the_network(pick.rec),
        Kin::Same => !matches!(pick.rec.class(), Class::ProcessStart | Class::ProcessEnd),
        Kin::Core | Kin::Above | Kin::Joined | Kin::Named | Kin::Near => false,
    }
}

/// Groups records of one occurrence, such as a connection or a command that two sensors recorded.
fn group(mut picks: Vec<Pick<'_>>, wire: bool) -> Vec<Group<'_>> {
    picks.sort_by_key(|p| p.rec.order());
    let mut groups: Vec<Group<'_>> = Vec::new();
    for pick in picks {
        // An explanation of the alerted process covers nothing that the process did beside it.
        let alike = |g: &Group<'_>| g.iter().all(|p| doubtful(p, wire) == doubtful(&pick, wire));
        let joins = |g: &Group<'_>| g.iter().any(|p| one_occurrence(p.rec, pick.rec));
        match groups.iter_mut().rev().take(24).find(|g| alike(g) && joins(g)) {
            Some(group) => group.push(pick),
            None => groups.push(vec![pick]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|p| (Reverse(p.rank), p.rec.order()));
    }
    groups
}

fn one_occurrence(a: &Rec, b: &Rec) -> bool {
    let (Some(at), Some(bt)) = (a.time, b.time) else { return false };
    let apart = apart(at, bt);
    if apart > 1.0 || [a, b].iter().any(|rec| rec.basis == TimeBasis::Aggregation) {
        return false;
    }
    let same = |facet: Facet| {
        a.facets.get(facet).is_some_and(|v| b.facets.get(facet).is_some_and(|w| v.eq_ignore_ascii_case(w)))
    };
    let (keys_a, keys_b) = (process_keys(&a.fields, &a.facets), process_keys(&b.fields, &b.facets));
    let meet = |one: &[String], other: &[String]| one.iter().any(|key| other.contains(key));
    let starts = a.class() == Class::ProcessStart && b.class() == Class::ProcessStart;
    // Two sensors, two records of an audit event or two lines of a daemon about one start or sign-in.
    let once = a.class() == b.class()
        && matches!(a.class(), Class::ProcessStart | Class::ImageLoad | Class::Authentication)
        && meet(&keys_a.0, &keys_b.0);
    let command = starts && same(Facet::Command) && (a.source != b.source || apart <= 0.05);
    // `sudo x`, `sh -c x`, a script and the `x` that it begins with are one occurrence.
    let becomes = |outer: &Rec, outer_keys: &[String], parents: &[String], inner: &Rec| {
        starts && meet(outer_keys, parents) && (apart <= 0.005 || hands_on(outer, inner))
    };
    let handed = becomes(a, &keys_a.0, &keys_b.1, b) || becomes(b, &keys_b.0, &keys_a.1, a);
    // One connection in two logs, or one call with several records.
    let flow = a.class() == b.class() && same(Facet::SrcIp) && same(Facet::DstIp) && apart <= 0.05;
    let act = apart <= 0.015 && same(Facet::User) && same(Facet::Action) && same(Facet::Object);
    once || command || handed || flow || act
}

/// The outer command only runs the inner one.
fn hands_on(outer: &Rec, inner: &Rec) -> bool {
    const RUN: [&str; 13] =
        ["sudo", "su", "doas", "pkexec", "runuser", "env", "nohup", "cmd", "cmd.exe", "sh", "bash", "dash", "zsh"];
    let plain = |rec: &Rec| {
        let command = rec.facets.get(Facet::Command).unwrap_or_default().replace(['"', '\''], " ");
        command.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
    };
    let (outer, inner) = (plain(outer), plain(inner));
    let called = file_name(outer.split(' ').next().unwrap_or_default());
    RUN.contains(&called) && !inner.is_empty() && outer.len() > inner.len() && outer.ends_with(&inner)
}

fn does_what_is_claimed(rec: &Rec, case: &Case) -> bool {
    let first = rec.facets.get(Facet::Command).and_then(|c| c.split_whitespace().next()).unwrap_or_default();
    let name = file_name(first.trim_matches('"')).to_ascii_lowercase();
    let does_it = || absence::claimed(&case.alert).is_some_and(|operation| operation.done_by.contains(&name));
    rec.class() == Class::ProcessStart && does_it()
}

/// The sign-in of the actor before the alert, or the one just before it: the alert may know the account by a number.
fn arrival(rec: &Rec, case: &Case) -> bool {
    rec.class() == Class::Authentication
        && rec.time.zip(case.near.anchor).is_some_and(|(at, anchor)| at <= anchor)
        && rec.facets.get(Facet::Outcome) != Some("failure")
        && rec.facets.get(Facet::SrcIp).is_some()
        && (case.near.has_actor(rec) || case.near.apart(rec) <= 30.0 && event_id(&rec.fields).is_none())
}

/// If the records of the alerted activity meet rules of two techniques, each becomes a finding: together they weigh
/// more, and the Critic can doubt each alone.
fn drafts(group: &Group<'_>, case: &Case, wire: bool) -> Vec<FindingDraft> {
    let mut rules: Vec<&Rule> = group.iter().flat_map(|p| &p.rec.shows).collect();
    rules.sort_by_key(|rule| (Reverse(rule.weight), rule.rule.as_str()));
    rules.dedup_by_key(|rule| rule.rule.as_str());
    let Some(first) = draft(group, case, wire, &rules) else { return Vec::new() };
    rules.retain(|rule| rule.bearing == Bearing::Incriminating && rule.weight >= Weight::Moderate);
    let base = |technique: Option<&'_ str>| technique.and_then(|t| t.split('.').next()).unwrap_or_default().to_owned();
    let known = base(first.technique.as_deref());
    let other = |rule: &&&Rule| rule.technique.is_some() && base(rule.technique.as_deref()) != known;
    let other = rules.iter().find(other).filter(|_| first.about_alert && first.bearing == Bearing::Incriminating);
    let second = other.and_then(|rule| draft(group, case, wire, &[rule]));
    std::iter::once(first).chain(second).collect()
}

fn draft(group: &Group<'_>, case: &Case, wire: bool, rules: &[&Rule]) -> Option<FindingDraft> {
    let most = |bearing: Bearing| rules.iter().filter(|r| r.bearing == bearing).map(|r| r.weight).max();
    let explaining = explain::explaining(group, case, wire);
    let doubtful = group.iter().any(|p| doubtful(p, wire));
    let innocent = most(Bearing::Exonerating).filter(|_| !explaining.is_empty() || !doubtful);
    // An explanation outweighs lighter rules, but never a strong one.
    let (bearing, weight) = match (most(Bearing::Incriminating), innocent) {
        (Some(bad), Some(good)) if bad >= Weight::Strong || bad >= good => (Bearing::Incriminating, bad),
        (_, Some(good)) => (Bearing::Exonerating, good),
        (Some(bad), None) => (Bearing::Incriminating, bad),
        (None, None) => (Bearing::Neutral, Weight::Weak),
    };
    let shown = rules.iter().find(|rule| rule.bearing == bearing).copied();
    let close = group.iter().map(|p| p.kin).min().unwrap_or(Kin::Near);
    let exonerating = bearing == Bearing::Exonerating;
    // If the alerted process really does what the alert claims, its circumstances (such as a package installation)
    // explain nothing: an attacker can also bring a package.
    let really = case.alerted().any(|rec| does_what_is_claimed(rec, case));
    let circumstance = really && shown.is_some_and(|rule| rule.technique.is_none());
    let about_alert = if exonerating { !explaining.is_empty() && !circumstance } else { close <= Kin::Joined };
    let recs: Vec<&Rec> = match exonerating && about_alert {
        true => explaining.into_iter().take(EXPLAINED).collect(),
        false => group.iter().map(|pick| pick.rec).take(CITED).collect(),
    };
    let (main, others) = recs.split_first()?;
    let corpus = rec::corpus(&recs);
    let mut claim = describe::claim(main, others, shown, &|text| states(&corpus, text));
    let aggregate = main.basis == TimeBasis::Aggregation;
    if aggregate {
        claim.push_str(", in the period that the record covers");
    }
    let time = time(&recs).filter(|_| !aggregate);
    let kind = match &time {
        Some(_) => FindingKind::Occurrence,
        None if aggregate => FindingKind::Aggregate,
        None => FindingKind::State,
    };
    let confidence = match close {
        Kin::Core => 0.9,
        Kin::Same | Kin::Above | Kin::Below => 0.85,
        Kin::Joined | Kin::Named => 0.75,
        Kin::Near => 0.6,
    };
    Some(FindingDraft {
        kind,
        claim,
        time,
        entities: entities(&recs, &corpus),
        bearing,
        weight,
        about_alert,
        technique: shown.and_then(|rule| rule.technique.clone()),
        confidence: Score::clamped(confidence),
        citations: recs.iter().map(|rec| cite(rec)).collect(),
        look_next: shown.and_then(|rule| rule.look_next.clone()),
    })
}
