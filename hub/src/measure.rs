//! Metrics of recorded events. An event is recorded once, so it is counted at most once.

use casebook_protocol::{Event, Recorded};
use casebook_runtime::store::StoreError;
use casebook_runtime::telemetry::{export, meter};

use crate::state::State;

/// `state` is the state after `recorded`.
pub(crate) fn recorded(recorded: &[Recorded], state: &State) {
    for entry in recorded {
        match &entry.event {
            Event::Opened { .. } => meter::opened(),
            Event::Guarded { guard } => meter::ruled(guard.rule.name()),
            Event::Reviewed { review } => {
                // A finding of an earlier round was counted there.
                let new = review.findings.iter().filter(|f| f.finding.round == review.round);
                new.for_each(|f| meter::scored(f.score.get(), f.label.name()));
            }
            Event::Closed {} => over(state),
            _ => {}
        }
    }
}

pub(crate) fn appended(seconds: f64, error: Option<&StoreError>) {
    let kind = error.map(|error| match error {
        StoreError::Conflict { .. } => meter::CONFLICT,
        _ => meter::UNAVAILABLE,
    });
    meter::appended(seconds, kind);
}

fn over(state: &State) {
    let (Some(investigation), Some(opened), Some(closed)) = (&state.investigation, state.opened, state.closed) else {
        return;
    };
    // A report without a conclusion is inconclusive.
    let verdict =
        state.conclusion.as_ref().map_or(casebook_protocol::Verdict::Inconclusive, |(_, ruling)| ruling.verdict);
    meter::closed(verdict.name(), opened, closed);
    export::ended(&export::Ended {
        investigation,
        opened,
        closed,
        verdict: verdict.name(),
        stopped: state.stop_reason.is_some(),
        rounds: state.round,
        usage: state.usage,
    });
}
