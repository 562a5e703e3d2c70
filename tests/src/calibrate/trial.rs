//! Runs trials through the check, the Critic's Review, the caps, the Critic's Timeline and membership. Only the
//! submission of the findings is special code.

use std::sync::Arc;

use casebook_agent::reasoner::Reasoner;
use casebook_cli::failure::Failure;
use casebook_hub::State;
use casebook_hub::advance::advance;
use casebook_hub::decide::Command;
use casebook_protocol::{
    Checked, CheckedFinding, Domain, Finding, FindingDraft, FindingId, InvestigationId, Reviewed, TaskKind, ToolCall,
};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::SystemClock;
use casebook_runtime::store::Store;
use casebook_trust::Exhibits;
use casebook_trust::check::timeless;
use casebook_trust::rule::credible;

use super::kind::{By, Expect, Kind};
use super::overlay::Overlay;
use super::stage::Stage;
use crate::Result;

/// A recorded call of a trial; repeated, it gives the same result.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeCall {
    pub call: ToolCall,
    pub bytes: Vec<u8>,
}

/// A finding that is submitted in a round, instead of a real one or in addition.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub kind: Kind,
    pub stage: usize,
    pub domain: Domain,
    /// The real finding that it replaces.
    pub replaces: Option<FindingId>,
    /// The real finding that it is about and that stays.
    pub partner: Option<FindingId>,
    pub draft: FindingDraft,
    pub calls: Vec<MadeCall>,
}

impl Trial {
    /// The real finding that it is made from.
    pub fn about(&self) -> Option<&FindingId> {
        self.replaces.as_ref().or(self.partner.as_ref())
    }

