//! Disagreements: an Expert's confidence differs from the Critic's own score, the Critic rules out that two
//! findings are both true, or code detects that findings of two Experts contradict each other.

use std::collections::BTreeSet;

use casebook_protocol::report::Disagreement;
use casebook_protocol::{Bearing, FindingId};

use crate::state::State;
use crate::view::{self, Named};

/// The smallest difference between confidence and score that counts.
pub const DISAGREEMENT: f64 = 0.3;
/// Maximum number of contradictions between Experts to list; more repeat the same.
const MAX_CONTRADICTIONS: usize = 20;

pub(super) fn of(state: &State) -> Vec<Disagreement> {
    let submitted: BTreeSet<&FindingId> = state.findings().map(|f| &f.finding.id).collect();
    let mut listed = BTreeSet::new();
    let mut all = Vec::new();
    for known in state.findings().filter_map(|f| state.known.get(&f.finding.id)) {
        let (id, sure) = (&known.finding.id, known.finding.draft.confidence);
        let critics = known.proposed;
        if (sure.get() - critics.get()).abs() >= DISAGREEMENT {
            let about = format!("the Expert is sure at {sure}, the Critic's score is {critics}");
            all.push(Disagreement { findings: vec![id.clone()], about });
        }
        for other in known.contradicted_by.iter().filter(|other| *other != id && submitted.contains(other)) {
            if listed.insert((id.min(other), id.max(other))) {
                all.push(Disagreement {
                    findings: vec![id.clone(), other.clone()],
                    about: "they cannot both be true".into(),
                });
            }
        }
    }
    all.extend(between_experts(state, &mut listed));
    all
}

/// Pairs of findings of different Experts, with valid evidence, that contradict each other. Each pair is listed
/// once.
fn between_experts<'a>(state: &'a State, listed: &mut BTreeSet<(&'a FindingId, &'a FindingId)>) -> Vec<Disagreement> {
    let valid = state.findings().filter(|f| f.checked.valid());
    let valid: Vec<Named<'_>> = valid.map(|f| Named::of(&f.finding)).collect();
    let mut all = Vec::new();
    for (n, a) in valid.iter().enumerate() {
        for b in valid.iter().skip(n + 1).filter(|b| b.finding.domain != a.finding.domain) {
            let (first, second) = (a.finding, b.finding);
            let pair = ((&first.id).min(&second.id), (&first.id).max(&second.id));
            if !view::contradicts(a, b) || !listed.insert(pair) {
                continue;
            }
            if all.len() == MAX_CONTRADICTIONS {
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
