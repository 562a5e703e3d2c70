//! True amounts in other units than the record has them in.

use casebook_protocol::FindingDraft;

use super::any_base;
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Base, Rec, Stage};
use crate::calibrate::trial::{Trial, cite};

/// A record with an amount under a key that one of `words` is part of, and the amount.
fn amount(stage: &Stage, dice: &mut Dice, words: &[&str], least: f64) -> Option<(Base, Rec, f64)> {
    let base = any_base(stage, dice)?.clone();
    let has = |rec: &Rec| -> Vec<f64> {
        let named = rec.fields().filter(|(key, _)| words.iter().any(|w| last(key).contains(w)));
        named.filter_map(|(_, v)| v.parse().ok()).filter(|v: &f64| *v >= least && *v < 1e12).collect()
    };
    let all: Vec<(&Rec, f64)> = stage
        .records
        .iter()
        .filter(|r| r.domain == base.found.finding.domain && r.time.is_some())
        .flat_map(|r| has(r).into_iter().map(move |v| (r, v)))
        .collect();
    let (rec, value) = *dice.pick(&all)?;
    let rec = rec.clone();
    Some((base, rec, value))
}

/// The last part of a field's path, in lower case.
fn last(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).to_lowercase()
}

fn trial(kind: Kind, base: &Base, rec: &Rec, claim: String) -> Option<Trial> {
    let mut draft =
        FindingDraft { claim, citations: vec![cite(rec)], entities: vec![], ..base.found.finding.draft.clone() };
    let time = draft.time.as_mut()?;
    (time.at, time.basis, time.precision, time.until) = (rec.time?, rec.basis, rec.precision, None);
    Some(Trial::alone(kind, base.found.finding.domain.clone(), draft))
}

/// A number of bytes in kilobytes or megabytes, of 1000 or of 1024.
pub(super) fn bytes(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let (base, rec, value) = amount(stage, dice, &["bytes", "size", "octets"], 512.0)?;
    let units = [("kB", 1e3), ("KB", 1e3), ("KiB", 1024.0), ("MB", 1e6), ("MiB", 1_048_576.0)];
    let fit: Vec<_> = units.iter().filter(|(_, unit)| value / unit >= 0.5).collect();
    let (name, unit) = **dice.pick(&fit)?;
    let digits = if value / unit >= 100.0 { 0 } else { 1 };
    trial(Kind::ByteUnits, &base, &rec, format!("About {:.digits$} {name} were sent or received", value / unit))
}

/// A duration in milliseconds, minutes or hours.
pub(super) fn duration(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let (base, rec, value) = amount(stage, dice, &["duration", "elapsed"], 0.02)?;
    let units = [("ms", 0.001), ("s", 1.0), ("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0)];
    let fit: Vec<_> = units.iter().filter(|(_, unit)| value / unit >= 1.0).collect();
    let (name, unit) = **dice.pick(&fit)?;
    let digits = if value / unit >= 100.0 { 0 } else { 1 };
    trial(Kind::TimeUnits, &base, &rec, format!("It lasted {:.digits$} {name}", value / unit))
}
