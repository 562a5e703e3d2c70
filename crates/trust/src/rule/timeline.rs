//! Timeline membership.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::timeline::{MAX_EVENTS, MAX_GAPS};
use casebook_protocol::{
    Coherence, EventTime, FindingId, Guard, Reviewed, Rule, Score, Timeline, TimelineDraft, TimelineEvent,
};

use super::{CAP_UNSUPPORTED, Stated, Ties, credible, guard};

/// Turns a proposed Timeline into the valid one. `known` has every reviewed finding with
/// its latest score. Of too many events, those closest to the alert stay.
pub fn timeline(
    round: u32,
    version: u32,
    draft: TimelineDraft,
    known: &BTreeMap<FindingId, Reviewed>,
    threshold: Score,
    ties: &Ties<'_>,
) -> (Timeline, Vec<Guard>) {
    let mut guards = Vec::new();
    let mut events: Vec<TimelineEvent> = Vec::new();
    let mut placed: BTreeSet<FindingId> = BTreeSet::new();
    for (place, event) in draft.events.into_iter().enumerate() {
        let subject = event.findings.first().map_or_else(|| format!("event {}", place + 1), ToString::to_string);
        let standing: Vec<&Reviewed> =
            event.findings.iter().filter_map(|id| known.get(id)).filter(|f| credible(f, threshold)).collect();
        if standing.is_empty() {
            guards.push(guard(
                Rule::NotCredible,
                subject,
                format!("none of its findings has {threshold} or more and valid evidence: dropped"),
            ));
            continue;
        }
        let fresh: Vec<&Reviewed> = standing.into_iter().filter(|f| placed.insert(f.finding.id.clone())).collect();
        if fresh.is_empty() {
            guards.push(guard(Rule::Duplicate, subject, "its findings are in an earlier event: dropped"));
            continue;
        }
        let Some(time) = best_time(&fresh) else {
            guards.push(guard(Rule::NoTime, subject, "none of its findings has a time: dropped"));
            continue;
        };
        let mut description = event.description;
        if let Some(fault) = new_fact(&description, &fresh) {
            guards.push(guard(Rule::NewFact, subject, format!("{fault}: replaced by the claim of the finding")));
            description = fresh.first().map(|f| f.finding.draft.claim.clone()).unwrap_or_default();
        }
        events.push(make_event(time, description, &fresh));
    }
    events.sort_by(|a, b| (a.time.at, &a.findings).cmp(&(b.time.at, &b.findings)));
    let events = nearest(merge_same(events, &mut guards), known, ties, &mut guards);
    let mut gaps = draft.gaps;
    if gaps.len() > MAX_GAPS {
        guards.push(guard(Rule::TooManyGaps, "gaps", format!("{} named, {MAX_GAPS} kept", gaps.len())));
        gaps.truncate(MAX_GAPS);
    }
    let mut score = draft.score;
    if events.is_empty() && score.get() > CAP_UNSUPPORTED {
        guards.push(guard(
            Rule::EmptyTimeline,
            "coherence",
            format!("{score} capped at {CAP_UNSUPPORTED}: the Timeline has no event"),
        ));
        score = Score::clamped(CAP_UNSUPPORTED);
    }
    (Timeline { version, round, narrative: draft.narrative, events, gaps, score, label: Coherence::of(score) }, guards)
}

/// If times conflict, the stronger basis wins, then the more precise time, then the earlier one.
fn best_time(findings: &[&Reviewed]) -> Option<EventTime> {
    let times = findings.iter().filter_map(|f| f.finding.draft.time.as_ref());
    times.max_by(|a, b| a.basis.cmp(&b.basis).then(b.precision.cmp(&a.precision)).then(b.at.cmp(&a.at))).cloned()
}

fn new_fact(description: &str, findings: &[&Reviewed]) -> Option<String> {
    let mut stated = Stated::default();
    findings.iter().for_each(|finding| stated.finding(&finding.finding.draft));
    stated.faults(description).into_iter().next()
}

/// Drops the sentences of the narrative that state what no credible finding states.
pub fn narrative(timeline: &mut Timeline, known: &BTreeMap<FindingId, Reviewed>, threshold: Score) -> Option<Guard> {
    let mut stated = Stated::default();
    known.values().filter(|f| credible(f, threshold)).for_each(|f| stated.finding(&f.finding.draft));
    stated.number(timeline.events.len());
    let (kept, faults) = stated.kept(&timeline.narrative);
    if faults.is_empty() {
        return None;
    }
    let none = "No sentence of the narrative stated only what the findings state.";
    timeline.narrative = if kept.is_empty() { none.to_owned() } else { kept };
    Some(guard(Rule::NewFact, "narrative", format!("{}: the sentences are dropped", faults.join("; "))))
}

fn make_event(time: EventTime, description: String, findings: &[&Reviewed]) -> TimelineEvent {
    let mut seen = BTreeSet::new();
    let evidence = findings.iter().flat_map(|f| f.checked.records()).filter(|r| seen.insert(r.clone())).collect();
    let score = findings.iter().map(|f| f.score.get()).fold(0.0, f64::max);
    TimelineEvent {
        time,
        description,
        findings: findings.iter().map(|f| f.finding.id.clone()).collect(),
        score: Score::clamped(score),
        evidence,
    }
}

/// True if both are the same moment, with different precision.
fn one_moment(a: &EventTime, b: &EventTime) -> bool {
    a.at == b.at || a.precision.shows(b.at, a.at) || b.precision.shows(a.at, b.at)
}

/// Two events at one moment with the same record are one occurrence.
fn merge_same(events: Vec<TimelineEvent>, guards: &mut Vec<Guard>) -> Vec<TimelineEvent> {
    let mut merged: Vec<TimelineEvent> = Vec::new();
    for event in events {
        let same = merged
            .iter_mut()
            .rev()
            .find(|e| one_moment(&e.time, &event.time) && e.evidence.iter().any(|r| event.evidence.contains(r)));
        let Some(first) = same else {
            merged.push(event);
            continue;
        };
        let subject = event.findings.first().map(ToString::to_string).unwrap_or_default();
        guards.push(guard(Rule::Duplicate, subject, "another event has the same record at the same time: merged"));
        first.findings.extend(event.findings);
        for record in event.evidence {
            if !first.evidence.contains(&record) {
                first.evidence.push(record);
            }
        }
        if event.score > first.score {
            first.score = event.score;
        }
    }
    merged
}

/// The events with the closest ties to the alert, and of these the ones with the best scores, in order of time.
fn nearest(
    events: Vec<TimelineEvent>,
    known: &BTreeMap<FindingId, Reviewed>,
    ties: &Ties<'_>,
    guards: &mut Vec<Guard>,
) -> Vec<TimelineEvent> {
    if events.len() <= MAX_EVENTS {
        return events;
    }
    guards.push(guard(Rule::TooManyEvents, "events", format!("{} proposed, {MAX_EVENTS} kept", events.len())));
    let tie = |event: &TimelineEvent| event.findings.iter().filter_map(|id| known.get(id)).map(|f| ties.of(f)).max();
    let mut ranked: Vec<_> = events.into_iter().map(|event| (tie(&event), event)).collect();
    ranked.sort_by(|(a, x), (b, y)| b.cmp(a).then(y.score.get().total_cmp(&x.score.get())));
    let mut events: Vec<_> = ranked.into_iter().take(MAX_EVENTS).map(|(_, event)| event).collect();
    events.sort_by(|a, b| (a.time.at, &a.findings).cmp(&(b.time.at, &b.findings)));
    events
}
