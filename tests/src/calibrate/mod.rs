//! Measures how well falsehoods are separated from truths: plants findings of known kinds into finished
//! investigations and processes them like all findings.
//!
//! [`kind`] is the table of trials, [`stage`] reads investigations, [`plant`] makes trials, [`trial`] runs them
//! through the check, the Critic and the rules, [`measure`] counts, and [`table`] prints. The trials are a pure
//! function of the investigations and a seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use casebook_agent::reasoner::{Analyst, Reasoner};
use casebook_cli::failure::Failure;
use casebook_protocol::ANALYST;
use casebook_protocol::{FindingId, InvestigationId};
use casebook_runtime::store::Store;
use serde::Serialize;

pub mod credulous;
pub mod kind;
pub mod measure;
pub mod overlay;
pub mod plant;
pub mod stage;
pub mod table;
pub mod trial;

use kind::{Expect, Kind};
use measure::{Measure, measure};
use stage::{Stage, stages};
use trial::{Trial, review};

use crate::Result;

/// Maximum number of trials in one Review, so that they are few among many real findings.
const TOGETHER: usize = 6;

/// The name of the measurement of the mechanical checks alone.
pub const CHECKS_ALONE: &str = "checks alone";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Findings to plant; adds half as many true ones in unusual forms.
    pub trials: usize,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    pub casebook_calibration: u32,
    pub seed: u64,
    pub investigations: usize,
    pub rounds: usize,
    pub planted: usize,
    pub hard: usize,
    pub real: usize,
    pub measures: Vec<Measure>,
    /// Trials in which code failed: it believed a falsehood that it can detect, or rejected a truth.
    pub failures: Vec<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub kind: Kind,
    pub critic: String,
    pub claim: String,
    pub why: String,
}

/// The checks alone and the built-in analyst.
pub fn usual_critics() -> Vec<(String, Arc<dyn Reasoner>)> {
    let analyst: Arc<dyn Reasoner> = Arc::new(Analyst(casebook_critic::analyst::think));
    let credulous: Arc<dyn Reasoner> = Arc::new(credulous::CREDULOUS_CRITIC);
    vec![(CHECKS_ALONE.to_owned(), credulous), (ANALYST.to_owned(), analyst)]
}

pub async fn calibrate(
    store: &Arc<dyn Store>,
    ids: &[InvestigationId],
    options: Options,
    critics: &[(String, Arc<dyn Reasoner>)],
) -> Result<Calibrated> {
    let mut rounds: Vec<Stage> = Vec::new();
    for id in ids {
        rounds.extend(stages(store.as_ref(), id).await.map_err(Failure::from)?);
    }
    let real: Vec<Trial> = rounds.iter().enumerate().flat_map(|(place, round)| Trial::as_found(place, round)).collect();
    let trials = plant::trials(&rounds, options.trials, options.seed);
    let (mut measures, mut failures) = (Vec::new(), Vec::new());
    for (name, reasoner) in critics {
        let mut seen = Vec::new();
        for (place, round) in rounds.iter().enumerate() {
            let as_found = real.iter().filter(|trial| trial.stage == place).collect();
            let planted = together(trials.iter().filter(|trial| trial.stage == place));
            for batch in [as_found].into_iter().chain(planted) {
                seen.extend(review(round, &batch, store, reasoner).await?);
            }
        }
        failures.extend(seen.iter().filter(|outcome| outcome.code_failed()).map(|outcome| Failed {
            kind: outcome.kind,
            critic: name.clone(),
            claim: outcome.claim.clone(),
            why: outcome.why.clone(),
        }));
        measures.push(measure(name, &seen));
    }
    let hard = trials.iter().filter(|trial| trial.kind.row().expect == Expect::Kept).count();
    Ok(Calibrated {
        casebook_calibration: 1,
        seed: options.seed,
        investigations: ids.len(),
        rounds: rounds.len(),
        planted: trials.len() - hard,
        hard,
        real: real.len(),
        measures,
        failures,
    })
}

/// Groups the trials of a round into Reviews, so that no two in one Review come from the same real finding.
fn together<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<Vec<&'a Trial>> {
    let mut open: Vec<(Vec<&Trial>, BTreeSet<&FindingId>)> = Vec::new();
    for trial in trials {
        let about = trial.about();
        let fits = |(batch, taken): &&mut (Vec<&Trial>, BTreeSet<&FindingId>)| {
            batch.len() < TOGETHER && about.is_none_or(|id| !taken.contains(id))
        };
        match open.iter_mut().find(fits) {
            Some((batch, taken)) => {
                batch.push(trial);
                taken.extend(about);
            }
            None => open.push((vec![trial], about.into_iter().collect())),
        }
    }
    open.into_iter().map(|(batch, _)| batch).collect()
}
