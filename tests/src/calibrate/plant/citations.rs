//! Citations of things that do not exist, of records that do not support the claim, and true partial ones.

use casebook_protocol::{CallId, Citation, FindingKind, Locator, TaskId, TaskKind};
use rand::Rng;

use super::{Plant, whole};

/// A call that was never made, or that belongs to another Expert or round.
pub(crate) fn missing_call(p: &mut Plant) -> Option<()> {
    let own = TaskId::of(p.stage.state.round, TaskKind::Investigate, Some(&p.domain));
    let id = if p.one_in(2) {
        CallId::of(&own, p.dice.random_range(90..990), 0)
    } else {
        p.choose(p.stage.state.calls.values(), |made| made.task != own)?.call.id.clone()
    };
    match p.draft.citations.first_mut()? {
        Citation::Literal { call, .. }
        | Citation::Count { call, .. }
        | Citation::Aggregate { call, .. }
        | Citation::Absence { call, .. } => *call = id,
    }
    Some(())
}

/// A pointer to a record or field that does not exist, or a line beyond the last.
pub(crate) fn missing_place(p: &mut Plant) -> Option<()> {
    let beyond = p.dice.random_range(1_000..10_000);
    let new = match p.below(4) {
        0 => Locator::Pointer(format!("/records/{beyond}")),
        1 => Locator::Pointer(format!("/records/0/made_up_{beyond}")),
        2 => Locator::Line(0),
        _ => Locator::Line(beyond),
    };
    let Citation::Literal { at, .. } = p.draft.citations.first_mut()? else { return None };
    *at = new;
    Some(())
}

/// The quotation of another record, or the right one with one character changed.
pub(crate) fn quote_not_there(p: &mut Plant) -> Option<()> {
    let Citation::Literal { quote, .. } = p.draft.citations.first()? else { return None };
    let (quote, other) = (quote.clone(), p.pick(&p.stage.records)?);
    let new: String = if p.one_in(2) {
        let skip = p.below(other.raw.chars().count().saturating_sub(40));
        other.raw.chars().skip(skip).take(40).collect()
    } else {
        let place = p.below(quote.chars().count());
        let swap = |c: char| if c == 'x' { 'q' } else { 'x' };
        quote.chars().enumerate().map(|(i, c)| if i == place { swap(c) } else { c }).collect()
    };
    if new.trim().chars().count() < 8 || !p.absent(new.trim()) || p.record()?.raw.contains(&new) {
        return None;
    }
    requote(p, new)
}

/// A real citation of another record (at another time, or without a name in the claim), or of the whole result,
/// which shows nothing specific.
pub(crate) fn other_record(p: &mut Plant) -> Option<()> {
    let other = p.pick(&p.stage.records).filter(|record| record.domain == p.domain)?;
    let missing = p.names().iter().any(|name| whole(name) && !other.holds(name));
    p.cite(other);
    match p.below(3) {
        0 if other.time.is_some() && p.draft.time.as_ref()?.at != other.time? => p.draft.kind = FindingKind::Occurrence,
        1 if missing => {
            p.date(other);
        }
        2 if missing => {
            (p.draft.kind, p.draft.time) = (FindingKind::State, None);
            let at = Locator::Pointer((*p.pick(&["", "/records"])?).to_owned());
            let quote = other.raw.chars().take(50).collect();
            p.draft.citations = vec![Citation::Literal { call: other.call.clone(), at, quote }];
        }
        _ => return None,
    }
    Some(())
}

/// True: part of the quotation, with marks at the cuts, or names shortened to their last part.
pub(crate) fn partial_quote(p: &mut Plant) -> Option<()> {
    if p.one_in(3) {
        let name = p.choose(p.names(), |name| name.contains(['/', '\\']))?;
        let last = name.rsplit(['/', '\\']).next().filter(|last| last.len() >= 3 && !last.ends_with('…'))?;
        p.draft.claim = p.draft.claim.replace(&format!("`{name}`"), &format!("`{last}`"));
        return Some(());
    }
    let Citation::Literal { quote, .. } = p.draft.citations.first()? else { return None };
    let quote = quote.clone();
    let (from, length) = (p.below(quote.chars().count().saturating_sub(20)), 20 + p.below(60));
    let piece: String = quote.chars().skip(from).take(length).collect();
    if piece.trim().chars().count() < 10 {
        return None;
    }
    let (before, after) = *p.pick(&[("", "…"), ("…", "…"), ("...", "..."), ("", "")])?;
    requote(p, format!("{before}{piece}{after}"))
}

fn requote(p: &mut Plant, new: String) -> Option<()> {
    let Citation::Literal { quote, .. } = p.draft.citations.first_mut()? else { return None };
    *quote = new;
    Some(())
}
