//! Builds the report from the state alone, in order of round, domain and number: the same log always gives the
//! same report.

use std::collections::BTreeSet;

use casebook_protocol::report::{
    REPORT_VERSION, ReportCitation, ReportEvent, ReportFinding, ReportTimeline, ReportUsage, TaskUsage,
};
use casebook_protocol::{
    CallId, CheckedFinding, Coherence, Conclusion, DOMAINS, FileHash, Head, Member, Phase, Proof, RecordHash, Report,
    Ruling, Score, TaskId, TaskKind, Timeline, ToolCall, Verdict, one_line,
};

use casebook_trust::headline::headline;
use casebook_trust::rule::{credible, out_of_reach};

use crate::lead;
use crate::state::{self, Progress, State, TaskState};

mod disagreements;

pub use disagreements::DISAGREEMENT;

/// `None` before the opening. Before the close, the verdict is inconclusive and `closed` is the time of the
/// last event.
pub fn build(state: &State) -> Option<Report> {
    let case = state.case.as_ref()?;
    let (conclusion, ruling) = state.conclusion.clone().unwrap_or_else(unfinished);
    let rounds = state.rounds.values().filter(|r| r.phase != Phase::Conclude).count();
    let of_credible = state.known.values().filter(|f| credible(f)).map(|f| &f.checked);
    let report = Report {
        casebook_report: REPORT_VERSION,
        investigation: state.investigation.clone()?,
        opened: state.opened?,
        closed: state.closed.or(state.last_at)?,
        alert: case.alert.clone(),
        verdict: ruling.verdict,
        headline: String::new(),
        ruling,
        stop_reason: state.stop_reason.clone(),
        summary: conclusion.summary,
        root_cause: conclusion.root_cause,
        actions: conclusion.actions,
        open_questions: conclusion.open_questions,
        rests_on: conclusion.findings,
        source_notes: state.notes(of_credible),
        coverage: state.coverage(),
        timeline: timeline(state.timeline.as_ref()),
        findings: state.findings().map(|f| finding(state, f)).collect(),
        disagreements: disagreements::of(state),
        blind_spots: blind_spots(state),
        out_of_reach: out_of_reach(&state.sources()),
        leads: lead::states(state),
        journal: state.journal.clone(),
        guards: guards(state),
        calls: calls(state),
        usage: ReportUsage {
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            total: state.usage,
            tasks: tasks(state),
        },
        proof: proof(state),
    };
    Some(Report { headline: headline(&report, state.conclusion.is_some()), ..report })
}

/// Whether a report that was kept is what the log gives. Older versions wrote no proof, no headline and no proposed scores,
/// and computed from other scores where an Expert and the Critic differ.
pub fn same(kept: &Report, built: &Report) -> bool {
    let (mut kept, mut built) = (kept.clone(), built.clone());
    if kept.proof.is_none() {
        built.proof = None;
    }
    if kept.headline.is_empty() {
        built.headline.clear();
    }
    if kept.out_of_reach.is_empty() && kept.findings.iter().all(|found| found.proposed.is_none()) {
        built.out_of_reach.clear();
        built.findings.iter_mut().for_each(|found| found.proposed = None);
        for report in [&mut kept, &mut built] {
            report.disagreements.retain(|one| one.findings.len() > 1);
        }
    }
    kept == built
}

fn proof(state: &State) -> Option<Proof> {
    let (seq, hash) = state.last.clone()?;
    let records: BTreeSet<&RecordHash> = state.hashes.values().flatten().collect();
    let files: BTreeSet<&FileHash> = state.files.values().flat_map(|files| &files.listed).collect();
    Some(Proof {
        head: Head { seq, hash },
        records: records.into_iter().cloned().collect(),
        files: files.into_iter().cloned().collect(),
        more_files: state.files.values().map(|files| files.more).max().unwrap_or(0),
        snapshots: state.snapshots.iter().cloned().collect(),
    })
}

fn unfinished() -> (Conclusion, Ruling) {
    let conclusion = Conclusion {
        verdict: Verdict::Inconclusive,
        summary: "The investigation is not finished: this is what is recorded so far.".into(),
        root_cause: "not determined".into(),
        actions: Vec::new(),
        open_questions: Vec::new(),
        findings: Vec::new(),
    };
    let missing = vec!["a conclusion: the investigation is not finished".to_owned()];
    (
        conclusion,
        Ruling {
            verdict: Verdict::Inconclusive,
            proposed: Verdict::Inconclusive,
            grounds: Vec::new(),
            missing,
            accounting: None,
        },
    )
}

fn timeline(timeline: Option<&Timeline>) -> ReportTimeline {
    let Some(timeline) = timeline else {
        let narrative = "No Timeline was written.".to_owned();
        return ReportTimeline {
            narrative,
            score: Score::ZERO,
            label: Coherence::of(Score::ZERO),
            events: Vec::new(),
            gaps: Vec::new(),
        };
    };
    let events = timeline.events.iter().map(|event| ReportEvent {
        time: event.time.at,
        when: event.time.clone(),
        description: event.description.clone(),
        score: event.score,
        findings: event.findings.clone(),
        evidence: event.evidence.clone(),
    });
    ReportTimeline {
        narrative: timeline.narrative.clone(),
        score: timeline.score,
        label: timeline.label,
        events: events.collect(),
        gaps: timeline.gaps.clone(),
    }
}

