//! Citations that do not exist, real ones that do not say it, and partial ones that do.

use casebook_protocol::{CallId, Citation, FindingKind, Locator, TaskId, TaskKind};
use rand::Rng;

use super::{Plant, whole};

/// A call that was never made, or that another Expert or another round made.
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

/// A pointer beyond the last record, to a field that is not there, or a line beyond the last.
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

/// The quotation of another record, or the right one with a character changed.
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

/// A real citation of another record: at another time, or without a name that the claim states. Or
/// of everything that the call returned, which shows no one thing.
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

/// True: a piece of the quotation, with marks where it is cut, or names by their last part.
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
