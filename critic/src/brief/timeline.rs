use std::collections::BTreeSet;

use casebook_agent::model::form::Faults;
use casebook_agent::model::prompt::{JOURNAL_READ, Section, channels, scaled};
use casebook_protocol::{Answer, EventDraft, FindingId, Gap, Score, TimelineDraft, TimelineEvent, TimelineView};
use casebook_trust::rule::Stated;

use super::form::TimelineForm;

/// A note for the events that the prompt omits.
const FATE: &str = "; they stay on the Timeline as they are";

pub(super) fn sections(view: &TimelineView, room: usize) -> Vec<Section<'_>> {
    let mut sections = vec![channels::journal(2, scaled(JOURNAL_READ, room), &view.journal).cached()];
    sections.extend(view.previous.as_ref().map(|previous| channels::rewritten(room, previous, &view.ranks, FATE)));
    sections.push(channels::review(1, scaled(channels::REVIEW, room), &view.review));
    sections
}

pub(super) fn answer(view: &TimelineView, form: TimelineForm, room: usize) -> Result<Answer, Vec<String>> {
    let known = known(view);
    let mut faults = Faults::default();
    let mut events: Vec<EventDraft> = Vec::new();
    for (i, event) in form.events.iter().enumerate() {
        let place = format!("/events/{i}");
        let description = faults.text(format!("{place}/description"), &event.description);
        if event.findings.is_empty() {
            faults.add(format!("{place}/findings"), "is empty: every event needs a finding");
        }
        let findings = faults.findings(&format!("{place}/findings"), &event.findings, &known);
        events.push(EventDraft { description, findings });
    }
    let narrative = faults.text("/narrative", &form.narrative);
    let kept = |(i, n): (usize, &usize)| {
        let event = view.previous.as_ref().and_then(|previous| previous.events.get(n.checked_sub(1)?));
        if event.is_none() {
            faults.add(format!("/keep/{i}"), format!("the previous Timeline has no event {n}"));
        }
        event.map(as_before)
    };
    let mut before: Vec<EventDraft> = form.keep.iter().enumerate().filter_map(kept).collect();
    before.extend(not_shown(view, room, &events, &before));
    // A changed event replaces the one that was kept.
    let written: BTreeSet<FindingId> = events.iter().flat_map(|event| event.findings.clone()).collect();
    before.iter_mut().for_each(|event| event.findings.retain(|id| !written.contains(id)));
    before.retain(|event| !event.findings.is_empty());
    events.splice(0..0, before);
    let gap = |g: super::form::GapForm| Gap { kind: g.kind, description: g.description.trim().to_owned() };
    let gaps = form.gaps.into_iter().map(gap).filter(|g| !g.description.is_empty()).collect();
    faults.or(Answer::Timeline(TimelineDraft { narrative, events, gaps, score: Score::clamped(form.score) }))
}

/// Previous events that neither the prompt nor the answer has. The Critic did not see them, so it did not drop
/// them.
fn not_shown(view: &TimelineView, room: usize, written: &[EventDraft], kept: &[EventDraft]) -> Vec<EventDraft> {
    let Some(previous) = &view.previous else { return Vec::new() };
    let answered: BTreeSet<&FindingId> = written.iter().chain(kept).flat_map(|e| &e.findings).collect();
    let shown = channels::kept_events(room, previous, &view.ranks);
    let unseen = previous.events.iter().zip(shown).filter(|(_, shown)| !shown).map(|(event, _)| event);
    unseen.filter(|event| !event.findings.iter().any(|id| answered.contains(id))).map(as_before).collect()
}

fn as_before(event: &TimelineEvent) -> EventDraft {
    EventDraft { description: event.description.clone(), findings: event.findings.clone() }
}

/// What to say about a narrative that states what no finding states; empty if it does not.
pub(super) fn returned(view: &TimelineView, form: &TimelineForm) -> String {
    let mut stated = Stated::default();
    view.review.findings.iter().for_each(|f| stated.finding(&f.finding.draft));
    if let Some(previous) = &view.previous {
        stated.text(&previous.narrative);
        previous.events.iter().for_each(|event| stated.event(event));
    }
    stated.number(form.events.len() + form.keep.len());
    let faults = stated.faults(&form.narrative);
    if faults.is_empty() {
        return String::new();
    }
    let list = faults.join("\n- ");
    format!(
        "The narrative states what no finding states:\n- {list}\nGive the whole answer again with the narrative corrected. This is the only second chance: code drops a sentence that still does."
    )
}

fn known(view: &TimelineView) -> BTreeSet<FindingId> {
    let previous = view.previous.iter().flat_map(|t| t.events.iter().flat_map(|e| &e.findings));
    previous.chain(view.review.findings.iter().map(|f| &f.finding.id)).cloned().collect()
}
