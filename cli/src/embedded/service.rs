//! The roles for any number of alerts over one body of evidence, for `casebook mcp`.

use casebook_hub::{Intake, archive};
use casebook_protocol::{Budget, InvestigationId, Member};

use super::{Engine, NoObserver, Sources, gathered};
use crate::failure::Failure;
use crate::home::Home;
use crate::reasoners::Reasoners;
use crate::roster;
use crate::stop::Stop;

pub struct Options {
    pub sources: Sources,
    pub budget: Budget,
    pub reasoners: Reasoners,
}

/// Investigations continue if the client that opened them is gone.
pub struct Service {
    pub intake: Intake,
    team: Engine,
}

impl Service {
    /// Loads the evidence, starts the roles, and continues stopped investigations of this evidence. Call it on
    /// an actix system.
    pub async fn start(home: &Home, options: Options, stop: &mut Stop) -> Result<Self, Failure> {
        let (team, evidence) =
            gathered(&options.sources, home, None, &options.reasoners, &mut NoObserver, stop).await?;
        team.notices.iter().for_each(|notice| tracing::warn!(notice, "check the Experts and their servers"));
        let team = Engine::start(home, team, evidence.clone(), options.budget, &options.reasoners).await?;
        let intake = team.intake.clone();
        go_on(home, &intake, &evidence, &team.roster).await?;
        let working = intake.clone();
        tokio::spawn(async move { working.work().await });
        Ok(Self { intake, team })
    }

    pub async fn under_way(&self) -> Vec<InvestigationId> {
        let seen = self.team.hub.observe().await;
        seen.map(|seen| seen.open.into_iter().map(|one| one.investigation).collect()).unwrap_or_default()
    }

    /// Hands out no more tasks. Investigations continue at the next start.
    pub async fn suspend(&self) {
        if !self.team.drained().await {
            tracing::warn!("some running tasks were not recorded; the next start repeats them");
        }
        self.team.bus.close();
        self.team.toolbox.close().await;
    }
}

async fn go_on(home: &Home, intake: &Intake, evidence: &str, roster: &[Member]) -> Result<(), Failure> {
    for one in archive::summaries(home.store.as_ref()).await? {
        if one.closed.is_some() || one.trouble.is_some() || one.evidence != evidence {
            continue;
        }
        let id = one.investigation;
        let state = archive::state(home.store.as_ref(), &id).await?;
        match roster::difference(state.roster(), roster) {
            None => {
                intake.again(&id, &state).await?;
                tracing::info!(investigation = %id, "investigation continues");
            }
            Some(why) => {
                tracing::warn!(investigation = %id, why, "investigation not continued: its evidence has changed")
            }
        }
    }
    Ok(())
}
