//! Citations that do not exist, and real ones that do not say it.

use casebook_protocol::{CallId, Citation, FindingDraft, FindingKind, Locator, TaskId, TaskKind};

use super::{absent, any_base};
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::Stage;
use crate::calibrate::trial::{Trial, cite, names};

/// A call that was never made, or that another Expert or another round made.
pub(super) fn missing_call(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let own = TaskId::of(stage.state.round, TaskKind::Investigate, Some(&base.found.finding.domain));
    let others: Vec<&CallId> =
        stage.state.calls.values().filter(|made| made.task != own).map(|made| &made.call.id).collect();
    let id = match dice.below(2) {
        0 => CallId::of(&own, 90 + u32::try_from(dice.below(900)).unwrap_or(0), 0),
        _ => (*dice.pick(&others)?).clone(),
    };
    let mut draft = base.found.finding.draft.clone();
    match draft.citations.first_mut()? {
        Citation::Literal { call, .. }
        | Citation::Count { call, .. }
        | Citation::Aggregate { call, .. }
        | Citation::Absence { call, .. } => *call = id,
    }
    Some(Trial::instead(Kind::MissingCall, &base.found.finding, draft))
}

/// A pointer beyond the last record, to a field that is not there, or a line beyond the last.
pub(super) fn missing_place(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let mut draft = base.found.finding.draft.clone();
    let beyond = 1_000 + dice.below(9_000);
    let Citation::Literal { at, .. } = draft.citations.first_mut()? else { return None };
    *at = match dice.below(4) {
        0 => Locator::Pointer(format!("/records/{beyond}")),
        1 => Locator::Pointer(format!("/records/0/made_up_{beyond}")),
        2 => Locator::Line(0),
        _ => Locator::Line(beyond as u64),
    };
    Some(Trial::instead(Kind::MissingPlace, &base.found.finding, draft))
}

/// The quotation of another record, or the right one with a character changed.
pub(super) fn quote_not_there(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let mut draft = base.found.finding.draft.clone();
    let other = dice.pick(&stage.records)?;
    let Citation::Literal { quote, .. } = draft.citations.first_mut()? else { return None };
    let new = if dice.below(2) == 0 {
        let skip = dice.below(other.raw.chars().count().saturating_sub(40));
        other.raw.chars().skip(skip).take(40).collect::<String>()
    } else {
        let place = dice.below(quote.chars().count());
        let swap = |c: char| if c == 'x' { 'q' } else { 'x' };
        quote.chars().enumerate().map(|(i, c)| if i == place { swap(c) } else { c }).collect()
    };
    if new.trim().chars().count() < 8 || !absent(base, new.trim()) || base.records.first()?.raw.contains(&new) {
        return None;
    }
    *quote = new;
    Some(Trial::instead(Kind::QuoteNotThere, &base.found.finding, draft))
}

/// A real citation of another record: at another time, or without a name that the claim states. Or
/// of everything that the call returned, which shows no one thing.
pub(super) fn cites_other(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let other = dice.pick(&stage.records).filter(|r| r.domain == finding.domain)?;
    let mut draft = FindingDraft { citations: vec![cite(other)], ..finding.draft.clone() };
    let missing = names(&draft.claim).iter().any(|n| n.chars().count() >= 4 && !n.ends_with('…') && !other.holds(n));
    match dice.below(3) {
        0 if other.time.is_some() && draft.time.as_ref().map(|t| t.at) != other.time => {
            draft.kind = FindingKind::Occurrence;
            draft.time.as_ref()?;
        }
        1 if missing => {
            if let (Some(time), Some(at)) = (&mut draft.time, other.time) {
                (time.at, time.basis, time.precision) = (at, other.basis, other.precision);
            }
        }
        2 if missing => {
            draft.kind = FindingKind::State;
            draft.time = None;
            let quote = other.raw.chars().take(50).collect();
            let at = Locator::Pointer(["", "/records"].get(dice.below(2)).copied().unwrap_or("").to_owned());
            draft.citations = vec![Citation::Literal { call: other.call.clone(), at, quote }];
        }
        _ => return None,
    }
    Some(Trial::instead(Kind::CitesOther, finding, draft))
}