    pub fn as_found(place: usize, stage: &Stage) -> impl Iterator<Item = Self> {
        stage.bases.iter().map(move |base| {
            let Finding { id, domain, draft, .. } = base.found.finding.clone();
            Self {
                kind: Kind::AsFound,
                stage: place,
                domain,
                replaces: Some(id),
                partner: None,
                draft,
                calls: Vec::new(),
            }
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub kind: Kind,
    pub passed: bool,
    /// The objections of the check; empty if it passed.
    pub why: String,
    /// Its time was false and nothing else, and it lost the time.
    pub lost_time: bool,
    /// The final score; `None` if the Critic failed.
    pub score: Option<f64>,
    pub believed: bool,
    pub on_timeline: bool,
    /// Events that contain it or its partner.
    pub events: usize,
    /// It or its partner is marked as contradicted by the other.
    pub marked: bool,
    pub partner_believed: bool,
    pub claim: String,
}

impl Outcome {
    pub fn right(&self) -> bool {
        match self.kind.row().expect {
            Expect::Refused => (!self.believed || self.lost_time) && !self.on_timeline,
            Expect::Kept => self.believed,
            Expect::OneEvent => self.events == 1,
            Expect::Marked => self.marked || !self.believed || !self.partner_believed,
        }
    }

    /// Whether code believed a falsehood that it can detect, or rejected a truth.
    pub fn code_failed(&self) -> bool {
        let by_code = self.kind.row().by == By::Code;
        match self.kind.row().expect {
            Expect::Kept => !self.passed,
            Expect::Refused => by_code && !self.right(),
            Expect::OneEvent => by_code && self.events > 1,
            Expect::Marked => false,
        }
    }
}

/// Lets `reasoner` review the round with all of `trials`. If the Critic fails, the trials have no score.
pub async fn review(
    stage: &Stage,
    trials: &[&Trial],
    store: &Arc<dyn Store>,
    reasoner: &Arc<dyn Reasoner>,
) -> Result<Vec<Outcome>> {
    let mut state = stage.state.clone();
    let investigation = state.investigation.clone().ok_or_else(|| Failure::defect("a round of no investigation"))?;
    let overlay = Overlay::new(Arc::clone(store), state.round);
    let mut submitted = Vec::new();
    for trial in trials {
        submitted.extend(submit(stage, &mut state, trial).map(|id| (id, *trial)));
        for made in &trial.calls {
            overlay.record(&investigation, made).await?;
        }
    }
    let env = Env { bus: Arc::new(MemoryBus::default()), store: Arc::new(overlay), clock: Arc::new(SystemClock) };
    let state = reviewed(state, &investigation, &env, reasoner).await?;
    Ok(submitted.iter().map(|(id, trial)| outcome(&state, id, trial)).collect())
}

/// Checks a trial's finding as the Hub does, and adds it to the round.
fn submit(stage: &Stage, state: &mut State, trial: &Trial) -> Option<FindingId> {
    let Trial { domain, draft, .. } = trial.clone();
    let mut exhibits = stage.exhibits.get(&domain).cloned().unwrap_or_default();
    for made in &trial.calls {
        exhibits.add(made.call.clone(), true, &made.bytes);
    }
    let round = state.round;
    let findings = &mut state.rounds.get_mut(&round)?.findings;
    let id = match &trial.replaces {
        Some(id) => id.clone(),
        None => {
            let last = findings.keys().filter(|(of, _)| *of == domain).map(|(_, n)| *n).max();
            FindingId::of(round, &domain, last.unwrap_or(0) + 1)
        }
    };
    let number = id.as_str().rsplit('-').next()?.parse().ok()?;
    let (draft, checked) = settled(&exhibits, draft);
    let finding = Finding { id: id.clone(), domain: domain.clone(), round, draft };
    findings.insert((domain, number), CheckedFinding { finding, checked });
    Some(id)
}

/// Drops a time that alone is faulty, as the Hub does.
fn settled(exhibits: &Exhibits, draft: FindingDraft) -> (FindingDraft, Checked) {
    let checked = exhibits.check(&draft);
    let timeless = timeless(&draft).filter(|_| !checked.valid());
    let again = timeless.map(|timeless| (exhibits.check(&timeless), timeless));
    match again {
        Some((again, timeless)) if again.valid() => (timeless, again),
        _ => (draft, checked),
    }
}

async fn reviewed(
    state: State,
    investigation: &InvestigationId,
    env: &Env,
    reasoner: &Arc<dyn Reasoner>,
) -> Result<State> {
    let now = state.last_at.unwrap_or_default();
    let worker = casebook_critic::actor::worker(env.clone(), Arc::clone(reasoner));
    let mut pass = advance(state, investigation, &[], now, true);
    loop {
        if let Some(defect) = pass.defect {
            return Err(Failure::defect(defect).into());
        }
        let critics = |kind| matches!(kind, TaskKind::Review | TaskKind::Timeline);
        let Some(task) = pass.tasks.into_iter().find(|task| critics(task.view.kind())) else { return Ok(pass.state) };
        let outcome = worker.perform(&Arc::new(task)).await?;
        let command = Command::RecordOutcome {
            outcome: Box::new(outcome),
            sha256: String::new(),
            exhibits: Exhibits::default(),
            now,
        };
        pass = advance(pass.state, investigation, &[command], now, true);
        if let Some(Err(why)) = pass.answers.first() {
            return Err(Failure::defect(format!("the Critic's outcome was rejected: {why}")).into());
        }
    }
}

fn outcome(state: &State, id: &FindingId, trial: &Trial) -> Outcome {
    let partner = trial.partner.as_ref();
    let found = state.findings().find(|found| found.finding.id == *id);
    let submitted = found.map(|found| &found.checked);
    let changed = found.is_some_and(|found| found.finding.draft != trial.draft);
    let of_time = matches!(trial.kind, Kind::ChangedTime | Kind::OtherDay | Kind::AggregateTime | Kind::CitesOther);
    let review = state.this_review();
    let find = |id: &FindingId| -> Option<&Reviewed> { review?.findings.iter().find(|f| f.finding.id == *id) };
    let (own, other) = (find(id), partner.and_then(find));
    let names = |reviewed: Option<&Reviewed>, id: Option<&FindingId>| {
        id.is_some_and(|id| reviewed.is_some_and(|reviewed| reviewed.contradicted_by.contains(id)))
    };
    let believed = |reviewed: Option<&Reviewed>| reviewed.is_some_and(credible);
    let events = state.timeline.as_ref().map_or(&[][..], |timeline| &timeline.events);
    let why = submitted.map(|checked| {
        let bad = checked.citations.iter().filter(|citation| !citation.holds).map(|citation| citation.note.clone());
        bad.chain(checked.faults.clone()).collect::<Vec<_>>().join("; ")
    });
    Outcome {
        kind: trial.kind,
        passed: !changed && submitted.is_some_and(|checked| checked.valid()),
        lost_time: changed && of_time,
        why: why.unwrap_or_default(),
        score: own.map(|reviewed| reviewed.score.get()),
        believed: believed(own),
        on_timeline: events.iter().any(|event| event.findings.contains(id)),
        events: events.iter().filter(|e| e.findings.iter().any(|f| f == id || Some(f) == partner)).count(),
        marked: names(own, partner) || names(other, Some(id)),
        partner_believed: believed(other),
        claim: trial.draft.claim.clone(),
    }
}
