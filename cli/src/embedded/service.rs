//! The roles at work over one body of evidence, for any number of alerts: what `casebook mcp` runs on.

use casebook_hub::{Intake, archive};
use casebook_protocol::{Budget, InvestigationId, Member};

use super::{Engine, Nobody, Sources, gathered};
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

/// The roles at work. Investigations go on without the client that opened them.
pub struct Service {
    pub intake: Intake,
    team: Engine,
}

impl Service {
    /// Loads the evidence, starts the roles, and goes on with every investigation over this evidence that was stopped
    /// before its end. To be called on an actix system.
    pub async fn start(home: &Home, options: Options, stop: &mut Stop) -> Result<Self, Failure> {
        let (team, evidence) = gathered(&options.sources, home, None, &mut Nobody, stop).await?;
        team.notices.iter().for_each(|notice| tracing::warn!(notice, "check the Experts and their servers"));
        let team = Engine::start(home, team, evidence.clone(), options.budget, &options.reasoners).await?;
        let intake = team.intake.clone();
        go_on(home, &intake, &evidence, &team.roster).await?;
        let working = intake.clone();
        tokio::spawn(async move { working.work().await });
        Ok(Self { intake, team })
    }

    /// The investigations that are worked on.
    pub async fn under_way(&self) -> Vec<InvestigationId> {
        let seen = self.team.hub.observe().await;
        seen.map(|seen| seen.open.into_iter().map(|one| one.investigation).collect()).unwrap_or_default()
    }

    /// Hands out no more work. What is recorded stays, and goes on at the next start.
    pub async fn suspend(&self) {
        if !self.team.drained().await {
            tracing::warn!("not all that was under way is recorded: it is done again at the next start");
        }
        self.team.bus.close();
        self.team.toolbox.close().await;
    }
}

/// Puts what was stopped before its end into the queue.
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
                tracing::info!(investigation = %id, "goes on");
            }
            Some(why) => tracing::warn!(investigation = %id, why, "its evidence has changed: it does not go on"),
        }
    }
    Ok(())
}
