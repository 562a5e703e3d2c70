//! Makes trials: for each kind a function from a round of a real investigation and dice to a trial, or
//! to nothing where the round has nothing that it could be made of.
//!
//! Whether a planted finding is false is never decided by asking the check that is measured: values
//! are exchanged only for such as do not stand in the cited records at all, or for pieces of longer
//! values, which say something else.

mod absence;
mod citation;
mod hostile;
mod moment;
mod pair;
mod place;
mod truth;
mod units;
mod value;

use std::collections::BTreeSet;

use super::dice::Dice;
use super::kind::{Expect, Kind};
use super::material::{Base, Stage};
use super::trial::Trial;

/// So often a kind is tried on a round before it counts as impossible there.
const ATTEMPTS: usize = 40;

/// A trial with the round that it belongs to.
#[derive(Debug, Clone)]
pub struct Planted {
    /// Which of the rounds.
    pub stage: usize,
    /// The trial.
    pub trial: Trial,
}

fn plant(kind: Kind, stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    match kind {
        Kind::MissingCall => citation::missing_call(stage, dice),
        Kind::MissingPlace => citation::missing_place(stage, dice),
        Kind::QuoteNotThere => citation::quote_not_there(stage, dice),
        Kind::CitesOther => citation::cites_other(stage, dice),
        Kind::ChangedTime => moment::changed(stage, dice),
        Kind::ChangedAddress => value::address(stage, dice),
        Kind::ChangedCount => value::count(stage, dice),
        Kind::ChangedUser => value::user(stage, dice),
        Kind::ChangedHash => value::hash(stage, dice),
        Kind::ChangedName => value::name(stage, dice),
        Kind::OtherHost => place::other_host(stage, dice),
        Kind::OtherDay => place::other_day(stage, dice),
        Kind::AbsenceUnsearched => absence::unsearched(stage, dice),
        Kind::AbsenceMatched => absence::matched(stage, dice),
        Kind::AbsenceNotAsked => absence::not_asked(stage, dice),
        Kind::AggregateTime => moment::aggregate(stage, dice),
        Kind::MisreadField => value::exchanged(stage, dice),
        Kind::BorrowedTime => moment::borrowed(stage, dice),
        Kind::Unmarked => value::unmarked(stage, dice),
        Kind::AttackerText => hostile::told_as_fact(stage, dice),
        Kind::Duplicate => pair::duplicate(stage, dice),
        Kind::TwoClocks => pair::two_clocks(stage, dice),
        Kind::Contradiction => pair::contradiction(stage, dice),
        // Measured without anything planted.
        Kind::AsFound => None,
        Kind::TrueCount => truth::count(stage, dice),
        Kind::TrueAbsence => absence::truth(stage, dice),
        Kind::OtherZone => moment::other_zone(stage, dice),
        Kind::OtherNotation => moment::other_notation(stage, dice),
        Kind::CutTime => moment::cut(stage, dice),
        Kind::ByteUnits => units::bytes(stage, dice),
        Kind::TimeUnits => units::duration(stage, dice),
        Kind::Reordered => truth::reordered(stage, dice),
        Kind::PartialQuote => truth::partial_quote(stage, dice),
        Kind::LongAddress => truth::long_address(stage, dice),
    }
}

/// `planted` trials over all false kinds and half as many over the true ones, as evenly as the rounds
/// allow. Fewer where the rounds do not give as many different ones.
#[must_use]
pub fn trials(stages: &[Stage], planted: usize, seed: u64) -> Vec<Planted> {
    let mut dice = Dice::new(seed);
    let of = |truth: bool| Kind::ALL.iter().copied().filter(move |k| (k.expect() == Expect::Kept) == truth);
    let mut all = share(stages, of(false).collect(), planted, &mut dice);
    all.extend(share(stages, of(true).collect(), planted / 2, &mut dice));
    all
}

/// One trial a kind, again and again, until there are enough or no kind gives a new one.
fn share(stages: &[Stage], mut kinds: Vec<Kind>, wanted: usize, dice: &mut Dice) -> Vec<Planted> {
    let usable: Vec<usize> =
        stages.iter().enumerate().filter(|(_, s)| !s.bases.is_empty()).map(|(place, _)| place).collect();
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    while all.len() < wanted && !kinds.is_empty() {
        kinds.retain(|kind| {
            if all.len() >= wanted {
                return true;
            }
            match fresh(*kind, stages, &usable, &mut seen, dice) {
                Some(planted) => {
                    all.push(planted);
                    true
                }
                None => false,
            }
        });
    }
    all
}

fn fresh(
    kind: Kind,
    stages: &[Stage],
    usable: &[usize],
    seen: &mut BTreeSet<String>,
    dice: &mut Dice,
) -> Option<Planted> {
    for _ in 0..ATTEMPTS * usable.len().max(1) {
        let place = *dice.pick(usable)?;
        let Some(trial) = stages.get(place).and_then(|stage| plant(kind, stage, dice)) else { continue };
        if seen.insert(print(place, &trial)) {
            return Some(Planted { stage: place, trial });
        }
    }
    None
}

/// What makes a trial another one: its words and its citations, the ids of made-up calls aside.
fn print(place: usize, trial: &Trial) -> String {
    let drafts: Vec<String> = trial
        .drafts
        .iter()
        .map(|d| format!("{:?} {} {:?} {:?} {:?}", d.kind, d.claim, d.time, d.bearing, d.entities))
        .collect();
    let cited: Vec<&casebook_protocol::Citation> =
        if trial.calls.is_empty() { trial.drafts.iter().flat_map(|d| &d.citations).collect() } else { Vec::new() };
    let made: Vec<&[u8]> = trial.calls.iter().map(|c| c.bytes.as_slice()).collect();
    casebook_protocol::ArtifactId::of(
        format!("{place} {:?} {:?} {drafts:?} {cited:?} {made:?}", trial.kind, trial.about()).as_bytes(),
    )
    .to_string()
}

/// A finding of the round with at least one cited record.
fn any_base<'a>(stage: &'a Stage, dice: &mut Dice) -> Option<&'a Base> {
    dice.pick(&stage.bases).filter(|b| !b.records.is_empty())
}

/// The text stands in none of the records that the finding cites.
fn absent(base: &Base, text: &str) -> bool {
    !base.records.iter().any(|r| r.holds(text))
}
