//! Changed, borrowed and aggregated times; and true times in other words.

use casebook_protocol::{Citation, FindingDraft, FindingKind, Precision, TimeBasis, Timestamp};
use serde_json::Value;

use super::place::spelled;
use super::{absent, any_base};
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Base, Stage};
use crate::calibrate::trial::{Trial, cite, made_record};

/// Seconds by which people, models and clocks go wrong.
const SHIFTS: [i64; 12] = [1, 2, 10, 37, 60, 300, 599, 3_600, 7_200, 19_800, 25_200, 43_200];

fn moved(at: Timestamp, by: i64) -> Option<Timestamp> {
    Timestamp::new(at.as_second().checked_add(by)?, at.subsec_nanosecond()).ok()
}

/// `18:10:22` of a moment.
fn clock(at: Timestamp) -> String {
    format!("{at:.9}").get(11..19).unwrap_or_default().to_owned()
}

fn date(at: Timestamp) -> String {
    format!("{at:.9}").get(..10).unwrap_or_default().to_owned()
}

/// The clock stands neither in a cited record nor among their times.
fn is_new(base: &Base, at: Timestamp) -> bool {
    let cut = |t: Timestamp| clock(t).get(..5).map(str::to_owned);
    absent(base, &clock(at)) && !base.records.iter().any(|r| r.time.is_some_and(|t| cut(t) == cut(at)))
}

/// Another time, in the finding's time or in its words, in many notations.
pub(super) fn changed(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let time = finding.draft.time.clone()?;
    let by = *dice.pick(&SHIFTS)? * if dice.below(2) == 0 { 1 } else { -1 };
    let at = moved(time.at, by)?;
    let mut draft = finding.draft.clone();
    if dice.below(3) == 0 {
        if base.records.iter().any(|r| r.time == Some(at)) {
            return None;
        }
        draft.time.as_mut()?.at = at;
        return Some(Trial::instead(Kind::ChangedTime, finding, draft));
    }
    if !is_new(base, at) {
        return None;
    }
    let words = match dice.below(6) {
        0 => clock(at),
        1 => format!("{at:.3}"),
        2 => clock(at).get(..5)?.to_owned(),
        3 => zoned(at, 2 * 3600, dice)?,
        4 => noon(at, dice.below(2) == 0),
        // Minutes and seconds of the right time taken for hours and minutes.
        _ => {
            let wrong = clock(time.at).get(3..)?.to_owned();
            let as_hours = wrong.get(..2)?.parse::<u32>().ok()? < 24;
            let other = base.records.iter().filter_map(|r| r.time).all(|t| clock(t).get(..5) != Some(&wrong));
            if !as_hours || !other || dice.below(2) == 0 {
                return None;
            }
            wrong
        }
    };
    draft.claim = format!("At {words}: {}", draft.claim);
    Some(Trial::instead(Kind::ChangedTime, finding, draft))
}

/// A record that sums up a period, given as the record of an event at its time.
pub(super) fn aggregate(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let sums: Vec<_> =
        stage.records.iter().filter(|r| r.basis < TimeBasis::ClockCorrected && r.time.is_some()).collect();
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let mut draft = FindingDraft { kind: FindingKind::Occurrence, ..finding.draft.clone() };
    let as_events = |draft: &mut FindingDraft, at: Timestamp| {
        draft.time = Some(casebook_protocol::EventTime {
            at,
            until: None,
            precision: Precision::Second,
            basis: TimeBasis::Record,
            field: String::new(),
        });
    };
    if let Some(rec) = dice.pick(&sums).filter(|r| r.domain == finding.domain) {
        draft.claim = "A record of the alerted activity".into();
        draft.entities.clear();
        draft.citations = vec![cite(rec)];
        as_events(&mut draft, rec.time?);
        return Some(Trial::alone(Kind::AggregateTime, finding.domain.clone(), draft));
    }
    let rec = base.records.first()?;
    let weak = *dice.pick(&["aggregation", "ingestion", "inferred"])?;
    let change = |v: &mut Value| {
        if let Some(map) = v.as_object_mut() {
            map.insert("time_basis".into(), Value::String(weak.into()));
        }
    };
    let (made, sum) = made_record(stage, rec, &change, dice)?;
    draft.citations = vec![cite(&sum)];
    as_events(&mut draft, rec.time?);
    Some(Trial::instead(Kind::AggregateTime, finding, draft).with(made))
}

