//! The rules of `docs/rules.md`. The Hub applies them to a proposal before it becomes state. Each answer names
//! the rule that was applied.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    Checked, Credibility, Finding, FindingId, Guard, Judgement, Review, ReviewDraft, Reviewed, Rule, Score, SourceInfo,
};

mod order;
mod reach;
mod stated;
mod tie;
mod timeline;
mod verdict;

pub use reach::out_of_reach;
pub use stated::Stated;
pub use tie::Ties;
pub use timeline::{narrative, timeline};
pub use verdict::{Docket, not_accepted, verdict};

fn guard(rule: Rule, subject: impl Into<String>, effect: impl Into<String>) -> Guard {
    Guard { rule, subject: subject.into(), effect: effect.into() }
}

/// The highest score of a finding without valid evidence.
pub const CAP_UNSUPPORTED: f64 = 0.29;
/// The highest score of a finding with a single source.
pub const CAP_SINGLE_SOURCE: f64 = 0.89;
/// The lowest score with which a finding may become part of the Timeline.
pub const TIMELINE_THRESHOLD: f64 = 0.5;

/// Score caps: turns a proposed Review into the valid one, which has every submitted finding, and those of `earlier`
/// rounds whose score rises, because a submitted one supports them from another source.
pub fn review(
    round: u32,
    draft: ReviewDraft,
    submitted: &[(Finding, Checked)],
    earlier: &BTreeMap<FindingId, Reviewed>,
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
    let mut checks: BTreeMap<&FindingId, &Checked> = earlier.iter().map(|(id, known)| (id, &known.checked)).collect();
    checks.extend(submitted.iter().map(|(f, c)| (&f.id, c)));
    let findings: Vec<Reviewed> = submitted
        .iter()
        .map(|(finding, checked)| {
            let judgement = judgements.remove(&finding.id);
            reviewed(finding, checked, judgement, &checks, sources, &mut guards)
        })
        .collect();
    let mut all = raised(&findings, earlier, sources, &mut guards);
    all.extend(findings);
    (Review { round, summary: draft.summary, findings: all }, guards)
}

/// The earlier findings that had the cap of a single source, and that a credible new finding supports from another one.
fn raised(
    findings: &[Reviewed],
    earlier: &BTreeMap<FindingId, Reviewed>,
    sources: &BTreeMap<String, SourceInfo>,
    guards: &mut Vec<Guard>,
) -> Vec<Reviewed> {
    let capped = earlier.values().filter(|old| old.capped_by == [Rule::SingleSource] && old.checked.valid());
    let capped = capped.filter(|old| !findings.iter().any(|new| new.finding.id == old.finding.id));
    let supported = capped.filter_map(|old| {
        let supports = |new: &&Reviewed| {
            let from = new.checked.sources().into_iter().chain(old.checked.sources());
            new.corroborated_by.contains(&old.finding.id) && credible(new) && independent(from, sources)
        };
        let by: Vec<FindingId> = findings.iter().filter(supports).map(|new| new.finding.id.clone()).collect();
        let first = by.first()?;
        let (score, capped_by) = (old.proposed, Vec::new());
        let effect = format!("{} raised to {score}: {first} supports it from another source", old.score);
        guards.push(guard(Rule::Corroborated, old.finding.id.as_str(), effect));
        let mut corroborated_by = old.corroborated_by.clone();
        corroborated_by.extend(by);
        Some(Reviewed { score, label: Credibility::of(score), capped_by, corroborated_by, ..old.clone() })
    });
    supported.collect()
}

/// True if two known sensors are behind the sources. One of unknown origin may be the same as any of the others.
fn independent<'a>(from: impl IntoIterator<Item = &'a str>, sources: &BTreeMap<String, SourceInfo>) -> bool {
    let known: BTreeSet<&str> =
        from.into_iter().filter_map(|source| Some(sources.get(source)?.sensor.as_str())).collect();
    known.len() >= SENSORS
}

/// The sensors that are independent evidence together.
const SENSORS: usize = 2;

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
        Judgement::new(&finding.id, Score::ZERO, "not reviewed")
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
    if !independent(from, sources) {
        cap(Rule::SingleSource, CAP_SINGLE_SOURCE, "all of its evidence comes from one source".into());
    }
    let of_form = capped_by.iter().any(|rule| rule.is_of_form());
    Reviewed {
        finding: finding.clone(),
        checked: checked.clone(),
        score,
        label: if of_form { Credibility::CitationIncomplete } else { Credibility::of(score) },
        proposed,
        capped_by,
        rationale: judgement.rationale,
        corroborated_by: supporting,
        contradicted_by: judgement.contradicted_by,
    }
}

/// True if the finding may become part of the Timeline and support a verdict.
pub fn credible(finding: &Reviewed) -> bool {
    finding.score.get() >= TIMELINE_THRESHOLD && finding.checked.valid()
}

#[cfg(test)]
mod tests;
