//! Absences: over a window that was not searched, where something was found, of what was not asked
//! for; and true ones.

use casebook_protocol::{Bearing, Citation, FindingDraft, FindingKind, Locator, Score, Timestamp, Weight};
use serde_json::json;

use super::any_base;
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Search, Stage};
use crate::calibrate::trial::{MadeCall, Trial, again, made_search, names};

fn searches(stage: &Stage, fits: impl Fn(&Search) -> bool) -> Vec<&Search> {
    stage.searches.iter().filter(|s| fits(s)).collect()
}

/// `a`, `b`
pub(super) fn listed(terms: &[String]) -> String {
    terms.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", ")
}

/// What a search that found nothing shows.
fn claim(search: &Search) -> String {
    match (search.terms.len(), search.any) {
        (1, _) | (_, true) => format!("No record names {}", listed(&search.terms)),
        _ => format!("No record names all of {}", listed(&search.terms)),
    }
}

fn draft(claim: String, citation: Citation) -> FindingDraft {
    FindingDraft {
        kind: FindingKind::Absence,
        claim,
        time: None,
        entities: vec![],
        bearing: Bearing::Exonerating,
        weight: Weight::Moderate,
        about_alert: true,
        technique: None,
        confidence: Score::clamped(0.8),
        citations: vec![citation],
        look_next: None,
    }
}

/// The absence as `search` shows it, with the call that was made again.
fn absence(stage: &Stage, search: &Search, dice: &mut Dice) -> Option<(FindingDraft, MadeCall)> {
    let second = again(stage, search, dice);
    let bytes = stage.exhibits.get(&search.domain)?.text(&search.call.id)?.as_bytes().to_vec();
    let citation = Citation::Absence {
        call: search.call.id.clone(),
        at: Locator::Pointer("/total".into()),
        from: search.from,
        to: search.to,
        again: Some(second.id.clone()),
    };
    Some((draft(claim(search), citation), MadeCall { call: second, bytes, repeatable: true }))
}

fn later(at: Timestamp, seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second().checked_add(seconds)?).ok()
}

/// True: searched for, and not there.
pub(super) fn truth(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let all = searches(stage, |s| s.total == 0);
    let search = *dice.pick(&all)?;
    let (mut draft, call) = absence(stage, search, dice)?;
    if let (Some(from), Some(to)) = (search.from, search.to)
        && dice.below(2) == 0
    {
        draft.claim = format!("{} between {from:.0} and {to:.0}", draft.claim);
    }
    Some(Trial::alone(Kind::TrueAbsence, search.domain.clone(), draft).with(call))
}

/// The window that the claim is about begins before or ends after the one that was searched.
pub(super) fn unsearched(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let all = searches(stage, |s| s.total == 0 && s.from.is_some() && s.to.is_some());
    let search = *dice.pick(&all)?;
    let (mut draft, call) = absence(stage, search, dice)?;
    let by = 60 + i64::try_from(dice.below(100_000)).unwrap_or(0);
    let (searched_from, searched_to) = (search.from?, search.to?);
    let Citation::Absence { from, to, .. } = draft.citations.first_mut()? else { return None };
    match dice.below(5) {
        0 => *from = Some(later(searched_from, -by)?),
        1 => *to = Some(later(searched_to, by)?),
        2 => *from = None,
        3 => *to = None,
        _ => {
            let end = later(searched_to, by)?;
            draft.claim = format!("{} between {searched_from:.0} and {end:.0}", draft.claim);
        }
    }
    Some(Trial::alone(Kind::AbsenceUnsearched, search.domain.clone(), draft).with(call))
}

/// The query matched something.
pub(super) fn matched(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let all = searches(stage, |s| s.total > 0);
    let search = *dice.pick(&all)?;
    let (mut draft, call) = absence(stage, search, dice)?;
    if dice.below(2) == 0 {
        // A place in the result where a zero may stand, or nothing.
        let Citation::Absence { at, .. } = draft.citations.first_mut()? else { return None };
        let places = ["/returned", "/window/from", "/records/0/line", "/offset"];
        *at = Locator::Pointer((*dice.pick(&places)?).into());
    }
    Some(Trial::alone(Kind::AbsenceMatched, search.domain.clone(), draft).with(call))
}

/// Absent is said of what stands in the evidence: another query was empty, or it was empty because it
/// asked for something else as well.
pub(super) fn not_asked(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let there: Vec<String> =
        names(&base.found.finding.draft.claim).into_iter().filter(|n| n.len() >= 4 && !n.ends_with('…')).collect();
    let there = dice.pick(&there)?;
    if dice.below(2) == 0 {
        let all = searches(stage, |s| s.total == 0 && !s.terms.iter().any(|t| t.contains(there.as_str())));
        let search = *dice.pick(&all)?;
        let (mut draft, call) = absence(stage, search, dice)?;
        draft.claim = format!("No record names `{there}`");
        return Some(Trial::alone(Kind::AbsenceNotAsked, search.domain.clone(), draft).with(call));
    }
    let domain = &base.found.finding.domain;
    let arguments = json!({"terms": [there, format!("qx{}", dice.below(1_000_000))], "mode": "all", "limit": 5});
    let result = json!({"total": 0, "total_is_exact": true, "returned": 0, "records": [],
        "window": {"from": null, "to": null}, "searched": [base.records.first()?.value.get("source")?]});
    let first = made_search(stage, domain, &arguments, &result, dice);
    let second = made_search(stage, domain, &arguments, &result, dice);
    let citation = Citation::Absence {
        call: first.call.id.clone(),
        at: Locator::Pointer("/total".into()),
        from: None,
        to: None,
        again: Some(second.call.id.clone()),
    };
    let draft = draft(format!("No record names `{there}`"), citation);
    Some(Trial::alone(Kind::AbsenceNotAsked, domain.clone(), draft).with(first).with(second))
}