/// The facts of the finding's records at the time of another record that is cited as well.
pub(super) fn borrowed(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let time = finding.draft.time.clone()?;
    let other = dice.pick(&stage.records).filter(|r| r.domain == finding.domain)?;
    let at = other.time?;
    let apart = (at.as_second() - time.at.as_second()).abs();
    let near = base.records.iter().any(|r| r.time.is_some_and(|t| (t.as_second() - at.as_second()).abs() < 60));
    if apart < 60 || near {
        return None;
    }
    let mut draft = finding.draft.clone();
    let given = draft.time.as_mut()?;
    (given.at, given.basis, given.precision, given.until) = (at, other.basis, other.precision, None);
    draft.citations.push(cite(other));
    Some(Trial::instead(Kind::BorrowedTime, finding, draft))
}

/// A moment with another offset from UTC, such as `20:10:22+02:00`.
fn zoned(at: Timestamp, least: i64, dice: &mut Dice) -> Option<String> {
    let offset = *dice.pick(&[least, -18_000, 19_800, 32_400])?;
    let local = moved(at, offset)?;
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 3600, offset.abs() % 3600 / 60);
    Some(match dice.below(3) {
        0 => format!("{}T{}{sign}{hours:02}:{minutes:02}", date(local), clock(local)),
        1 => format!("{}{sign}{hours:02}:{minutes:02}", clock(local)),
        _ if minutes == 0 => format!("{} UTC{sign}{hours}", clock(local)),
        _ => format!("{} UTC{sign}{hours}:{minutes:02}", clock(local)),
    })
}

/// `6:10 pm UTC`, with seconds or without.
fn noon(at: Timestamp, seconds: bool) -> String {
    let clock = clock(at);
    let hour: u32 = clock.get(..2).and_then(|h| h.parse().ok()).unwrap_or(0);
    let rest = clock.get(2..if seconds { 8 } else { 5 }).unwrap_or_default();
    let half = if hour < 12 { "am" } else { "pm" };
    format!("{}{rest} {half} UTC", if hour.is_multiple_of(12) { 12 } else { hour % 12 })
}

fn retold(
    kind: Kind,
    stage: &Stage,
    dice: &mut Dice,
    words: impl Fn(Timestamp, &mut Dice) -> Option<String>,
) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let at = finding.draft.time.as_ref()?.at;
    let draft = finding.draft.clone();
    let claim = format!("{}: {}", words(at, dice)?, draft.claim);
    Some(Trial::instead(kind, finding, FindingDraft { claim, ..draft }))
}

/// The right time with another offset.
pub(super) fn other_zone(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    retold(Kind::OtherZone, stage, dice, |at, dice| Some(format!("At {}", zoned(at, 7_200, dice)?)))
}

/// The right time as people write it.
pub(super) fn other_notation(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    retold(Kind::OtherNotation, stage, dice, |at, dice| {
        let day = spelled(&date(at), dice);
        Some(match dice.below(4) {
            0 => format!("On {day} at {}", noon(at, dice.below(2) == 0)),
            1 => format!("On {day}, {} UTC", clock(at)),
            2 => format!("{} {}", date(at), clock(at)),
            _ => format!("On {day} at {}", clock(at).get(..5)?),
        })
    })
}

/// The right time cut to the second or the minute, and said to be known no better.
pub(super) fn cut(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let mut draft = finding.draft.clone();
    let time = draft.time.as_mut()?;
    let (unit, precision) = *dice.pick(&[(1, Precision::Second), (60, Precision::Minute)])?;
    let at = time.at;
    let cut = Timestamp::from_second(at.as_second().div_euclid(unit) * unit).ok()?;
    if cut == at || time.precision > precision {
        return None;
    }
    (time.at, time.precision) = (cut, precision);
    let words = clock(at).get(..if unit == 1 { 8 } else { 5 })?.to_owned();
    if dice.below(2) == 0 {
        draft.claim = format!("At {words}: {}", draft.claim);
    }
    // A count of whole seconds has no other time to be held against.
    matches!(draft.citations.first()?, Citation::Literal { .. }).then(|| Trial::instead(Kind::CutTime, finding, draft))
}
