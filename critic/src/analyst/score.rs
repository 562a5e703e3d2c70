//! The Review of the analyst: scores each finding by its citations, by confirmation from other sources, and by
//! contradictions.

use std::collections::BTreeSet;

use casebook_protocol::{
    Bearing, CheckedFinding, Credibility, EntityKind, FindingId, FindingKind, Judgement, ReviewDraft, ReviewView,
    Score, TimeBasis, apart,
};
use casebook_trust::claim;

use super::read::{self, Records};
use super::story::base;

/// Two sources may record one occurrence this many seconds apart: clocks differ, and many logs have whole
/// seconds.
const SAME_SECONDS: f64 = 2.0;

pub(super) fn review(view: &ReviewView, records: &Records) -> ReviewDraft {
    let known = read::known_names(&view.findings);
    let judge = |finding: &CheckedFinding| {
        let doubts = read::doubts(finding, &known, records);
        judge(finding, &view.findings, doubts)
    };
    let judgements: Vec<Judgement> = view.findings.iter().map(judge).collect();
    ReviewDraft { summary: summary(&view.findings, &judgements), judgements, leads: Vec::new() }
}

fn judge(finding: &CheckedFinding, all: &[CheckedFinding], doubts: Vec<(String, f64)>) -> Judgement {
    let others = |such: fn(&CheckedFinding, &CheckedFinding) -> bool| -> Vec<FindingId> {
        let others = all.iter().filter(|o| o.finding.id != finding.finding.id && o.checked.valid());
        others.filter(|o| such(finding, o)).map(|o| o.finding.id.clone()).take(8).collect()
    };
    let (corroborated_by, contradicted_by) = (others(corroborates), others(contradicts));
    let (mut score, mut reasons) = score(finding, !corroborated_by.is_empty(), !contradicted_by.is_empty());
    // A contradiction in the cited record counts more than anything else.
    for (doubt, most) in doubts {
        score = score.min(most);
        reasons.push(doubt);
    }
    Judgement {
        finding: finding.finding.id.clone(),
        score: Score::clamped(score),
        rationale: reasons.join("; "),
        corroborated_by,
        contradicted_by,
    }
}

fn score(finding: &CheckedFinding, corroborated: bool, contradicted: bool) -> (f64, Vec<String>) {
    let (draft, checked) = (&finding.finding.draft, &finding.checked);
    if !checked.valid() {
        let bad = checked.citations.iter().find(|c| !c.holds).map(|c| &c.note).or(checked.faults.first());
        return (0.15, vec![bad.map_or_else(|| "it cites nothing".to_owned(), String::clone)]);
    }
    let (mut score, from) = match checked.sources().len() {
        sources @ 2.. => (0.93, format!("{sources} sources record it")),
        _ if corroborated => (0.92, "another finding from elsewhere supports it".to_owned()),
        _ => (0.8, "one source records it".to_owned()),
    };
    let mut reasons = vec![from];
    let basis = draft.time.as_ref().map(|t| t.basis);
    let borrowed = matches!(basis, Some(TimeBasis::Inferred | TimeBasis::Ingestion));
    let near = !draft.about_alert && draft.confidence.get() < 0.7;
    let linked = if corroborated { 0.78 } else { 0.68 };
    let lowered = [
        (draft.kind == FindingKind::Aggregate, 0.72, "it covers a period, so it does not say when"),
        (borrowed, 0.75, "its time is not the record's own"),
        (near, linked, "it is near the alerted activity but linked to it only by host, user or address"),
        (contradicted, 0.55, "another finding speaks against it"),
    ];
    for (_, most, why) in lowered.into_iter().filter(|(holds, ..)| *holds) {
        score = f64::min(score, most);
        reasons.push(why.to_owned());
    }
    (score, reasons)
}

fn entities(finding: &CheckedFinding) -> BTreeSet<String> {
    let telling = |k: EntityKind| !matches!(k, EntityKind::Host | EntityKind::Other);
    finding.finding.draft.entities.iter().filter(|e| telling(e.kind)).map(|e| base(&e.value)).collect()
}

/// True if the other finding shows the same occurrence or explanation from another source.
fn corroborates(finding: &CheckedFinding, other: &CheckedFinding) -> bool {
    let (own, time) = (finding.checked.sources(), |f: &CheckedFinding| f.finding.draft.time.as_ref().map(|t| t.at));
    other.checked.sources().iter().any(|s| !own.contains(s))
        && time(finding).zip(time(other)).is_some_and(|(a, b)| apart(a, b) <= SAME_SECONDS)
        && !entities(finding).is_disjoint(&entities(other))
}

/// True if two findings about one record point in opposite directions, or differ in whether it succeeded.
fn contradicts(finding: &CheckedFinding, other: &CheckedFinding) -> bool {
    let (own, said) = (&finding.finding.draft, &other.finding.draft);
    let opposite = own.bearing != said.bearing && ![own.bearing, said.bearing].contains(&Bearing::Neutral);
    let same_name = claim::names(&own.claim).next().is_some_and(|name| claim::names(&said.claim).any(|n| n == name));
    let records = other.checked.records();
    finding.checked.records().iter().any(|record| records.contains(record))
        && (opposite || same_name && fails(&own.claim) != fails(&said.claim))
}

fn fails(claim: &str) -> bool {
    let plain = claim::plain(claim);
    ["failed", "denied", "refused", "blocked", "unsuccessful"].iter().any(|word| plain.contains(word))
}

fn summary(findings: &[CheckedFinding], judgements: &[Judgement]) -> String {
    let mut scores: Vec<Score> = judgements.iter().map(|judgement| judgement.score).collect();
    scores.sort_by(|a, b| b.get().total_cmp(&a.get()));
    let alike = scores.chunk_by(|a, b| Credibility::of(*a) == Credibility::of(*b));
    let told = |scores: &[Score]| Some(format!("{} {}", scores.len(), Credibility::of(*scores.first()?).name()));
    let parts: Vec<String> = alike.filter_map(told).collect();
    let checks = match findings.iter().filter(|f| !f.checked.valid()).count() {
        0 => "Every citation holds.".to_owned(),
        invalid => format!("{invalid} did not pass the mechanical check."),
    };
    format!("{} findings: {}. {checks}", judgements.len(), parts.join(", "))
}
