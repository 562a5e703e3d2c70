use std::collections::BTreeSet;

use casebook_agent::model::form::Faults;
use casebook_agent::model::prompt::{JOURNAL_READ, Section, channels};
use casebook_protocol::{Answer, EventDraft, FindingId, Gap, Score, TimelineDraft, TimelineView};

use super::form::TimelineForm;

/// A note for the events that the prompt omits.
const FATE: &str = "; they stay on the Timeline as they are, do not write them again";

pub(super) fn sections(view: &TimelineView) -> Vec<Section<'_>> {
    let mut sections = vec![channels::journal(2, JOURNAL_READ, &view.journal).cached()];
    // Not shrunk later, because `answer` must know which events were shown.
    sections.extend(view.previous.as_ref().map(|previous| channels::timeline(u8::MAX, previous, FATE).whole()));
    sections.push(channels::review(1, channels::REVIEW, &view.review));
    sections
}

pub(super) fn answer(view: &TimelineView, form: TimelineForm) -> Result<Answer, Vec<String>> {
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
    let gap = |g: super::form::GapForm| Gap { kind: g.kind, description: g.description.trim().to_owned() };
    let gaps = form.gaps.into_iter().map(gap).filter(|g| !g.description.is_empty()).collect();
    events.extend(not_shown(view, &events));
    faults.or(Answer::Timeline(TimelineDraft { narrative, events, gaps, score: Score::clamped(form.score) }))
}

/// Previous events that neither the prompt nor the answer has. The Critic did not see them, so it did not drop
/// them.
fn not_shown(view: &TimelineView, answered: &[EventDraft]) -> Vec<EventDraft> {
    let Some(previous) = &view.previous else { return Vec::new() };
    let answered: BTreeSet<&FindingId> = answered.iter().flat_map(|e| &e.findings).collect();
    let shown = channels::kept_events(previous, channels::TIMELINE);
    let unseen = previous.events.iter().zip(shown).filter(|(_, shown)| !shown).map(|(event, _)| event);
    unseen
        .filter(|event| !event.findings.iter().any(|id| answered.contains(id)))
        .map(|event| EventDraft { description: event.description.clone(), findings: event.findings.clone() })
        .collect()
}

fn known(view: &TimelineView) -> BTreeSet<FindingId> {
    let previous = view.previous.iter().flat_map(|t| t.events.iter().flat_map(|e| &e.findings));
    previous.chain(view.review.findings.iter().map(|f| &f.finding.id)).cloned().collect()
}
