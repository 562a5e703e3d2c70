//! Findings that only their relation to another one makes wrong: told twice, told by another clock,
//! contradicted.

use casebook_protocol::{Bearing, EventTime, FindingDraft, FindingKind, Precision, TimeBasis, Timestamp, Weight};
use serde_json::Value;

use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Base, Stage};
use crate::calibrate::trial::{Trial, cite, made_record, names};

/// A finding that stands on the Timeline as an event.
fn event<'a>(stage: &'a Stage, dice: &mut Dice) -> Option<&'a Base> {
    let on = |b: &&Base| b.found.finding.draft.kind == FindingKind::Occurrence && !b.records.is_empty();
    let all: Vec<&Base> = stage.bases.iter().filter(|b| stage.told.contains(&b.found.finding.id)).filter(on).collect();
    dice.pick(&all).copied()
}

fn reworded(claim: &str, dice: &mut Dice) -> Option<String> {
    let (what, _) = claim.rsplit_once(": ").filter(|(head, _)| head.contains('`')).unwrap_or((claim, ""));
    let all = names(claim);
    Some(match dice.below(4) {
        0 => format!("The log shows this: {claim}"),
        1 => format!("It was seen that {what}"),
        2 => format!(
            "An entry about {} was written",
            all.iter().take(2).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" and ")
        ),
        _ => format!("Activity around `{}`", all.first()?),
    })
}

/// The same records in other words, all of them or one.
pub(super) fn duplicate(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = event(stage, dice)?;
    let finding = &base.found.finding;
    let claim = reworded(&finding.draft.claim, dice)?;
    let mut draft = FindingDraft { claim, entities: vec![], ..finding.draft.clone() };
    if dice.below(2) == 0 {
        let rec = base.records.iter().find(|r| r.time == finding.draft.time.as_ref().map(|t| t.at))?;
        if !names(&draft.claim).iter().all(|n| rec.holds(n.trim_end_matches('…'))) {
            return None;
        }
        draft.citations = vec![cite(rec)];
    }
    if let Some(time) = draft.time.as_mut().filter(|t| t.precision < Precision::Second && dice.below(3) == 0) {
        time.at = Timestamp::from_second(time.at.as_second()).ok()?;
        time.precision = Precision::Second;
    }
    Some(Trial::beside(Kind::Duplicate, finding, draft))
}

/// The same occurrence in the log of another sensor, whose clock is off by up to a minute and a half.
pub(super) fn two_clocks(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    const APART: [i64; 7] = [3, 40, 400, 900, 2_000, 15_000, 90_000];
    let base = event(stage, dice)?;
    let finding = &base.found.finding;
    let time = finding.draft.time.as_ref()?;
    let rec = base.records.iter().find(|r| r.time == Some(time.at))?;
    let by = i128::from(*dice.pick(&APART)?) * 1_000_000 * if dice.below(2) == 0 { 1 } else { -1 };
    let at = Timestamp::from_nanosecond(time.at.as_nanosecond() + by).ok()?;
    let change = |v: &mut Value| {
        if let Some(map) = v.as_object_mut() {
            map.insert("time".into(), Value::String(at.to_string()));
            map.insert("source".into(), Value::String("second_sensor".into()));
            map.insert("file".into(), Value::String("second_sensor.ndjson".into()));
            map.insert("time_basis".into(), Value::String("record".into()));
        }
    };
    let (made, other) = made_record(stage, rec, &change, dice)?;
    if !names(&finding.draft.claim).iter().all(|n| other.holds(n.trim_end_matches('…'))) {
        return None;
    }
    let mut draft = FindingDraft { citations: vec![cite(&other)], ..finding.draft.clone() };
    draft.entities.retain(|e| other.holds(&e.value));
    draft.time = Some(EventTime { at, basis: TimeBasis::Record, until: None, ..time.clone() });
    Some(Trial::beside(Kind::TwoClocks, finding, draft).with(made))
}

/// The same record explained in the opposite way, or with the opposite outcome.
pub(super) fn contradiction(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = event(stage, dice)?;
    let finding = &base.found.finding;
    let mut draft = finding.draft.clone();
    let first = names(&draft.claim).into_iter().next()?;
    match (draft.bearing, dice.below(2)) {
        (Bearing::Incriminating, 0) => {
            draft.bearing = Bearing::Exonerating;
            draft.claim = format!("`{first}` was planned maintenance and is harmless");
        }
        (Bearing::Exonerating, 0) => {
            draft.bearing = Bearing::Incriminating;
            draft.weight = Weight::Strong;
            draft.claim = format!("`{first}` was the work of an intruder");
        }
        (_, 1) if draft.claim.contains(", which failed") => {
            draft.claim = draft.claim.replace(", which failed", ", which succeeded");
        }
        (_, 1) => draft.claim = format!("`{first}` was attempted and failed: nothing of it took effect"),
        _ => return None,
    }
    Some(Trial::beside(Kind::Contradiction, finding, draft))
}
