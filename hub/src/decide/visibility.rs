//! What an Expert can have seen, and so rest a finding on.

use casebook_protocol::{Checked, Domain, FindingDraft, Member, one_line, server_of};
use casebook_trust::Exhibits;

use crate::state::State;

/// The check of a finding of a domain's Expert. A citation that leads to what this Expert does not see holds
/// nothing: the bytes are its own word, and it would corroborate itself with the sources of others.
pub(crate) fn check(state: &State, domain: &Domain, draft: &FindingDraft, exhibits: &Exhibits) -> Checked {
    let mut checked = exhibits.check(draft);
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

/// A tool whose results name no source is one itself, and so is the server behind a tool over MCP.
fn sees(member: &Member, source: &str) -> bool {
    let of_tool = |tool: &str| tool == source || server_of(tool) == Some(source);
    member.sources.iter().any(|s| s.source == source) || member.toolset.tools.iter().any(|t| of_tool(&t.name))
}

#[cfg(test)]
mod tests;
