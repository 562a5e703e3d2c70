//! True findings in hard forms: counts, names in another order, partial quotations, long addresses.

use std::net::Ipv6Addr;

use casebook_protocol::{Bearing, Citation, Entity, EntityKind, FindingDraft, FindingKind, Locator, Score, Weight};

use super::absence::listed;
use super::any_base;
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Search, Stage};
use crate::calibrate::trial::{MadeCall, Trial, again, cite, made_record, names};

fn counted(kind: Kind, stage: &Stage, search: &Search, said: u64, cited: u64, dice: &mut Dice) -> Option<Trial> {
    let second = again(stage, search, dice);
    let bytes = stage.exhibits.get(&search.domain)?.text(&search.call.id)?.as_bytes().to_vec();
    let all = if search.terms.len() > 1 && !search.any { "all of " } else { "" };
    let number = if said >= 1_000 && dice.below(2) == 0 {
        format!("{},{:03}", said / 1_000, said % 1_000)
    } else {
        said.to_string()
    };
    let draft = FindingDraft {
        kind: FindingKind::Aggregate,
        claim: format!("{number} records name {all}{}", listed(&search.terms)),
        time: None,
        entities: vec![],
        bearing: Bearing::Neutral,
        weight: Weight::Weak,
        about_alert: false,
        technique: None,
        confidence: Score::clamped(0.8),
        citations: vec![Citation::Count {
            call: search.call.id.clone(),
            at: Locator::Pointer("/total".into()),
            value: cited,
            again: Some(second.id.clone()),
        }],
        look_next: None,
    };
    Some(Trial::alone(kind, search.domain.clone(), draft).with(MadeCall { call: second, bytes, repeatable: true }))
}

fn search<'a>(stage: &'a Stage, dice: &mut Dice) -> Option<&'a Search> {
    let all: Vec<&Search> = stage.searches.iter().filter(|s| (1..1_000_000).contains(&s.total)).collect();
    dice.pick(&all).copied()
}

/// A number of records, as the search gave it.
pub(super) fn count(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let search = search(stage, dice)?;
    counted(Kind::TrueCount, stage, search, search.total, search.total, dice)
}

/// Another number than the search gave: in the words, in the citation, or in both.
pub(super) fn changed_count(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let search = search(stage, dice)?;
    let limit = serde_json::from_str::<serde_json::Value>(&search.call.arguments).ok()?.get("limit")?.as_u64();
    let wrong = match dice.below(4) {
        // What the query asked for is not what it found.
        0 => limit?,
        1 => search.total + 1 + dice.below(5) as u64,
        2 => search.total * 10,
        _ => search.total.saturating_sub(1),
    };
    // The words may state a number that one of the terms states.
    if wrong == search.total || wrong == 0 || search.terms.iter().any(|t| t.contains(&wrong.to_string())) {
        return None;
    }
    let (said, cited) = *dice.pick(&[(wrong, search.total), (wrong, wrong), (search.total, wrong)])?;
    counted(Kind::ChangedCount, stage, search, said, cited, dice)
}

/// The names that were recorded together, told in another order.
pub(super) fn reordered(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let mut all = names(&finding.draft.claim);
    if all.len() < 2 {
        return None;
    }
    for last in (1..all.len()).rev() {
        all.swap(last, dice.below(last + 1));
    }
    let draft = FindingDraft { claim: format!("Recorded together: {}", listed(&all)), ..finding.draft.clone() };
    Some(Trial::instead(Kind::Reordered, finding, draft))
}

/// A piece of the quotation, with marks where it is cut, or names by their last part.
pub(super) fn partial_quote(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let mut draft = finding.draft.clone();
    if dice.below(3) == 0 {
        let long: Vec<String> = names(&draft.claim).into_iter().filter(|n| n.contains(['/', '\\'])).collect();
        let name = dice.pick(&long)?;
        let last = name.rsplit(['/', '\\']).next().filter(|l| l.len() >= 3 && !l.ends_with('…'))?;
        draft.claim = draft.claim.replace(&format!("`{name}`"), &format!("`{last}`"));
        return Some(Trial::instead(Kind::PartialQuote, finding, draft));
    }
    let Citation::Literal { quote, .. } = draft.citations.first_mut()? else { return None };
    let length = quote.chars().count();
    let from = dice.below(length.saturating_sub(20));
    let piece: String = quote.chars().skip(from).take(20 + dice.below(60)).collect();
    if piece.trim().chars().count() < 10 {
        return None;
    }
    *quote = match dice.below(4) {
        0 => format!("{piece}…"),
        1 => format!("…{piece}…"),
        2 => format!("...{piece}..."),
        _ => piece,
    };
    Some(Trial::instead(Kind::PartialQuote, finding, draft))
}

/// An IPv6 address in one notation in the record, in another in the claim.
pub(super) fn long_address(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let rec = base.records.first()?;
    let group = |dice: &mut Dice| u16::try_from(dice.below(65_535)).unwrap_or(1);
    let address = Ipv6Addr::new(0xfd00, group(dice), 0, 0, 0, 0, 0, group(dice));
    let long = address.segments().map(|s| format!("{s:04x}")).join(":");
    let (written, told) = if dice.below(2) == 0 { (address.to_string(), long) } else { (long, address.to_string()) };
    let change = |value: &mut serde_json::Value| {
        if let Some(serde_json::Value::String(raw)) = value.get_mut("raw") {
            *raw = format!("peer={written} {raw}");
        }
    };
    let (made, new) = made_record(stage, rec, &change, dice)?;
    let quoted = dice.below(2) == 0;
    let finding = &base.found.finding;
    let mut draft = finding.draft.clone();
    draft.claim = if quoted {
        format!("`{told}` was the peer: {}", draft.claim)
    } else {
        format!("The peer was {told}. {}", draft.claim)
    };
    draft.entities.push(Entity { kind: EntityKind::Address, value: told });
    // The other records stay cited: the claim may need them.
    *draft.citations.first_mut()? = cite(&new);
    Some(Trial::instead(Kind::LongAddress, finding, draft).with(made))
}
