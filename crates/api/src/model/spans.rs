//! When tasks and calls began and ended, from the log.

use std::collections::BTreeMap;

use casebook_protocol::{
    ArtifactId, Domain, Event, FindingId, Phase, Player, Recorded, TaskId, TaskKind, Timestamp, Usage,
};

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Span {
    pub task: TaskId,
    pub kind: TaskKind,
    pub domain: Option<Domain>,
    pub phase: Phase,
    pub round: u32,
    pub view: ArtifactId,
    /// The event that requested it.
    pub seq: u64,
    pub from: Timestamp,
    /// None while it is under way.
    pub to: Option<Timestamp>,
    pub failed: Option<String>,
    pub player: Option<Player>,
    pub usage: Usage,
    pub tool_calls: usize,
    pub model_calls: usize,
    /// Findings that it submitted.
    pub findings: Vec<FindingId>,
    /// The numbers of the events that its answer led to: from the answer to the next task or its end.
    pub effects: Vec<u64>,
}

/// Every task in order of request.
#[must_use]
pub fn spans(log: &[Recorded]) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    let mut places: BTreeMap<TaskId, usize> = BTreeMap::new();
    let (mut phase, mut round) = (Phase::default(), 0);
    let mut ended: Option<usize> = None;
    for entry in log {
        match &entry.event {
            Event::RoundStarted { phase: next, round: number } => {
                (phase, round, ended) = (*next, *number, None);
            }
            Event::TaskRequested { task, kind, domain, view } => {
                ended = None;
                places.insert(task.clone(), all.len());
                all.push(Span {
                    task: task.clone(),
                    kind: *kind,
                    domain: domain.clone(),
                    phase,
                    round,
                    view: view.clone(),
                    seq: entry.seq,
                    from: entry.at,
                    to: None,
                    failed: None,
                    player: None,
                    usage: Usage::default(),
                    tool_calls: 0,
                    model_calls: 0,
                    findings: Vec::new(),
                    effects: Vec::new(),
                });
            }
            Event::CallRecorded { task, .. } => with(&mut all, places.get(task), |span| span.tool_calls += 1),
            Event::ModelCalled { task, .. } => with(&mut all, places.get(task), |span| span.model_calls += 1),
            Event::TaskAnswered { task, player, usage, .. } => {
                ended = places.get(task).copied();
                with(&mut all, ended.as_ref(), |span| {
                    (span.to, span.player, span.usage) = (Some(entry.at), Some(player.clone()), *usage);
                });
            }
            Event::TaskFailed { task, reason, usage, player, .. } => {
                ended = places.get(task).copied();
                with(&mut all, ended.as_ref(), |span| {
                    (span.to, span.player, span.usage) = (Some(entry.at), player.clone(), *usage);
                    span.failed = Some(reason.clone());
                });
            }
            event => with(&mut all, ended.as_ref(), |span| {
                span.effects.push(entry.seq);
                if let Event::FindingSubmitted { finding } = event {
                    span.findings.push(finding.id.clone());
                }
            }),
        }
    }
    all
}

fn with(all: &mut [Span], place: Option<&usize>, change: impl FnOnce(&mut Span)) {
    if let Some(span) = place.and_then(|place| all.get_mut(*place)) {
        change(span);
    }
}
