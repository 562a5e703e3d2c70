//! What ties a finding to the alert.

use std::collections::BTreeSet;

use crate::account::shows_key;
use crate::claim::has_word;
use casebook_protocol::{Acts, Citation, EntityKind, Reviewed};

use super::Docket;

/// What ties findings to the alert.
#[derive(Debug, Clone, Copy)]
pub struct Ties<'a> {
    pub acts: Option<&'a Acts>,
    /// The alert as text, in lower case.
    pub alert: &'a str,
}

impl Ties<'_> {
    /// How close a finding is to the alert: 2 if it cites an act or shows a key of the alerted occurrence, 1 if it
    /// shares a thing with the alert, else 0.
    pub(super) fn of(&self, finding: &Reviewed) -> u8 {
        if self.acts.is_some_and(|acts| shows(finding, acts)) {
            return 2;
        }
        u8::from(is_named(&things(finding), self.alert))
    }
}

/// The processes, accounts, hosts, addresses, files and sessions of a finding, in lower case.
fn things(finding: &Reviewed) -> BTreeSet<String> {
    let thing = |kind: EntityKind| match kind {
        EntityKind::Host
        | EntityKind::User
        | EntityKind::Address
        | EntityKind::Process
        | EntityKind::File
        | EntityKind::Hash
        | EntityKind::Session => true,
        EntityKind::Name | EntityKind::Other => false,
    };
    let entities = finding.finding.draft.entities.iter().filter(|e| thing(e.kind));
    entities.map(|e| e.value.trim().to_lowercase()).filter(|name| name.chars().count() >= 3).collect()
}

fn is_named(things: &BTreeSet<String>, alert: &str) -> bool {
    things.iter().any(|name| has_word(alert, name))
}

fn cites_an_act(finding: &Reviewed, acts: &Acts) -> bool {
    let records = finding.checked.records();
    acts.listed.iter().any(|act| records.iter().any(|r| r.file == act.record.file && r.line == act.record.line))
}

/// True if the finding cites an act, or shows a key of the alerted occurrence or its cause.
pub(super) fn shows(finding: &Reviewed, acts: &Acts) -> bool {
    let draft = &finding.finding.draft;
    let quotes = draft.citations.iter().filter_map(|citation| match citation {
        Citation::Literal { quote, .. } => Some(quote.as_str()),
        Citation::Count { .. } | Citation::Aggregate { .. } | Citation::Absence { .. } => None,
    });
    let named = draft.entities.iter().map(|e| e.value.as_str());
    cites_an_act(finding, acts) || quotes.chain(named).any(|text| shows_key(text, &acts.keys))
}

/// The findings that share a process, account, host, address or record with the alert, or with a finding that does.
pub(super) fn tied<'a>(credible: &[&'a Reviewed], docket: &Docket<'_>) -> Vec<&'a Reviewed> {
    let alert = docket.alert.to_lowercase();
    let close = |f: &Reviewed| docket.acts.is_some_and(|acts| cites_an_act(f, acts)) || is_named(&things(f), &alert);
    let (mut tied, mut others): (Vec<&Reviewed>, Vec<&Reviewed>) = credible.iter().copied().partition(|f| close(f));
    let near: BTreeSet<String> = tied.iter().flat_map(|f| things(f)).collect();
    others.retain(|f| !things(f).is_disjoint(&near));
    tied.extend(others);
    tied
}
