//! Changed, borrowed and aggregated times, other days and clocks; and true times in other notations.

use casebook_protocol::{Citation, EventTime, FindingKind, Precision, TimeBasis, Timestamp};
use jiff::SignedDuration;
use jiff::tz::{Offset, TimeZone};
use rand::Rng;
use serde_json::json;

use super::{Plant, cite, names, with};
use crate::calibrate::stage::Rec;

/// Typical errors of people, models and clocks, in seconds.
const SHIFTS: [i64; 12] = [1, 2, 10, 37, 60, 300, 599, 3_600, 7_200, 19_800, 25_200, 43_200];
const DAYS: [&str; 4] = ["%-d %B %Y", "%B %-d, %Y", "%b %-d %Y", "%Y-%m-%d"];

pub(super) fn moved(at: Timestamp, seconds: i64) -> Option<Timestamp> {
    at.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn in_form(at: Timestamp, form: &str) -> String {
    at.strftime(form).to_string()
}

/// Whether the time occurs neither in a cited record nor among their times.
fn is_new(p: &Plant, at: Timestamp) -> bool {
    let minute = |at| in_form(at, "%H:%M");
    p.absent(&in_form(at, "%T")) && !p.base.records.iter().filter_map(|r| r.time).any(|t| minute(t) == minute(at))
}

/// Another time, in the finding's time or in its words.
pub(crate) fn changed(p: &mut Plant) -> Option<()> {
    let right = p.draft.time.as_ref()?.at;
    let by = *p.pick(&SHIFTS)? * p.sign();
    let at = moved(right, by)?;
    if p.one_in(3) {
        if p.base.records.iter().any(|record| record.time == Some(at)) {
            return None;
        }
        p.draft.time.as_mut()?.at = at;
        return Some(());
    }
    if !is_new(p, at) {
        return None;
    }
    let words = match p.below(6) {
        0 => zoned(p, at)?,
        1 => {
            // Minutes and seconds of the right time, read as hours and minutes.
            let wrong = in_form(right, "%M:%S");
            let as_hours = wrong.get(..2)?.parse::<u32>().ok()? < 24;
            let other = p.base.records.iter().filter_map(|r| r.time).all(|t| in_form(t, "%H:%M") != wrong);
            Some(wrong).filter(|_| as_hours && other && p.one_in(2))?
        }
        _ => in_form(at, p.pick(&["%T", "%FT%T%.3fZ", "%H:%M", "%-I:%M:%S %P UTC", "%-I:%M %P UTC"])?),
    };
    p.say(&format!("At {words}: "));
    Some(())
}

/// Right facts on the wrong day: in the finding's time, in its words, or in the record.
pub(crate) fn other_day(p: &mut Plant) -> Option<()> {
    let by = 86_400 * p.dice.random_range(1..=30) * p.sign();
    let at = moved(p.draft.time.as_ref()?.at, by)?;
    if !p.absent(&in_form(at, "%F")) {
        return None;
    }
    match p.below(3) {
        0 => p.draft.time.as_mut()?.at = at,
        1 => {
            let day = in_form(at, p.pick(&DAYS)?);
            p.say(&format!("On {day}: "));
        }
        _ => {
            let other = p.returned(&with(p.record()?, [("time", json!(at.to_string()))]))?;
            p.cite(&other);
        }
    }
    Some(())
}

/// A record that summarises a period, cited as the record of an event at its time.
pub(crate) fn of_aggregate(p: &mut Plant) -> Option<()> {
    let sums = |rec: &&Rec| rec.basis < TimeBasis::ClockCorrected && rec.time.is_some();
    let sum = p.choose(&p.stage.records, sums).filter(|record| record.domain == p.domain);
    let (until, precision, basis) = (None, Precision::Second, TimeBasis::Record);
    let as_event = |at| Some(EventTime { at, until, precision, basis, field: String::new() });
    p.draft.kind = FindingKind::Occurrence;
    if let Some(sum) = sum {
        p.alone(&sum.domain);
        p.draft.claim = "A record of the alerted activity".into();
        p.draft.entities.clear();
        p.cite(sum);
        p.draft.time = as_event(sum.time?);
        return Some(());
    }
    let record = p.record()?;
    let weak = *p.pick(&["aggregation", "ingestion", "inferred"])?;
    let sum = p.returned(&with(record, [("time_basis", json!(weak))]))?;
    p.cite(&sum);
    p.draft.time = as_event(record.time?);
    Some(())
}

/// The facts of the finding's records at the time of another cited record.
pub(crate) fn borrowed(p: &mut Plant) -> Option<()> {
    let own = p.draft.time.as_ref()?.at;
    let other = p.pick(&p.stage.records).filter(|record| record.domain == p.domain)?;
    let at = other.time?;
    let near = |time: Timestamp| (time.as_second() - at.as_second()).abs() < 60;
    if near(own) || p.base.records.iter().filter_map(|record| record.time).any(near) {
        return None;
    }
    p.date(other)?;
    p.draft.citations.push(cite(other));
    Some(())
}

/// The same occurrence in the log of another sensor, with a clock that is off by up to 90 seconds.
pub(crate) fn of_two_clocks(p: &mut Plant) -> Option<()> {
    let time = p.draft.time.clone()?;
    let record = p.base.records.iter().find(|record| record.time == Some(time.at))?;
    let by = *p.pick(&[3, 40, 400, 900, 2_000, 15_000, 90_000])? * p.sign();
    let at = time.at.checked_add(SignedDuration::from_millis(by)).ok()?;
    let elsewhere = with(
        record,
        [
            ("time", json!(at.to_string())),
            ("source", json!("second_sensor")),
            ("file", json!("second_sensor.ndjson")),
            ("time_basis", json!("record")),
        ],
    );
    let other = p.returned(&elsewhere)?;
    if !names(&p.draft.claim).iter().all(|name| other.holds(name.trim_end_matches('…'))) {
        return None;
    }
    p.cite(&other);
    p.draft.entities.retain(|entity| other.holds(&entity.value));
    p.draft.time = Some(EventTime { at, basis: TimeBasis::Record, until: None, ..time });
    Some(())
}

/// A time with another offset from UTC, such as `20:10:22+02:00`.
fn zoned(p: &mut Plant, at: Timestamp) -> Option<String> {
    let offset = Offset::from_seconds(*p.pick(&[7_200, -18_000, 19_800, 32_400])?).ok()?;
    let form = p.pick(&["%FT%T%:z", "%T%:z", "%T UTC%:::z"])?;
    let text = at.to_zoned(TimeZone::fixed(offset)).strftime(form).to_string();
    // The common notation UTC+2.
    Some(text.replace("UTC+0", "UTC+").replace("UTC-0", "UTC-"))
}

/// True: the time with another offset.
pub(crate) fn other_zone(p: &mut Plant) -> Option<()> {
    let words = zoned(p, p.draft.time.as_ref()?.at)?;
    p.say(&format!("At {words}: "));
    Some(())
}

/// True: the time in another notation.
pub(crate) fn other_notation(p: &mut Plant) -> Option<()> {
    const FORMS: [&str; 5] =
        ["On DAY at %-I:%M %P UTC", "On DAY at %-I:%M:%S %P UTC", "On DAY, %T UTC", "%F %T", "On DAY at %H:%M"];
    let form = p.pick(&FORMS)?.replace("DAY", p.pick(&DAYS)?);
    p.say(&format!("{}: ", in_form(p.draft.time.as_ref()?.at, &form)));
    Some(())
}

/// True: the time cut to the second or the minute, with that precision.
pub(crate) fn cut(p: &mut Plant) -> Option<()> {
    let (unit, precision, form) = *p.pick(&[(1, Precision::Second, "%T"), (60, Precision::Minute, "%H:%M")])?;
    let time = p.draft.time.as_mut()?;
    let at = time.at;
    let cut = Timestamp::from_second(at.as_second().div_euclid(unit) * unit).ok()?;
    // The time of a count of whole seconds cannot be compared.
    let literal = matches!(p.draft.citations.first()?, Citation::Literal { .. });
    if cut == at || time.precision > precision || !literal {
        return None;
    }
    (time.at, time.precision) = (cut, precision);
    if p.one_in(2) {
        p.say(&format!("At {}: ", in_form(at, form)));
    }
    Some(())
}
