//! The roles at work over one body of evidence, for any number of alerts: what `casebook mcp` runs on.

use std::sync::Arc;

use casebook_agent::mcp::toolbox::Toolbox;
use casebook_hub::{Case, HubHandle, Run, State, archive, investigation_id};
use casebook_protocol::{Alert, Budget, InvestigationId, Member};
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::store::Store;
use tokio::sync::Mutex;

use super::{Ground, LAST_WORDS, Nobody, Team, seated};
use crate::failure::Failure;
use crate::home::{Home, hub_failure};
use crate::minds::Minds;
use crate::roster;
use crate::stop::Stop;

/// Investigations under way at once; more alerts are refused.
const AT_ONCE: usize = 16;

/// What every investigation shares.
pub struct Options {
    /// What alerts are investigated with.
    pub ground: Ground,
    /// What each may cost.
    pub budget: Budget,
    /// Who thinks.
    pub minds: Minds,
}

/// The roles at work. Investigations go on beside whoever opened them.
pub struct Standing {
    hub: HubHandle,
    bus: MemoryBus,
    store: Arc<dyn Store>,
    toolbox: Toolbox,
    roster: Vec<Member>,
    evidence: String,
    budget: Budget,
    /// Openings one after the other: two of the same alert are one investigation.
    opening: Mutex<()>,
}

impl Standing {
    /// Loads the evidence, starts the roles, and goes on with every investigation over this evidence that
    /// was stopped before its end. To be called on an actix system.
    ///
    /// # Errors
    /// The evidence cannot be loaded, the store fails, or someone asked to stop.
    pub async fn start(home: &Home, options: Options, stop: &mut Stop) -> Result<Self, Failure> {
        let (crew, evidence) = seated(&options.ground, home, None, &mut Nobody, stop).await?;
        crew.notices.iter().for_each(|notice| tracing::warn!(notice, "of the Experts and their servers"));
        let unfinished = unfinished(home, &evidence, &crew.seats).await?;
        let roster = crew.seats.iter().map(|seat| seat.member.clone()).collect();
        // Nobody hears the events: whoever asks reads the log.
        let Team { hub, bus, store, toolbox, .. } = Team::start(home, crew, &options.minds).await?;
        for id in unfinished {
            hub.resume(&id).await.map_err(|e| hub_failure(&e))?;
            tracing::info!(investigation = %id, "goes on");
        }
        Ok(Self { hub, bus, store, toolbox, roster, evidence, budget: options.budget, opening: Mutex::new(()) })
    }

    /// Investigates `alert`, and answers at once. The same alert over the same evidence is the same
    /// investigation, finished or not. The second half says whether it is a new one.
    ///
    /// # Errors
    /// In words for the caller: too many are under way, or the store fails.
    pub async fn open(&self, alert: Alert) -> Result<(InvestigationId, bool), String> {
        let _one = self.opening.lock().await;
        if let Some(before) = self.before(&alert).await? {
            return Ok((before, false));
        }
        let open = self.hub.observe().await.map_err(|e| e.to_string())?.open.len();
        if open >= AT_ONCE {
            return Err(format!("{open} investigations are under way: open this one when one of them has ended"));
        }
        let case = Case { alert, budget: self.budget, roster: self.roster.clone(), evidence: self.evidence.clone() };
        let opened = self.hub.open(case, Run::SameIfUnfinished).await.map_err(|e| e.to_string())?;
        Ok((opened.investigation, opened.fresh))
    }

    /// The latest investigation of this alert over this evidence.
    async fn before(&self, alert: &Alert) -> Result<Option<InvestigationId>, String> {
        let mut latest = None;
        for n in 1.. {
            let id = investigation_id(&alert.id, n);
            let State { case, .. } = archive::replay(self.store.as_ref(), &id).await.map_err(|e| e.to_string())?;
            match case {
                None => break,
                Some(case) if case.evidence == self.evidence => latest = Some(id),
                Some(_) => {}
            }
        }
        Ok(latest)
    }

    /// The investigations that are worked on.
    pub async fn under_way(&self) -> Vec<InvestigationId> {
        let seen = self.hub.observe().await;
        seen.map(|seen| seen.open.into_iter().map(|one| one.investigation).collect()).unwrap_or_default()
    }

    /// Hands out no more work. What is recorded stays, and goes on at the next start.
    pub async fn suspend(&self) {
        let recorded = tokio::time::timeout(LAST_WORDS, self.hub.suspend()).await;
        if !matches!(recorded, Ok(Ok(()))) {
            tracing::warn!("not all that was under way is recorded: it is done again at the next start");
        }
        self.bus.close();
        self.toolbox.close().await;
    }
}

async fn unfinished(home: &Home, evidence: &str, seats: &[roster::Seat]) -> Result<Vec<InvestigationId>, Failure> {
    let mut unfinished = Vec::new();
    for one in archive::summaries(home.store.as_ref()).await.map_err(|e| hub_failure(&e))? {
        if one.closed.is_some() || one.trouble.is_some() || one.evidence != evidence {
            continue;
        }
        let id = one.investigation;
        let state = archive::state(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
        match roster::difference(state.roster(), seats) {
            None => unfinished.push(id),
            Some(why) => tracing::warn!(investigation = %id, why, "its evidence has changed: it does not go on"),
        }
    }
    Ok(unfinished)
}
