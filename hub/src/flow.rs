//! Chooses the next step: a pure function of the recorded state, independent of prompts.
//!
//! `discovery` → `trace` → `conclude`. A round is plan → investigate (in parallel) → review → timeline →
//! decide. Nothing starts while another task runs, so a stop takes effect when the running tasks have ended.
//! The flow continues after every failure:
//!
//! | failed | what follows |
//! |---|---|
//! | plan | in discovery a fixed question to everyone, in trace `conclude` |
//! | investigate | the round goes on with what the others found |
//! | review | the findings have no score, the Timeline is not rewritten, the Director decides |
//! | timeline | the previous one remains |
//! | decide | `conclude` |
//! | report | code concludes `inconclusive` with the reason |
//! | every Expert, from the start | no verdict: the investigation pauses ([`examination`](crate::examination)) until it is resumed |
//!
//! A domain without an Expert gets no questions, and the Director's view says so. Its open tasks have failed.
//!
//! If a round has no finding, an empty Review is recorded without the Critic, and the Director decides.

use casebook_protocol::{Domain, Move, Phase, TaskKind};

use crate::examination;
use crate::state::{Progress, Round, State};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    StartRound {
        phase: Phase,
        round: u32,
    },
    Request {
        kind: TaskKind,
        /// Set only for `investigate`.
        domain: Option<Domain>,
    },
    ReviewNothing,
    /// No Expert has examined anything.
    Pause,
    Close,
}

/// The next steps; none while a task is running or the investigation pauses, before the opening or after the close.
pub fn next(state: &State) -> Vec<Next> {
    let pauses = state.not_investigated.is_some();
    if state.case.is_none() || state.closed.is_some() || pauses || state.in_flight().next().is_some() {
        return Vec::new();
    }
    let conclude = || vec![Next::StartRound { phase: Phase::Conclude, round: state.round + 1 }];
    let Some(round) = state.this_round() else {
        return match state.stop_reason {
            Some(_) => conclude(),
            None => vec![Next::StartRound { phase: Phase::Discovery, round: state.round + 1 }],
        };
    };
    if state.phase == Phase::Conclude {
        return if state.conclusion.is_some() { vec![Next::Close] } else { request(TaskKind::Report) };
    }
    if state.stop_reason.is_some() {
        return conclude();
    }
    within(state, round)
}

fn request(kind: TaskKind) -> Vec<Next> {
    vec![Next::Request { kind, domain: None }]
}

fn within(state: &State, round: &Round) -> Vec<Next> {
    let Some(question) = &round.question else { return request(TaskKind::Plan) };
    // An Expert that returns after the findings went to the Critic is asked in the next round.
    let reviewed = round.reviewed || state.task(TaskKind::Review, None).is_some();
    let there = state.roster().iter().map(|m| &m.domain).filter(|d| !reviewed && !state.gone.contains_key(*d));
    let asked = there.filter(|d| question.to.is_empty() || question.to.contains(d));
    let unasked: Vec<Next> = asked
        .filter(|d| state.task(TaskKind::Investigate, Some(d)).is_none())
        .map(|d| Next::Request { kind: TaskKind::Investigate, domain: Some(d.clone()) })
        .collect();
    if !unasked.is_empty() {
        return unasked;
    }
    if examination::missing(state).is_some() {
        return vec![Next::Pause];
    }
    if round.findings.is_empty() && !round.reviewed {
        return vec![Next::ReviewNothing];
    }
    let Some(review) = state.task(TaskKind::Review, None) else {
        return if round.findings.is_empty() { decided(state, round) } else { request(TaskKind::Review) };
    };
    if review.progress == Progress::Answered && state.task(TaskKind::Timeline, None).is_none() {
        return request(TaskKind::Timeline);
    }
    decided(state, round)
}

fn decided(state: &State, round: &Round) -> Vec<Next> {
    let Some(decision) = &round.decision else { return request(TaskKind::Decide) };
    let phase = match (decision.next, round.phase) {
        (Move::Stay, phase) => phase,
        (Move::Advance, Phase::Discovery) => Phase::Trace,
        (Move::Advance, Phase::Trace | Phase::Conclude) => Phase::Conclude,
    };
    vec![Next::StartRound { phase, round: state.round + 1 }]
}

#[cfg(test)]
mod tests;
