//! Right facts from another host or another day.

use casebook_protocol::{EntityKind, FindingDraft, Timestamp};
use serde_json::Value;

use super::value::{another, changed_digit, entity_values};
use super::{absent, any_base};
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::Stage;
use crate::calibrate::trial::{Trial, cite, made_record, renamed, replace_all};

/// The claim names another host than the record, or the record is of another host than the claim.
pub(super) fn other_host(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let hosts: Vec<&str> = entity_values(base, EntityKind::Host);
    let old = (*dice.pick(&hosts)?).to_owned();
    if !finding.draft.claim.contains(&format!("`{old}`")) || old.len() < 3 {
        return None;
    }
    let new = match dice.below(3) {
        0 => another(stage, dice, EntityKind::Host, |_| true)?,
        1 => format!("{}-02", old.split('.').next()?),
        _ => changed_digit(&old, dice).unwrap_or_else(|| format!("new-{old}")),
    };
    if !absent(base, &new) || new.contains(&old) && dice.below(2) == 0 {
        return None;
    }
    if dice.below(2) == 0 {
        return Some(Trial::instead(Kind::OtherHost, finding, renamed(base, &old, &new, false)));
    }
    let short = old.split('.').next()?.to_owned();
    if new.to_lowercase().contains(&short.to_lowercase()) {
        return None;
    }
    let rec = base.records.first()?;
    let (made, moved) = made_record(stage, rec, &|v| replace_all(v, &short, &new), dice)?;
    (!moved.holds(&short)).then(|| {
        let draft = FindingDraft { citations: vec![cite(&moved)], ..finding.draft.clone() };
        Trial::instead(Kind::OtherHost, finding, draft).with(made)
    })
}

/// The facts are right, the day is not: in the finding's time, in its words, or in the record.
pub(super) fn other_day(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    const DAY: i64 = 86_400;
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let time = finding.draft.time.clone()?;
    let by = DAY * (1 + i64::try_from(dice.below(30)).unwrap_or(0)) * if dice.below(2) == 0 { 1 } else { -1 };
    let moved = |at: Timestamp| Timestamp::new(at.as_second().checked_add(by)?, at.subsec_nanosecond()).ok();
    let at = moved(time.at)?;
    let date = format!("{at:.0}").get(..10)?.to_owned();
    if !absent(base, &date) {
        return None;
    }
    let mut draft = finding.draft.clone();
    match dice.below(3) {
        0 => draft.time.as_mut()?.at = at,
        1 => draft.claim = format!("On {}: {}", spelled(&date, dice), draft.claim),
        _ => {
            let rec = base.records.first()?;
            let shift = |v: &mut Value| {
                if let Some(time) = v.get_mut("time") {
                    *time = Value::String(at.to_string());
                }
            };
            let (made, other) = made_record(stage, rec, &shift, dice)?;
            draft.citations = vec![cite(&other)];
            return Some(Trial::instead(Kind::OtherDay, finding, draft).with(made));
        }
    }
    Some(Trial::instead(Kind::OtherDay, finding, draft))
}

/// A date such as `2024-05-01` in one of the ways in which people write it.
pub(super) fn spelled(date: &str, dice: &mut Dice) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let name = month.parse::<usize>().ok().and_then(|m| MONTHS.get(m.checked_sub(1)?)).copied().unwrap_or("");
    let day = day.trim_start_matches('0');
    match dice.below(4) {
        0 => format!("{day} {name} {year}"),
        1 => format!("{name} {day}, {year}"),
        2 => format!("{} {day} {year}", name.get(..3).unwrap_or(name)),
        _ => date.to_owned(),
    }
}
