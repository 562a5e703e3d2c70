//! What the analyst takes from findings, and what it has written to the Journal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    Bearing, DirectorView, EntityKind, EntryDraft, EntryKind, Finding, FindingDraft, FindingKind, Priority, Reviewed,
    Timestamp, Weight, one_line,
};
use casebook_trust::claim::FIRST_COMMAND;
use casebook_trust::rule::credible;

/// Findings of one round that count, the gravest.
const REMEMBERED: usize = 16;
/// Names to follow in one round.
const FOLLOW: usize = 8;
/// An Expert is less sure of a finding that shares only host, user or address with the alert.
const LINKED: f64 = 0.7;
/// Characters of a claim in the Journal.
const NOTED: usize = 800;

pub(super) fn points_to_an_attack(finding: &Finding) -> bool {
    finding.draft.bearing == Bearing::Incriminating
}

/// The credible findings that point in a direction and are at least moderate, the gravest first. Of a claim that
/// occurs more than once, the earliest counts.
pub(super) fn telling(findings: &[Reviewed]) -> Vec<&Finding> {
    let points = |f: &&Finding| f.draft.bearing != Bearing::Neutral && f.draft.weight >= Weight::Moderate;
    let mut telling: Vec<&Finding> =
        findings.iter().filter(|f| credible(f)).map(|f| &f.finding).filter(points).collect();
    telling.sort_by_key(|f| (f.round, started(f)));
    let mut seen = BTreeSet::new();
    telling.retain(|f| seen.insert((&f.draft.claim, f.draft.bearing)));
    telling.sort_by_key(|f| (Reverse(f.draft.weight), !f.draft.about_alert, &f.id));
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    telling.retain(|f| {
        let count = taken.entry(f.round).or_default();
        *count += 1;
        *count <= REMEMBERED
    });
    telling
}

/// When it happened. What has no time comes last.
pub(super) fn started(finding: &Finding) -> Timestamp {
    finding.draft.time.as_ref().map_or(Timestamp::MAX, |time| time.at)
}

/// The finding as an entry of the Journal.
pub(super) fn entry(finding: &Finding) -> EntryDraft {
    let draft = &finding.draft;
    let against = points_to_an_attack(finding);
    let what = if against { "points to an attack" } else { "explains it" };
    let about = if draft.about_alert { "alerted activity" } else { "nearby" };
    let kind = match draft.kind {
        FindingKind::Absence => "absence",
        FindingKind::Aggregate => "count",
        _ => "record",
    };
    let priority = match (against, draft.weight) {
        (true, Weight::Decisive) => Priority::Critical,
        (true, Weight::Strong) => Priority::High,
        _ => Priority::Medium,
    };
    let technique = draft.technique.as_deref().unwrap_or("-");
    let claim = one_line(&draft.claim, NOTED);
    let text = format!("{what} ({}, {about}, {kind}, {technique}): {claim}", draft.weight.name());
    EntryDraft { citations: vec![finding.id.clone()], ..EntryDraft::new(EntryKind::Finding, priority, text) }
}

/// An attack is followed to see where it leads, and an explanation to find its other traces.
fn leads_on(draft: &FindingDraft) -> bool {
    let explains = draft.about_alert && (draft.bearing == Bearing::Exonerating || draft.claim.ends_with(FIRST_COMMAND));
    // What is only near the alert leads to others.
    let linked = draft.about_alert || draft.confidence.get() >= LINKED;
    draft.weight >= if linked { Weight::Moderate } else { Weight::Strong }
        && (explains || draft.bearing == Bearing::Incriminating)
}

/// Names to ask for: in findings of the last Review, not in the alert and not asked before. The most telling first.
pub(super) fn open_names(view: &DirectorView) -> Vec<String> {
    let questions = view.journal.iter().map(|e| &e.entry).filter(|e| e.kind == EntryKind::Question);
    let asked: BTreeSet<String> = questions.flat_map(|e| &e.follow_ups).map(|name| name.to_lowercase()).collect();
    let alert = view.alert.body.to_lowercase();
    let mut worth: BTreeMap<&str, u32> = BTreeMap::new();
    let findings = view.review.iter().flat_map(|review| &review.findings).filter(|f| credible(f));
    for draft in findings.map(|f| &f.finding.draft).filter(|draft| leads_on(draft)) {
        for entity in draft.entities.iter().filter(|entity| (4..=200).contains(&entity.value.len())) {
            *worth.entry(&entity.value).or_default() += match entity.kind {
                EntityKind::Name => 3,
                _ if draft.bearing != Bearing::Incriminating => continue,
                EntityKind::Address => 4,
                EntityKind::Session | EntityKind::Hash => 3,
                EntityKind::User | EntityKind::File => 2,
                _ => continue,
            };
        }
    }
    let new = |name: &str| !asked.contains(name) && !alert.contains(name);
    let mut open: Vec<(&str, u32)> = worth.into_iter().filter(|(name, _)| new(&name.to_lowercase())).collect();
    open.sort_by_key(|(_, worth)| Reverse(*worth));
    open.into_iter().take(FOLLOW).map(|(name, _)| name.to_owned()).collect()
}
