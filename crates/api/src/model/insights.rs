//! Numbers over all investigations.

use std::collections::BTreeMap;
use std::sync::Arc;

use casebook_protocol::{CallStatus, Credibility, Timestamp, Usage};
use serde::Serialize;

use crate::cases::Held;
use crate::model::spans::spans;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tool {
    pub calls: u64,
    pub failed: u64,
    pub millis: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Expert {
    pub findings: u64,
    /// Of reviewed findings.
    pub bands: [u64; 5],
    pub cited: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Insights {
    pub investigations: u64,
    pub closed: u64,
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Findings by credibility, the worst first.
    pub bands: [u64; 5],
    pub rules: BTreeMap<&'static str, u64>,
    pub tools: BTreeMap<String, Tool>,
    pub experts: BTreeMap<String, Expert>,
    pub roles: BTreeMap<&'static str, Usage>,
    pub players: BTreeMap<String, u64>,
    /// Coherence of each closed investigation, by time.
    pub coherence: Vec<(Timestamp, String, f64)>,
}

#[must_use]
pub fn of(cases: &[Arc<Held>]) -> Insights {
    let mut all = Insights::default();
    for held in cases {
        add(&mut all, held);
    }
    all.coherence.sort_by_key(|one| one.0);
    all
}

fn add(all: &mut Insights, held: &Held) {
    let state = &held.state;
    all.investigations += 1;
    if let (Some(at), Some((_, ruling))) = (state.closed, &state.conclusion) {
        all.closed += 1;
        *all.verdicts.entry(ruling.verdict.name()).or_default() += 1;
        let id = state.investigation.as_ref().map(ToString::to_string).unwrap_or_default();
        all.coherence.push((at, id, state.timeline.as_ref().map_or(0.0, |timeline| timeline.score.get())));
    }
    for guarded in &state.guards {
        *all.rules.entry(guarded.guard.rule.name()).or_default() += 1;
    }
    let rests = state.conclusion.as_ref().map_or(&[][..], |(conclusion, _)| &conclusion.findings);
    for found in state.findings() {
        let expert = all.experts.entry(found.finding.domain.to_string()).or_default();
        expert.findings += 1;
        expert.cited += u64::from(rests.contains(&found.finding.id));
        let Some(known) = state.known.get(&found.finding.id) else { continue };
        let band = Credibility::BANDS.iter().position(|band| *band == known.label).unwrap_or(0);
        for bands in [&mut expert.bands, &mut all.bands] {
            if let Some(count) = bands.get_mut(band) {
                *count += 1;
            }
        }
        for rule in &known.capped_by {
            *all.rules.entry(rule.name()).or_default() += 1;
        }
    }
    for made in state.calls.values() {
        let tool = all.tools.entry(made.call.tool.clone()).or_default();
        tool.calls += 1;
        tool.failed += u64::from(made.call.status == CallStatus::Failed);
        let took = casebook_protocol::between(made.call.started, made.call.ended).as_millis();
        tool.millis += u64::try_from(took).unwrap_or(u64::MAX);
    }
    for span in spans(&held.log) {
        *all.roles.entry(span.kind.role().name()).or_default() += span.usage;
        if let Some(player) = &span.player {
            *all.players.entry(format!("{} {}", player.name, player.version).trim_end().to_owned()).or_default() += 1;
        }
    }
}
