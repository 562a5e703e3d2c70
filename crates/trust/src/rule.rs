//! The rules of `docs/rules.md`. The Hub applies them to a proposal before it becomes state. Each answer names
//! the rule that was applied.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim;
use casebook_protocol::{
    Checked, Coherence, EventTime, Finding, FindingId, Guard, Review, ReviewDraft, Reviewed, Rule, Score, SourceInfo,
    Timeline, TimelineDraft, TimelineEvent,
};
use casebook_protocol::{
    Credibility, Judgement,
    timeline::{MAX_EVENTS, MAX_GAPS},
};

mod verdict;

pub use verdict::{Docket, Ties, not_accepted, verdict};

fn guard(rule: Rule, subject: impl Into<String>, effect: impl Into<String>) -> Guard {
    Guard { rule, subject: subject.into(), effect: effect.into() }
}

/// The highest score of a finding without valid evidence.
pub const CAP_UNSUPPORTED: f64 = 0.29;
/// The highest score of a finding with a single source.
pub const CAP_SINGLE_SOURCE: f64 = 0.89;
/// The default threshold for the Timeline.
pub const TIMELINE_THRESHOLD: f64 = 0.5;

/// The sensors behind the sources. The origin of a source that is not on the roster is unknown, so all such
/// sources count as one sensor.
fn sensors<'a>(
    sources: impl IntoIterator<Item = &'a str>,
    known: &'a BTreeMap<String, SourceInfo>,
) -> BTreeSet<Option<&'a str>> {
    sources.into_iter().map(|source| known.get(source).map(|info| info.sensor.as_str())).collect()
}

/// Score caps: turns a proposed Review into the valid one, which has every submitted finding.
pub fn review(
    round: u32,
    draft: ReviewDraft,
    submitted: &[(Finding, Checked)],
    sources: &BTreeMap<String, SourceInfo>,
) -> (Review, Vec<Guard>) {
    let mut guards = Vec::new();
    let ids: BTreeSet<&FindingId> = submitted.iter().map(|(f, _)| &f.id).collect();
    let mut judgements: BTreeMap<FindingId, Judgement> = BTreeMap::new();
    for judgement in draft.judgements {
        if !ids.contains(&judgement.finding) {
            guards.push(guard(
                Rule::NotSubmitted,
                judgement.finding.as_str(),
                "the Review judges a finding that was not submitted in this round: dropped",
            ));
        } else if judgements.contains_key(&judgement.finding) {
            guards.push(guard(
                Rule::NotSubmitted,
                judgement.finding.as_str(),
                "the Review judges the finding twice: the first judgement counts",
            ));
        } else {
            judgements.insert(judgement.finding.clone(), judgement);
        }
    }
    let checks: BTreeMap<&FindingId, &Checked> = submitted.iter().map(|(f, c)| (&f.id, c)).collect();
    let findings = submitted
        .iter()
        .map(|(finding, checked)| {
            let judgement = judgements.remove(&finding.id);
            reviewed(finding, checked, judgement, &checks, sources, &mut guards)
        })
        .collect();
    (Review { round, summary: draft.summary, findings }, guards)
}

fn reviewed(
    finding: &Finding,
    checked: &Checked,
    judgement: Option<Judgement>,
    checks: &BTreeMap<&FindingId, &Checked>,
    sources: &BTreeMap<String, SourceInfo>,
    guards: &mut Vec<Guard>,
) -> Reviewed {
    let mut capped_by = Vec::new();
    let judgement = judgement.unwrap_or_else(|| {
        capped_by.push(Rule::NotReviewed);
        guards.push(guard(Rule::NotReviewed, finding.id.as_str(), "the Review does not mention it: 0.00"));
        Judgement {
            finding: finding.id.clone(),
            score: Score::ZERO,
            rationale: "not reviewed".into(),
            corroborated_by: vec![],
            contradicted_by: vec![],
        }
    });
    let supporting: Vec<FindingId> = judgement
        .corroborated_by
        .into_iter()
        .filter(|id| *id != finding.id && checks.get(id).is_some_and(|c| c.valid()))
        .collect();
    let proposed = judgement.score;
    let mut score = proposed;
    let mut cap = |rule: Rule, at: f64, why: String| {
        if score.get() > at {
            guards.push(guard(rule, finding.id.as_str(), format!("{score} capped at {at}: {why}")));
            score = Score::clamped(at);
            capped_by.push(rule);
        }
    };
    if checked.citations.is_empty() {
        cap(Rule::CitationMissing, CAP_UNSUPPORTED, "it cites nothing".into());
    }
    if let Some(bad) = checked.citations.iter().find(|c| !c.holds) {
        cap(Rule::CitationDoesNotHold, CAP_UNSUPPORTED, bad.note.clone());
    }
    if let Some(fault) = checked.faults.first() {
        cap(Rule::ClaimNotInEvidence, CAP_UNSUPPORTED, fault.clone());
    }
    let from = supporting.iter().filter_map(|id| checks.get(id)).flat_map(|c| c.sources()).chain(checked.sources());
    // A source of unknown origin may be the same as any of the others.
    if sensors(from, sources).iter().flatten().count() < 2 {
        cap(Rule::SingleSource, CAP_SINGLE_SOURCE, "all of its evidence comes from one source".into());
    }
    Reviewed {
        finding: finding.clone(),
        checked: checked.clone(),
        score,
        label: Credibility::of(score),
        proposed,
        capped_by,
        rationale: judgement.rationale,
        corroborated_by: supporting,
        contradicted_by: judgement.contradicted_by,
    }
}

pub fn credible(finding: &Reviewed, threshold: Score) -> bool {
    finding.score >= threshold && finding.checked.valid()
}

/// Timeline membership: turns a proposed Timeline into the valid one. `known` has every reviewed finding with
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
    let mut corpus = claim::Corpus::default();
    let mut times = Vec::new();
    for finding in findings {
        let draft = &finding.finding.draft;
        corpus.add_text(&draft.claim);
        draft.entities.iter().for_each(|e| corpus.add_text(&e.value));
        times.extend(draft.time.iter().flat_map(|t| std::iter::once(t.at).chain(t.until)));
    }
    claim::faults(description, &corpus, &times).into_iter().next()
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

#[cfg(test)]
mod tests;
