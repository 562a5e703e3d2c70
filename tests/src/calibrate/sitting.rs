//! Puts trials through what the Hub does: the check, the Critic's Review, the caps, the Critic's
//! Timeline, and membership. Nothing of it is made for the measurement but the place at which the
//! findings come in.

use std::sync::Arc;

use casebook_agent::mind::Mind;
use casebook_cli::failure::Failure;
use casebook_hub::State;
use casebook_hub::advance::advance;
use casebook_hub::decide::Command;
use casebook_protocol::{CheckedFinding, Finding, FindingId, Reviewed, Score, TaskKind};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::SystemClock;
use casebook_runtime::store::Store;
use casebook_trust::Exhibits;
use casebook_trust::rule::{TIMELINE_THRESHOLD, credible};

use super::kind::Kind;
use super::material::Stage;
use super::overlay::Overlay;
use super::plant::Planted;
use crate::Result;

/// What became of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its kind.
    pub kind: Kind,
    /// It passed the mechanical check.
    pub passed: bool,
    /// What the check said against it; empty where it passed.
    pub why: String,
    /// The score that counts; none where the Critic failed.
    pub score: Option<f64>,
    /// It may carry an event: it is credible by rule 3.4.
    pub believed: bool,
    /// It stands on the Timeline.
    pub told: bool,
    /// Events that tell it or the finding that it is about.
    pub events: usize,
    /// It or the finding that it is about is marked as contradicted by the other.
    pub marked: bool,
    /// The finding that it is about is believed.
    pub partner_believed: bool,
    /// What it claims.
    pub claim: String,
}

/// Lets `mind` review the round with all of `trials` in it.
///
/// # Errors
/// When the store fails. A Critic that fails is an answer: its trials have no score.
pub async fn sit(
    stage: &Stage,
    trials: &[&Planted],
    store: &Arc<dyn Store>,
    mind: &Arc<dyn Mind>,
) -> Result<Vec<Seen>> {
    let mut state = stage.state.clone();
    let overlay = Overlay::new(Arc::clone(store), state.round);
    let mut ids = Vec::new();
    for planted in trials {
        ids.push(submit(stage, &mut state, planted));
        if let Some(investigation) = &stage.state.investigation {
            for made in &planted.trial.calls {
                overlay.record(investigation, made).await?;
            }
        }
    }
    let env = Env { bus: Arc::new(MemoryBus::default()), store: Arc::new(overlay), clock: Arc::new(SystemClock) };
    let state = reviewed(state, &env, mind).await?;
    Ok(trials.iter().zip(&ids).map(|(planted, ids)| seen(&state, planted, ids)).collect())
}

/// Every real finding of the round as `mind` reviews it with nothing planted.
///
/// # Errors
/// As [`sit`].
pub async fn sit_as_found(stage: &Stage, store: &Arc<dyn Store>, mind: &Arc<dyn Mind>) -> Result<Vec<Seen>> {
    let mut state = stage.state.clone();
    for base in &stage.bases {
        let finding = &base.found.finding;
        let exhibits = stage.exhibits.get(&finding.domain).cloned().unwrap_or_default();
        insert(&mut state, finding.clone(), &exhibits);
    }
    let overlay = Overlay::new(Arc::clone(store), state.round);
    let env = Env { bus: Arc::new(MemoryBus::default()), store: Arc::new(overlay), clock: Arc::new(SystemClock) };
    let state = reviewed(state, &env, mind).await?;
    Ok(stage.bases.iter().map(|b| of(&state, Kind::AsFound, &b.found.finding.id, None)).collect())
}

/// Checks the findings of a trial as the Hub does and puts them into the round.
fn submit(stage: &Stage, state: &mut State, planted: &Planted) -> Vec<FindingId> {
    let trial = &planted.trial;
    let mut exhibits = stage.exhibits.get(&trial.domain).cloned().unwrap_or_default();
    for made in &trial.calls {
        exhibits.add(made.call.clone(), made.repeatable, &made.bytes);
    }
    let round = state.round;
    let mut ids = Vec::new();
    for draft in &trial.drafts {
        let next = last(state, &trial.domain) + 1;
        let id = match &trial.replaces {
            Some(id) if ids.is_empty() => id.clone(),
            _ => FindingId::of(round, &trial.domain, next),
        };
        let finding = Finding { id: id.clone(), domain: trial.domain.clone(), round, draft: draft.clone() };
        insert(state, finding, &exhibits);
        ids.push(id);
    }
    ids
}

