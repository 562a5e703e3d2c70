//! Checks that an Expert cites only sources that it can see.

use casebook_protocol::{Checked, Domain, FindingDraft, MAX_ACTS, Member, RecordRef, one_line, server_of};
use casebook_trust::Exhibits;
use casebook_trust::check::timeless;

use crate::state::State;

/// Checks a finding of the Expert for `domain`. A citation of a source that this Expert does not see is not
/// valid: the Expert could corroborate itself with the sources of others.
pub(crate) fn check(state: &State, domain: &Domain, draft: &FindingDraft, exhibits: &Exhibits) -> Checked {
    let mut checked = exhibits.check_on(draft, state.case.as_ref().and_then(|case| case.alert.host()).as_deref());
    let member = state.member(domain);
    for citation in checked.citations.iter_mut().filter(|c| c.holds) {
        let named = citation.sources.iter().chain(citation.records.iter().map(|record| &record.source));
        let foreign = named.into_iter().find(|source| !member.is_some_and(|member| sees(member, source)));
        if let Some(source) = foreign.map(|source| one_line(source, 80)) {
            citation.holds = false;
            citation.note = format!("it leads to {source:?}, which the Expert for {domain} does not see");
        }
    }
    checked
}

/// The finding as it stands, with its check. If only its time is faulty, it loses the time, and the text says why.
pub(super) fn settled(
    state: &State,
    domain: &Domain,
    draft: &FindingDraft,
    exhibits: &Exhibits,
) -> (FindingDraft, Checked, Option<String>) {
    let draft = &exhibits.based(draft);
    let checked = check(state, domain, draft, exhibits);
    let timeless = timeless(draft).filter(|_| !checked.valid());
    let again = timeless.map(|timeless| (check(state, domain, &timeless, exhibits), timeless));
    match again {
        Some((again, timeless)) if again.valid() => (timeless, again, Some(checked.faults.join("; "))),
        _ => (draft.clone(), checked, None),
    }
}

/// The records of its queries, of sources that the Expert sees.
pub(crate) fn rows(state: &State, domain: &Domain, draft: &FindingDraft, exhibits: &Exhibits) -> Vec<RecordRef> {
    let member = state.member(domain);
    let mut rows = exhibits.rows(draft);
    rows.retain(|row| member.is_some_and(|member| sees(member, &row.source)));
    rows.truncate(MAX_ACTS);
    rows
}

/// A tool whose results name no source counts as a source, and so does the MCP server of a tool.
fn sees(member: &Member, source: &str) -> bool {
    let of_tool = |tool: &str| tool == source || server_of(tool) == Some(source);
    member.sources.iter().any(|s| s.source == source) || member.toolset.tools.iter().any(|t| of_tool(&t.name))
}

#[cfg(test)]
mod tests;
