//! Counts and absences: true ones, and ones that the searches do not show.

use casebook_protocol::{Bearing, CallId, Citation, FindingDraft, FindingKind, Locator, Timestamp, Weight};
use rand::Rng;
use serde_json::{Value, json};

use super::times::moved;
use super::{Plant, listed, whole};
use crate::calibrate::stage::Search;

fn total() -> Locator {
    Locator::Pointer("/total".into())
}

/// Makes the finding a statement about a search.
pub(super) fn state(p: &mut Plant, kind: FindingKind, claim: String, citation: Citation) {
    let absence = kind == FindingKind::Absence;
    p.draft = FindingDraft {
        bearing: if absence { Bearing::Exonerating } else { Bearing::Neutral },
        weight: if absence { Weight::Moderate } else { Weight::Weak },
        about_alert: absence,
        citations: vec![citation],
        ..FindingDraft::neutral(kind, claim)
    };
}

/// A wrong number in the words, in the citation, or in both.
pub(super) fn changed_count(p: &mut Plant) -> Option<()> {
    let search = counting(p)?;
    let limit = serde_json::from_str::<Value>(&search.call.arguments).ok()?.get("limit")?.as_u64();
    let wrong = match p.below(4) {
        // The limit of a query is not the number of matches.
        0 => limit?,
        1 => search.total + p.dice.random_range(1..6),
        2 => search.total * 10,
        _ => search.total.saturating_sub(1),
    };
    // The words may contain a number that is part of a search term.
    if wrong == search.total || wrong == 0 || search.terms.iter().any(|term| term.contains(&wrong.to_string())) {
        return None;
    }
    let (stated, cited) = *p.pick(&[(wrong, search.total), (wrong, wrong), (search.total, wrong)])?;
    counted(p, search, stated, cited)
}

/// True: a number of records, as the search returned it.
pub(crate) fn count(p: &mut Plant) -> Option<()> {
    let search = counting(p)?;
    counted(p, search, search.total, search.total)
}

fn counting<'a>(p: &mut Plant<'a>) -> Option<&'a Search> {
    p.choose(&p.stage.searches, |search| (1..1_000_000).contains(&search.total))
}

fn counted(p: &mut Plant, search: &Search, stated: u64, cited: u64) -> Option<()> {
    let again = p.again(search);
    let all = if search.terms.len() > 1 && !search.any { "all of " } else { "" };
    let grouped = stated >= 1_000 && p.one_in(2);
    let number = if grouped { format!("{},{:03}", stated / 1_000, stated % 1_000) } else { stated.to_string() };
    let claim = format!("{number} records name {all}{}", listed(&search.terms));
    let citation = Citation::Count { call: search.call.id.clone(), at: total(), value: cited, again: Some(again?) };
    state(p, FindingKind::Aggregate, claim, citation);
    Some(())
}

/// An absence, with a search that `fits` as its citation.
fn absent<'a>(p: &mut Plant<'a>, fits: impl Fn(&&'a Search) -> bool) -> Option<&'a Search> {
    let search = p.choose(&p.stage.searches, fits)?;
    let again = p.again(search)?;
    let all = if search.terms.len() > 1 && !search.any { "all of " } else { "" };
    let claim = format!("No record names {all}{}", listed(&search.terms));
    stated_absent(p, claim, &search.call.id, (search.from, search.to), again);
    Some(search)
}

pub(super) type Window = (Option<Timestamp>, Option<Timestamp>);

pub(super) fn stated_absent(p: &mut Plant, claim: String, call: &CallId, (from, to): Window, again: CallId) {
    let citation = Citation::Absence { call: call.clone(), at: total(), from, to, again: Some(again) };
    state(p, FindingKind::Absence, claim, citation);
}

/// True: searched everywhere and not found. [`super::cover::covered`] has windows.
pub(crate) fn absence(p: &mut Plant) -> Option<()> {
    absent(p, |search| search.total == 0 && search.from.is_none() && search.to.is_none()).map(drop)
}

/// The claimed window is larger than the searched one.
pub(crate) fn unsearched(p: &mut Plant) -> Option<()> {
    let search = absent(p, |search| search.total == 0 && search.from.is_some() && search.to.is_some())?;
    let by = p.dice.random_range(60..100_060);
    let (before, after) = (moved(search.from?, -by)?, moved(search.to?, by)?);
    let way = p.below(5);
    let Citation::Absence { from, to, .. } = p.draft.citations.first_mut()? else { return None };
    match way {
        0 => *from = Some(before),
        1 => *to = Some(after),
        2 => *from = None,
        3 => *to = None,
        _ => p.draft.claim += &format!(" between {:.0} and {after:.0}", search.from?),
    }
    Some(())
}

/// The query matched something.
pub(crate) fn matched(p: &mut Plant) -> Option<()> {
    absent(p, |search| search.total > 0)?;
    if p.one_in(2) {
        // Places in the result that may contain a zero, or nothing.
        let place = *p.pick(&["/returned", "/window/from", "/records/0/line", "/offset"])?;
        let Citation::Absence { at, .. } = p.draft.citations.first_mut()? else { return None };
        *at = Locator::Pointer(place.into());
    }
    Some(())
}

/// Claims that something is absent which is in the evidence: the empty result came from another query or from
/// an additional term.
pub(crate) fn not_asked(p: &mut Plant) -> Option<()> {
    let there = p.choose(p.names(), |name| whole(name))?;
    let claim = format!("No record names `{there}`");
    if p.one_in(2) {
        absent(p, |search| search.total == 0 && !search.terms.iter().any(|term| term.contains(&there)))?;
        p.draft.claim = claim;
        return Some(());
    }
    let made_up = format!("qx{}", p.below(1_000_000));
    let arguments = json!({"terms": [there, made_up], "mode": "all", "limit": 5});
    let result = json!({"total": 0, "total_is_exact": true, "returned": 0, "records": [],
        "window": {"from": null, "to": null}, "searched": [p.record()?.value.get("source")?]});
    let (first, second) = (p.search(&arguments, &result), p.search(&arguments, &result));
    stated_absent(p, claim, &first, (None, None), second);
    Some(())
}
