//! What a reader should know to be disputed: where Expert and Critic differ, where the Critic says that
//! two findings cannot both be true, and where Experts contradict each other as far as code can tell.

use std::collections::BTreeSet;

use casebook_protocol::report::Disagreement;
use casebook_protocol::{Bearing, CheckedFinding, FindingId};

use crate::state::State;
use crate::view;

/// Expert and Critic disagree from this difference on.
pub const DISAGREEMENT: f64 = 0.3;
/// Contradictions between Experts that are told; more say less.
const TOLD: usize = 20;

pub(super) fn of(state: &State) -> Vec<Disagreement> {
    let submitted: BTreeSet<&FindingId> = state.findings().map(|f| &f.finding.id).collect();
    let mut said = BTreeSet::new();
    let mut all = Vec::new();
    for known in state.findings().filter_map(|f| state.known.get(&f.finding.id)) {
        let (id, sure) = (&known.finding.id, known.finding.draft.confidence);
        if (sure.get() - known.score.get()).abs() >= DISAGREEMENT {
            let about = format!("the Expert is sure at {sure}, the Critic's score is {}", known.score);
            all.push(Disagreement { findings: vec![id.clone()], about });
        }
        for other in known.contradicted_by.iter().filter(|other| *other != id && submitted.contains(other)) {
            if said.insert((id.min(other), id.max(other))) {
                all.push(Disagreement {
                    findings: vec![id.clone(), other.clone()],
                    about: "they cannot both be true".into(),
                });
            }
        }
    }
    all.extend(between_experts(state, &mut said));
    all
}

/// Pairs of findings of different Experts, both with evidence that holds, of which code can tell that
/// they speak against each other; each pair once.
fn between_experts<'a>(state: &'a State, said: &mut BTreeSet<(&'a FindingId, &'a FindingId)>) -> Vec<Disagreement> {
    let valid: Vec<&CheckedFinding> = state.findings().filter(|f| f.checked.valid()).collect();
    let mut all = Vec::new();
    for (n, a) in valid.iter().enumerate() {
        for b in valid.iter().skip(n + 1).filter(|b| b.finding.domain != a.finding.domain) {
            let (first, second) = (&a.finding, &b.finding);
            let pair = ((&first.id).min(&second.id), (&first.id).max(&second.id));
            if !view::contradicts(first, second) || !said.insert(pair) {
                continue;
            }
            if all.len() == TOLD {
                return all;
            }
            let about = match (first.draft.bearing, second.draft.bearing) {
                (Bearing::Incriminating, Bearing::Exonerating) | (Bearing::Exonerating, Bearing::Incriminating) => {
                    "point opposite ways about the same thing"
                }
                _ => "differ on whether it is there at all",
            };
            let about = format!("the Experts {} and {} {about}", first.domain, second.domain);
            all.push(Disagreement { findings: vec![first.id.clone(), second.id.clone()], about });
        }
    }
    all
}
