//! The Review of the analyst: scores each finding by its citations, by confirmation from other sources, and by
//! contradictions.

use std::collections::BTreeSet;

use casebook_protocol::{
    Bearing, CheckedFinding, Credibility, EntityKind, FindingId, FindingKind, Judgement, ReviewDraft, ReviewView,
    Score, TimeBasis, Timestamp,
};

use super::story::{base, seconds};
use super::{Seen, read};

/// Two sources may record one occurrence this many seconds apart: clocks differ, and many logs have whole
/// seconds.
const SAME_SECONDS: f64 = 2.0;

pub(super) fn review(view: &ReviewView, seen: &Seen) -> ReviewDraft {
    let known = read::known_names(view.findings.iter());
    let judgements: Vec<Judgement> = view.findings.iter().map(|f| judge(f, view, seen, &known)).collect();
    ReviewDraft { summary: summary(view, &judgements), judgements, leads: Vec::new() }
}

fn judge(finding: &CheckedFinding, view: &ReviewView, seen: &Seen, known: &BTreeSet<String>) -> Judgement {
    let others = |test: &dyn Fn(&CheckedFinding) -> bool| -> Vec<FindingId> {
        let all = view.findings.iter().filter(|o| o.finding.id != finding.finding.id && o.checked.valid());
        all.filter(|o| test(o)).map(|o| o.finding.id.clone()).take(8).collect()
    };
    let corroborated_by = others(&|o| corroborates(finding, o));
    let contradicted_by = others(&|o| contradicts(finding, o));
    let (mut score, mut reasons) = score(finding, !corroborated_by.is_empty(), !contradicted_by.is_empty());
    // A contradiction in the cited record counts more than anything else.
    let readings = [
        (read::exchanged(finding, &seen.records), 0.2),
        (read::borrowed(finding, &seen.records), 0.4),
        (read::written_by_others(finding, &seen.records), 0.4),
        (read::unmarked(finding, known, &seen.records), 0.4),
        (read::too_often(finding), 0.4),
    ];
    for (reason, most) in readings {
        if let Some(reason) = reason {
            score = f64::min(score, most);
            reasons.push(reason);
        }
    }
    if let Some(citation) = finding.finding.draft.citations.first() {
        let id = citation.call().as_str();
        if let Some(tool) = seen.calls.get(id) {
            reasons.push(format!("the call behind it is a `{tool}`, which fits the claim"));
        } else if seen.missing.contains(id) {
            reasons.push(format!("the call {id} behind it is not on record"));
        }
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
        let bad = checked
            .citations
            .iter()
            .find(|c| !c.holds)
            .map(|c| c.note.clone())
            .or_else(|| checked.faults.first().cloned());
        return (0.15, vec![bad.unwrap_or_else(|| "it cites nothing".into())]);
    }
    let sources = checked.sources().len();
    let mut reasons = Vec::new();
    let mut score = if sources > 1 {
        reasons.push(format!("{sources} sources record it"));
        0.93
    } else if corroborated {
        reasons.push("another finding from elsewhere supports it".to_owned());
        0.92
    } else {
        reasons.push("one source records it".to_owned());
        0.8
    };
    let basis = draft.time.as_ref().map(|t| t.basis);
    let mut lower = |to: f64, why: &str| {
        if score > to {
            score = to;
        }
        reasons.push(why.to_owned());
    };
    if draft.kind == FindingKind::Aggregate {
        lower(0.72, "it covers a period, so it does not say when");
    }
    if matches!(basis, Some(TimeBasis::Inferred | TimeBasis::Ingestion)) {
        lower(0.75, "its time is not the record's own");
    }
    if !draft.about_alert && draft.confidence.get() < 0.7 {
        lower(
            if corroborated { 0.78 } else { 0.68 },
            "it is near the alerted activity but linked to it only by host, user or address",
        );
    }
    if contradicted {
        lower(0.55, "another finding speaks against it");
    }
    (score, reasons)
}

fn time(finding: &CheckedFinding) -> Option<Timestamp> {
    finding.finding.draft.time.as_ref().map(|t| t.at)
}

fn entities(finding: &CheckedFinding) -> BTreeSet<String> {
    let telling = |k: EntityKind| !matches!(k, EntityKind::Host | EntityKind::Other);
    finding.finding.draft.entities.iter().filter(|e| telling(e.kind)).map(|e| base(&e.value)).collect()
}

/// True if the other finding shows the same occurrence or explanation from another source.
fn corroborates(finding: &CheckedFinding, other: &CheckedFinding) -> bool {
    let own = finding.checked.sources();
    if other.checked.sources().iter().all(|s| own.contains(s)) {
        return false;
    }
    let apart = match (time(finding), time(other)) {
        (Some(a), Some(b)) => seconds(a, b).abs(),
        _ => return false,
    };
    let shared = entities(finding).intersection(&entities(other)).count();
    apart <= SAME_SECONDS && shared >= 1
}

/// True if one finding saw what the other says is absent, or if they explain the same record in opposite ways.
fn contradicts(finding: &CheckedFinding, other: &CheckedFinding) -> bool {
    let opposite = |a: Bearing, b: Bearing| {
        matches!(
            (a, b),
            (Bearing::Incriminating, Bearing::Exonerating) | (Bearing::Exonerating, Bearing::Incriminating)
        )
    };
    let same_record = finding.checked.records().iter().any(|r| other.checked.records().contains(r));
    let (claim, said) = (&finding.finding.draft.claim, &other.finding.draft.claim);
    let outcome = fails(claim) != fails(said) && shares_name(claim, said);
    same_record && (opposite(finding.finding.draft.bearing, other.finding.draft.bearing) || outcome)
}

fn fails(claim: &str) -> bool {
    let own: String = claim.split('`').step_by(2).collect::<String>().to_lowercase();
    ["failed", "denied", "refused", "blocked", "unsuccessful"].iter().any(|w| own.contains(w))
}

fn shares_name(a: &str, b: &str) -> bool {
    let first = a.split('`').nth(1);
    first.is_some_and(|name| b.split('`').skip(1).step_by(2).any(|n| n == name))
}

fn summary(view: &ReviewView, judgements: &[Judgement]) -> String {
    let mut scores: Vec<Score> = judgements.iter().map(|judgement| judgement.score).collect();
    scores.sort_by(|a, b| b.get().total_cmp(&a.get()));
    let alike = scores.chunk_by(|a, b| Credibility::of(*a) == Credibility::of(*b));
    let told = |scores: &[Score]| Some(format!("{} {}", scores.len(), Credibility::of(*scores.first()?).name()));
    let parts: Vec<String> = alike.filter_map(told).collect();
    let invalid = view.findings.iter().filter(|f| !f.checked.valid()).count();
    let checks = if invalid == 0 {
        "Every citation holds.".to_owned()
    } else {
        format!("{invalid} did not pass the mechanical check.")
    };
    format!("{} findings: {}. {checks}", judgements.len(), parts.join(", "))
}