fn last(state: &State, domain: &casebook_protocol::Domain) -> usize {
    let findings = state.this_round().into_iter().flat_map(|r| r.findings.keys());
    findings.filter(|(d, _)| d == domain).map(|(_, n)| *n).max().unwrap_or(0)
}

fn insert(state: &mut State, finding: Finding, exhibits: &Exhibits) {
    let number = finding.id.as_str().rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let checked = exhibits.check(&finding.draft);
    let place = (finding.domain.clone(), number);
    if let Some(round) = state.rounds.get_mut(&finding.round) {
        round.findings.insert(place, CheckedFinding { finding, checked });
    }
}

/// The state after the Review and the Timeline of the round.
async fn reviewed(state: State, env: &Env, mind: &Arc<dyn Mind>) -> Result<State> {
    let investigation = state.investigation.clone().ok_or_else(|| Failure::defect("a round of no investigation"))?;
    let now = state.last_at.unwrap_or_default();
    let worker = casebook_critic::actor::worker(env.clone(), Arc::clone(mind));
    let mut pass = advance(state, &investigation, &[], now, true);
    loop {
        if let Some(defect) = pass.defect {
            return Err(Failure::defect(defect).into());
        }
        let critics = |kind| matches!(kind, TaskKind::Review | TaskKind::Timeline);
        let Some(task) = pass.tasks.into_iter().find(|t| critics(t.view.kind())) else { return Ok(pass.state) };
        let outcome = worker.perform(&Arc::new(task)).await?;
        let command = Command::RecordOutcome { outcome: Box::new(outcome), exhibits: Exhibits::default(), now };
        pass = advance(pass.state, &investigation, &[command], now, true);
        if let Some(Err(why)) = pass.answers.first() {
            return Err(Failure::defect(format!("the Critic's outcome was rejected: {why}")).into());
        }
    }
}

fn seen(state: &State, planted: &Planted, ids: &[FindingId]) -> Seen {
    let trial = &planted.trial;
    match ids.first() {
        Some(id) => of(state, trial.kind, id, trial.partner.as_ref()),
        None => Seen {
            kind: trial.kind,
            passed: false,
            why: "nothing was submitted".into(),
            score: None,
            believed: false,
            told: false,
            events: 0,
            marked: false,
            partner_believed: false,
            claim: String::new(),
        },
    }
}

fn of(state: &State, kind: Kind, id: &FindingId, partner: Option<&FindingId>) -> Seen {
    let threshold = Score::clamped(TIMELINE_THRESHOLD);
    let submitted = state.findings().find(|f| f.finding.id == *id);
    let review = state.this_review();
    let find = |id: &FindingId| -> Option<&Reviewed> { review?.findings.iter().find(|f| f.finding.id == *id) };
    let (own, other) = (find(id), partner.and_then(find));
    let names = |reviewed: Option<&Reviewed>, id: Option<&FindingId>| {
        id.is_some_and(|id| reviewed.is_some_and(|r| r.contradicted_by.contains(id)))
    };
    let events = state.timeline.as_ref().map_or(&[][..], |t| &t.events);
    Seen {
        kind,
        passed: submitted.is_some_and(|f| f.checked.valid()),
        why: submitted.map(why).unwrap_or_default(),
        score: own.map(|r| r.score.get()),
        believed: own.is_some_and(|r| credible(r, threshold)),
        told: events.iter().any(|e| e.findings.contains(id)),
        events: events.iter().filter(|e| e.findings.iter().any(|f| f == id || Some(f) == partner)).count(),
        marked: names(own, partner) || names(other, Some(id)),
        partner_believed: other.is_some_and(|r| credible(r, threshold)),
        claim: submitted.map(|f| f.finding.draft.claim.clone()).unwrap_or_default(),
    }
}

fn why(found: &CheckedFinding) -> String {
    let bad = found.checked.citations.iter().filter(|c| !c.holds).map(|c| c.note.clone());
    bad.chain(found.checked.faults.clone()).collect::<Vec<_>>().join("; ")
}
