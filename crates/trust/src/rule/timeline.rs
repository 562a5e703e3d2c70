//! Timeline membership.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::timeline::{MAX_EVENTS, MAX_GAPS};
use casebook_protocol::{
    Coherence, EventTime, FindingId, Guard, Reviewed, Rule, Score, Timeline, TimelineDraft, TimelineEvent,
};

use super::order::{Placed, Stamp, one_moment, ordered};
use super::{CAP_UNSUPPORTED, Stated, TIMELINE_THRESHOLD, Ties, credible, guard};

/// Turns a proposed Timeline into the valid one. `known` has every reviewed finding with
/// its latest score. Of too many events, those closest to the alert stay.
pub fn timeline(
    round: u32,
    version: u32,
    draft: TimelineDraft,
    known: &BTreeMap<FindingId, Reviewed>,
    ties: &Ties<'_>,
) -> (Timeline, Vec<Guard>) {
    let mut guards = Vec::new();
    let mut events: Vec<Placed> = Vec::new();
    let mut placed: BTreeSet<FindingId> = BTreeSet::new();
    let clocks = clocks(&draft, known);
    for (place, event) in draft.events.into_iter().enumerate() {
        let subject = event.findings.first().map_or_else(|| format!("event {}", place + 1), ToString::to_string);
        let standing: Vec<&Reviewed> =
            event.findings.iter().filter_map(|id| known.get(id)).filter(|f| credible(f)).collect();
        if standing.is_empty() {
            guards.push(guard(
                Rule::NotCredible,
                subject,
                format!("none of its findings has {TIMELINE_THRESHOLD:.2} or more and valid evidence: dropped"),
            ));
            continue;
        }
        let fresh: Vec<&Reviewed> = standing.into_iter().filter(|f| placed.insert(f.finding.id.clone())).collect();
        if fresh.is_empty() {
            guards.push(guard(Rule::Duplicate, subject, "its findings are in an earlier event: dropped"));
            continue;
        }
        let Some(time) = best_time(&fresh, &clocks) else {
            guards.push(guard(Rule::NoTime, subject, "none of its findings has a time: dropped"));
            continue;
        };
        let mut description = event.description;
        if let Some(fault) = new_fact(&description, &fresh) {
            guards.push(guard(Rule::NewFact, subject, format!("{fault}: replaced by the claim of the finding")));
            description = fresh.first().map(|f| f.finding.draft.claim.clone()).unwrap_or_default();
        }
        let stamps = fresh.iter().filter_map(|finding| Stamp::of(finding)).collect();
        events.push(Placed { nth: place, event: make_event(time, description, &fresh), stamps });
    }
    let events = ordered(merge_same(events, &mut guards)).into_iter().map(|placed| placed.event).collect();
    let events = nearest(events, known, ties, &mut guards);
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

/// How many proposed events have a time by the clock of each source.
fn clocks(draft: &TimelineDraft, known: &BTreeMap<FindingId, Reviewed>) -> BTreeMap<String, usize> {
    let mut clocks: BTreeMap<String, usize> = BTreeMap::new();
    for event in &draft.events {
        let found = event.findings.iter().filter_map(|id| known.get(id)).filter(|f| credible(f));
        let sources: BTreeSet<String> = found.filter_map(Stamp::of).map(|stamp| stamp.source).collect();
        sources.into_iter().for_each(|source| *clocks.entry(source).or_default() += 1);
    }
    clocks
}

/// If times conflict, the stronger basis wins, then the clock that most events have, then the more precise time, then
/// the earlier one.
fn best_time(findings: &[&Reviewed], clocks: &BTreeMap<String, usize>) -> Option<EventTime> {
    let times = findings.iter().filter_map(|f| {
        let of_clock = Stamp::of(f).and_then(|stamp| clocks.get(&stamp.source)).copied();
        Some((f.finding.draft.time.as_ref()?, of_clock.unwrap_or(0)))
    });
    let best = times.max_by(|(a, of_a), (b, of_b)| {
        let by_clock = a.basis.cmp(&b.basis).then(of_a.cmp(of_b));
        by_clock.then(b.precision.cmp(&a.precision)).then(b.at.cmp(&a.at))
    });
    best.map(|(time, _)| time.clone())
}

fn new_fact(description: &str, findings: &[&Reviewed]) -> Option<String> {
    let mut stated = Stated::default();
    findings.iter().for_each(|finding| stated.finding(&finding.finding.draft));
    stated.faults(description).into_iter().next()
}

/// Drops the sentences of the narrative that state what no credible finding states.
pub fn narrative(timeline: &mut Timeline, known: &BTreeMap<FindingId, Reviewed>) -> Option<Guard> {
    let mut stated = Stated::default();
    known.values().filter(|f| credible(f)).for_each(|f| stated.finding(&f.finding.draft));
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

/// Two events at one moment with the same record are one occurrence.
fn merge_same(mut events: Vec<Placed>, guards: &mut Vec<Guard>) -> Vec<Placed> {
    events.sort_by_key(|placed| placed.event.time.at);
    let mut merged: Vec<Placed> = Vec::new();
    for Placed { nth, event, stamps } in events {
        let same = |placed: &&mut Placed| {
            let other = &placed.event;
            one_moment(&other.time, &event.time) && other.evidence.iter().any(|r| event.evidence.contains(r))
        };
        let Some(first) = merged.iter_mut().rev().find(same) else {
            merged.push(Placed { nth, event, stamps });
            continue;
        };
        first.stamps.extend(stamps);
        let first = &mut first.event;
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

/// The events with the closest ties to the alert, and of these the ones with the best scores, in their order.
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
    let mut ranked: Vec<_> = events.into_iter().enumerate().map(|(n, event)| (tie(&event), n, event)).collect();
    ranked.sort_by(|(a, _, x), (b, _, y)| b.cmp(a).then(y.score.get().total_cmp(&x.score.get())));
    ranked.truncate(MAX_EVENTS);
    ranked.sort_by_key(|(_, n, _)| *n);
    ranked.into_iter().map(|(.., event)| event).collect()
}
