//! What comes next: a pure function of the recorded state, never of a prompt (design, section 1).
//!
//! `discovery` → `trace` → `conclude`; a round is plan → investigate (in parallel) → review →
//! timeline → decide. Nothing starts while something else is under way, so a stop takes effect when
//! the tasks under way have ended. A failure never hangs the flow:
//!
//! | failed | what follows |
//! |---|---|
//! | plan | in discovery a fixed question to everyone, in trace `conclude` |
//! | investigate | the round goes on with what the others found |
//! | review | the findings stay without a score, no Timeline is written, the Director decides |
//! | timeline | the one before stands |
//! | decide | `conclude` |
//! | report | a conclusion by code: inconclusive, and why |
//!
//! A domain whose last Expert is gone is not asked, and the Director's view says so; what it had under
//! way has failed.
//!
//! A round without a finding has nothing to review and nothing to fold: the Critic is not asked, an
//! empty Review says so, and the Director decides.

use casebook_protocol::{Domain, Move, Phase, TaskKind};

use crate::state::{Progress, Round, State};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A pass through a phase.
    StartRound {
        phase: Phase,
        round: u32,
    },
    Request {
        kind: TaskKind,
        /// The Expert, for `investigate`.
        domain: Option<Domain>,
    },
    /// Nothing was found that could be reviewed.
    ReviewNothing,
    Close,
}

/// What comes next; nothing while a task is under way, before the opening and after the end.
pub fn next(state: &State) -> Vec<Next> {
    if state.case.is_none() || state.closed.is_some() || state.in_flight().next().is_some() {
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

/// The next step of a round that nothing stops.
fn within(state: &State, round: &Round) -> Vec<Next> {
    let Some(question) = &round.question else { return request(TaskKind::Plan) };
    // Whoever is back after the findings went to the Critic is asked in the next round.
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
