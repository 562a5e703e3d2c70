//! Writes the findings for a group of records.

use casebook_protocol::{Bearing, FindingDraft, FindingKind, Score, TimeBasis, Weight};
use casebook_trust::claim;

use super::cite::{cite, corpus, entities, time};
use super::rank::program;
use super::{CITED, EXPLAINED, Group, Pick, doubtful, excuse, is_instruction};
use crate::analyst::behaviour::Behaviour;
use crate::analyst::link::Kin;
use crate::analyst::rec::Rec;
use crate::analyst::{Case, describe};
use casebook_evidence::facet::Class;

/// If the records of the alerted activity show two kinds of behaviour, each becomes a finding: together they
/// weigh more, and the Critic can doubt each alone.
pub(super) fn drafts(group: &Group<'_>, case: &Case) -> Vec<FindingDraft> {
    let behaviours = telling(group);
    let first = draft(group, case, &behaviours);
    let other = first.as_ref().filter(|f| f.about_alert && f.bearing == Bearing::Incriminating).and_then(|first| {
        let apart = |b: &&&'static Behaviour| {
            let grave = b.bearing == Bearing::Incriminating && b.weight >= Weight::Strong;
            grave && b.technique.is_some() && base(b.technique.as_deref()) != base(first.technique.as_deref())
        };
        let explains = behaviours.iter().filter(|b| b.bearing == Bearing::Exonerating);
        let other = behaviours.iter().find(apart)?;
        let beside: Vec<&'static Behaviour> = std::iter::once(other).chain(explains).copied().collect();
        draft(group, case, &beside)
    });
    first.into_iter().chain(other).collect()
}

/// `T1053` for `T1053.005`.
fn base(technique: Option<&str>) -> Option<&str> {
    technique?.split('.').next()
}

fn draft(group: &Group<'_>, case: &Case, behaviours: &[&'static Behaviour]) -> Option<FindingDraft> {
    let explaining = excuse::explaining(group, case);
    let held = |b: &Behaviour| explaining.iter().any(|(_, held)| held.iter().any(|h| h.id == b.id));
    let wire = excuse::wire(case);
    let doubtful = group.0.iter().any(|p| doubtful(p, wire));
    let against = behaviours.iter().any(|b| b.bearing == Bearing::Incriminating);
    // Next to accusing behaviours, an explanation must hold without text that the recorded party chose.
    let behaviours: Vec<&Behaviour> = behaviours
        .iter()
        .copied()
        .filter(|b| b.bearing != Bearing::Exonerating || held(b) || !against && !doubtful && explaining.is_empty())
        .collect();
    let (bearing, weight) = bearing(&behaviours);
    let shown = behaviours.iter().find(|b| b.bearing == bearing).copied();
    let close = group.0.iter().map(|p| p.kin).min().unwrap_or(Kin::Near);
    let innocent = bearing == Bearing::Exonerating;
    // If the alerted process really does what the alert claims, its circumstances (such as a package
    // installation) explain nothing: an attacker can also bring a package.
    let really =
        case.core.iter().filter_map(|i| case.recs.get(*i)).any(|r| case.programs.contains(&program(r).as_str()));
    let circumstance = really && innocent && shown.is_some_and(|b| b.technique.is_none());
    let about_alert = !circumstance && if innocent { !explaining.is_empty() } else { close <= Kin::Descendant };
    let cited: Vec<&Pick<'_>> =
        if innocent && about_alert { explaining.iter().map(|(p, _)| *p).collect() } else { group.0.iter().collect() };
    let most = if innocent && about_alert { EXPLAINED } else { CITED };
    let cited: Vec<&Pick<'_>> = cited.into_iter().take(most).collect();
    let main = cited.first()?;
    let corpus = corpus(&cited);
    let aggregate = main.rec.basis == TimeBasis::Aggregation;
    let claim = describe::claim(
        main.rec,
        &cited.iter().skip(1).map(|p| p.rec).collect::<Vec<_>>(),
        shown,
        aggregate,
        &|text| claim::faults(text, &corpus, &[]).is_empty(),
    );
    let time = (!aggregate).then(|| time(&cited)).flatten();
    let kind = match (shown.is_some_and(is_instruction), aggregate, &time) {
        (true, ..) => FindingKind::Instruction,
        (_, true, _) => FindingKind::Aggregate,
        (_, _, None) => FindingKind::State,
        _ => FindingKind::Occurrence,
    };
    let confidence = match close {
        Kin::Core => 0.9,
        Kin::Same | Kin::Ancestor | Kin::Descendant => 0.85,
        Kin::Again | Kin::Between | Kin::Named => 0.75,
        Kin::Near => 0.6,
    };
    Some(FindingDraft {
        kind,
        claim,
        time,
        entities: entities(&cited, &corpus),
        bearing,
        weight,
        about_alert,
        technique: shown.and_then(|b| b.technique.clone().or_else(|| stated(main.rec))),
        confidence: Score::clamped(confidence),
        citations: cited.iter().map(|p| cite(p.rec)).collect(),
        look_next: shown.and_then(|b| b.look_next.clone()),
    })
}

fn stated(rec: &Rec) -> Option<String> {
    let named = rec.field(&["techniques", "attacktechniques", "technique", "mitretechniques"])?;
    let (_, from) = named
        .match_indices('T')
        .map(|(at, _)| named.split_at(at))
        .find(|(_, rest)| rest.len() >= 5 && rest.bytes().skip(1).take(4).all(|b| b.is_ascii_digit()))?;
    let part = from.get(5..9).filter(|p| p.starts_with('.') && p.bytes().skip(1).all(|b| b.is_ascii_digit()));
    (rec.class() == Class::Alert).then(|| format!("{}{}", from.get(..5).unwrap_or_default(), part.unwrap_or_default()))
}

fn telling(group: &Group<'_>) -> Vec<&'static Behaviour> {
    let mut all: Vec<&'static Behaviour> = group.0.iter().flat_map(|p| p.rec.shows.iter().copied()).collect();
    all.sort_by_key(|b| (std::cmp::Reverse(b.weight), b.id.as_str()));
    all.dedup_by_key(|b| b.id.as_str());
    all
}

/// An explanation outweighs lighter behaviours, but never a rarely legitimate one.
fn bearing(behaviours: &[&Behaviour]) -> (Bearing, Weight) {
    let most = |bearing: Bearing| behaviours.iter().filter(|b| b.bearing == bearing).map(|b| b.weight).max();
    match (most(Bearing::Incriminating), most(Bearing::Exonerating)) {
        (Some(against), Some(innocent)) if against >= Weight::Strong || against >= innocent => {
            (Bearing::Incriminating, against)
        }
        (_, Some(innocent)) => (Bearing::Exonerating, innocent),
        (Some(against), None) => (Bearing::Incriminating, against),
        (None, None) => (Bearing::Neutral, Weight::Weak),
    }
}