fn finding(state: &State, CheckedFinding { finding, checked }: &CheckedFinding) -> ReportFinding {
    let known = state.known.get(&finding.id);
    let checks = finding.draft.citations.iter().zip(&checked.citations);
    let citations = checks.map(|(citation, check)| ReportCitation {
        citation: citation.clone(),
        holds: check.holds,
        note: check.note.clone(),
        artifact: check.artifact.clone(),
        records: check.records.clone(),
    });
    ReportFinding {
        finding: finding.clone(),
        score: known.map(|k| k.score),
        label: known.map(|k| k.label),
        proposed: known.map(|k| k.proposed),
        capped_by: known.map(|k| k.capped_by.clone()).unwrap_or_default(),
        rationale: known.map_or_else(|| "never reviewed".into(), |k| k.rationale.clone()),
        corroborated_by: known.map(|k| k.corroborated_by.clone()).unwrap_or_default(),
        contradicted_by: known.map(|k| k.contradicted_by.clone()).unwrap_or_default(),
        citations: citations.collect(),
        faults: checked.faults.clone(),
    }
}

fn blind_spots(state: &State) -> Vec<String> {
    let mut spots = Vec::new();
    for domain in DOMAINS {
        let covers = |m: &Member| m.domain.as_str() == domain || m.covers.iter().any(|d| d.as_str() == domain);
        if !state.roster().iter().any(covers) {
            spots.push(format!("{domain}: no source of evidence"));
        }
    }
    for member in state.roster() {
        if member.sources.is_empty() {
            spots.push(format!("{}: its Expert names no source", member.domain));
        }
        for source in member.sources.iter().filter(|s| s.records == 0) {
            spots.push(format!("{}: source {} holds no record", member.domain, one_line(&source.source, 80)));
        }
    }
    let limited = state.tasks_in_order().into_iter().filter_map(|(_, task)| Some((task, state::limits(task)?)));
    spots.extend(limited.map(|(task, limits)| {
        let domain = task.domain.as_ref().map_or("", |domain| domain.as_str());
        format!("{domain}: its Expert reached a limit in round {}: {limits}", task.round)
    }));
    spots.extend(state.failures().map(|(_, task, reason)| failed(state, task, &one_line(reason, 200))));
    spots
}

fn failed(state: &State, task: &TaskState, reason: &str) -> String {
    let round = task.round;
    match (&task.domain, task.kind) {
        (Some(domain), _) => format!("{domain}: its Expert failed in round {round}: {reason}"),
        (None, TaskKind::Review) => {
            let unscored = state.rounds.get(&round).map_or(0, |r| r.findings.len());
            format!("the Review of round {round} failed, so that {unscored} findings have no score: {reason}")
        }
        (None, TaskKind::Timeline) => format!("the Timeline was not rewritten in round {round}: {reason}"),
        (None, kind) => format!("the {} task of round {round} failed: {reason}", kind.name()),
    }
}

fn guards(state: &State) -> Vec<casebook_protocol::Guard> {
    let mut guards: Vec<_> = state.guards.iter().collect();
    // The sort is stable: guards of one task keep the order in which the rules were applied.
    guards.sort_by(|a, b| a.by.cmp(&b.by));
    guards.into_iter().map(|g| g.guard.clone()).collect()
}

fn calls(state: &State) -> Vec<ToolCall> {
    let mut calls: Vec<_> = state.calls.values().collect();
    calls.sort_by_cached_key(|made| {
        let by = state.tasks.get(&made.task).map(|t| (t.round, t.kind, t.domain.clone()));
        (by, place(&made.task, &made.call.id), made.call.id.clone())
    });
    calls.into_iter().map(|made| made.call.clone()).collect()
}

/// Turn and index of a call in its task, as numbers: as text, `t10` sorts before `t2`.
fn place(task: &TaskId, call: &CallId) -> (u32, u32) {
    let rest = call.as_str().strip_prefix(task.as_str()).and_then(|r| r.strip_prefix(".t")).unwrap_or_default();
    let mut parts = rest.split('.').map(|n| n.parse().unwrap_or(u32::MAX));
    (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(u32::MAX))
}

fn tasks(state: &State) -> Vec<TaskUsage> {
    let usage = |(id, task): (&TaskId, &TaskState)| TaskUsage {
        task: id.clone(),
        kind: task.kind,
        domain: task.domain.clone(),
        phase: task.phase,
        player: task.player.clone(),
        failed: match &task.progress {
            Progress::Failed(reason) => Some(reason.clone()),
            Progress::Requested | Progress::Answered => None,
        },
        corrected: task.corrected,
        usage: task.usage,
    };
    state.tasks_in_order().into_iter().map(usage).collect()
}

#[cfg(test)]
mod tests;
