//! How well falsehoods are told from truths, measured: findings of known kinds are planted into
//! finished investigations and go the way of every finding.
//!
//! [`material`] reads what there is, [`plant`] makes trials of it, [`sitting`] lets them pass the
//! check, the Critic and the rules, [`measure`] counts, [`table`] shows. What is planted is a pure
//! function of the investigations and a seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use casebook_agent::mind::{Analyst, Mind};
use casebook_cli::failure::Failure;
use casebook_protocol::{FindingId, InvestigationId};
use casebook_runtime::store::Store;
use serde::Serialize;

pub mod dice;
pub mod kind;
pub mod material;
pub mod measure;
pub mod overlay;
pub mod plant;
pub mod sitting;
pub mod table;
pub mod trial;
pub mod trusting;

use kind::{By, Expect};
use material::{Stage, stages};
use measure::{Measure, measure, right};
use plant::Planted;
use sitting::{Seen, sit, sit_as_found};

use crate::Result;

/// Trials in one Review, at most: few among many real findings.
const TOGETHER: usize = 6;

/// The name under which the mechanical checks are measured alone.
pub const CHECKS_ALONE: &str = "checks alone";

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Findings to plant; half as many true ones in hard forms come on top.
    pub trials: usize,
    /// What chance begins with.
    pub seed: u64,
}

/// The measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    /// The version of this form.
    pub casebook_calibration: u32,
    /// The seed.
    pub seed: u64,
    /// Investigations.
    pub investigations: usize,
    /// Rounds of them that had a Review.
    pub rounds: usize,
    /// Findings planted.
    pub planted: usize,
    /// True findings in hard forms.
    pub hard: usize,
    /// Real findings.
    pub real: usize,
    /// One for each Critic.
    pub measures: Vec<Measure>,
    /// Trials in which code failed: a falsehood that code can tell and that was believed, or a truth
    /// that a check stopped.
    pub failures: Vec<Failed>,
}

/// A trial in which code failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Its kind.
    pub kind: kind::Kind,
    /// Who was the Critic.
    pub critic: String,
    /// What it claims.
    pub claim: String,
    /// What the check said.
    pub why: String,
}

/// Who plays the Critic, by name: the checks alone and the built-in analyst. Models come after them.
#[must_use]
pub fn usual_critics() -> Vec<(String, Arc<dyn Mind>)> {
    let analyst: Arc<dyn Mind> = Arc::new(Analyst(casebook_critic::analyst::think));
    let trusting: Arc<dyn Mind> = Arc::new(Analyst(trusting::think));
    vec![(CHECKS_ALONE.to_owned(), trusting), (casebook_protocol::ANALYST.to_owned(), analyst)]
}

/// Measures every one of `critics` on the same trials.
///
/// # Errors
/// When an investigation cannot be read or the store fails.
pub async fn calibrate(
    store: &Arc<dyn Store>,
    ids: &[InvestigationId],
    options: Options,
    critics: &[(String, Arc<dyn Mind>)],
) -> Result<Calibrated> {
    let mut rounds: Vec<Stage> = Vec::new();
    for id in ids {
        rounds.extend(stages(store.as_ref(), id).await.map_err(Failure::from)?);
    }
    let trials = plant::trials(&rounds, options.trials, options.seed);
    let batches = together(&trials, rounds.len());
    let (mut measures, mut failures) = (Vec::new(), Vec::new());
    for (name, mind) in critics {
        let mut seen = Vec::new();
        for stage in &rounds {
            seen.extend(sit_as_found(stage, store, mind).await?);
        }
        for batch in &batches {
            let Some(stage) = batch.first().and_then(|p| rounds.get(p.stage)) else { continue };
            seen.extend(sit(stage, batch, store, mind).await?);
        }
        failures.extend(seen.iter().filter(|s| code_failed(s)).map(|s| Failed {
            kind: s.kind,
            critic: name.clone(),
            claim: s.claim.clone(),
            why: s.why.clone(),
        }));
        measures.push(measure(name, &seen));
    }
    let hard = trials.iter().filter(|p| p.trial.kind.expect() == Expect::Kept).count();
    Ok(Calibrated {
        casebook_calibration: 1,
        seed: options.seed,
        investigations: ids.len(),
        rounds: rounds.len(),
        planted: trials.len() - hard,
        hard,
        real: rounds.iter().map(|r| r.bases.len()).sum(),
        measures,
        failures,
    })
}

/// A falsehood that code can tell was believed, or a check stopped what is true.
fn code_failed(seen: &Seen) -> bool {
    match seen.kind.expect() {
        Expect::Kept => !seen.passed,
        Expect::Refused => seen.kind.by() == By::Code && !right(seen),
        Expect::OneEvent => seen.kind.by() == By::Code && seen.events > 1,
        Expect::Marked => false,
    }
}

/// The trials by the Reviews in which they come: no two of one Review are made from one real finding.
fn together(trials: &[Planted], rounds: usize) -> Vec<Vec<&Planted>> {
    let mut batches = Vec::new();
    for round in 0..rounds {
        let mut open: Vec<(Vec<&Planted>, BTreeSet<&FindingId>)> = Vec::new();
        for planted in trials.iter().filter(|p| p.stage == round) {
            let about = planted.trial.about();
            let fits = |(batch, taken): &&mut (Vec<&Planted>, BTreeSet<&FindingId>)| {
                batch.len() < TOGETHER && about.is_none_or(|id| !taken.contains(id))
            };
            match open.iter_mut().find(fits) {
                Some((batch, taken)) => {
                    batch.push(planted);
                    taken.extend(about);
                }
                None => open.push((vec![planted], about.into_iter().collect())),
            }
        }
        batches.extend(open.into_iter().map(|(batch, _)| batch));
    }
    batches
}
