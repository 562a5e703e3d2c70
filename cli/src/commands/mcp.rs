use std::path::Path;
use std::sync::Arc;

use casebook_hub::{OpenError, SqliteStore};

use crate::args::{Mcp, Models};
use crate::embedded;
use crate::embedded::nothing;
use crate::embedded::service::{self, Service};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::mcp::backend::Backend;
use crate::mcp::tools::Casebook;
use crate::mcp::{checked, serve};
use crate::models::Opened;
use crate::nats::Nats;
use crate::stop::{self, Stop};

pub(super) async fn run(data: &Path, args: &Mcp) -> Result<Exit, Failure> {
    checked(args.http)?;
    let mut stop = stop::listen()?;
    let (home, backend) = match args.nats.nats.is_some() {
        false => embedded(data, args, &mut stop).await?,
        true => team(data, args).await?,
    };
    let backend = Arc::new(backend);
    let store = Arc::clone(&home.store);
    let served = Casebook::new(home, Arc::clone(&backend)).served();
    let ended = tokio::select! {
        ended = serve("casebook mcp", served, args.http, &mut stop) => ended,
        error = store.failed() => Err(error.into()),
    };
    backend.close().await;
    ended
}

async fn embedded(data: &Path, args: &Mcp, stop: &mut Stop) -> Result<(Home, Backend), Failure> {
    let sources = embedded::given(args.evidence.clone(), args.team.as_deref(), &args.rules)?;
    if sources.evidence.is_none() && sources.team.is_none() {
        let mut failure = nothing();
        failure.advice.push_str("; or connect to a running team with --nats URL");
        return Err(failure);
    }
    let models = Models { models: args.models.clone(), ..Models::default() };
    let models = Opened::open(&models, sources.team.as_deref())?;
    let home = match SqliteStore::open(data) {
        Ok(store) => Home::with(data, Arc::new(store)),
        Err(locked @ OpenError::Locked { .. }) => {
            let why = locked.to_string();
            tracing::warn!(why, "no alert can be opened here; investigations can be read");
            return Ok((Home::reading(data)?, Backend::Reading { why }));
        }
        Err(error) => return Err(error.into()),
    };
    let options = service::Options { sources, budget: args.budget.budget(), reasoners: models.reasoners };
    let service = Service::start(&home, options, stop).await?;
    Ok((home, Backend::Embedded(Box::new(service))))
}

async fn team(data: &Path, args: &Mcp) -> Result<(Home, Backend), Failure> {
    let home = Home::named(data, &args.nats).await?;
    let sender = match &args.publisher_credentials {
        None => args.nats.connect("reader").await?,
        Some(file) => {
            let nats = Nats { credentials: Some(file.clone()), ..args.nats.clone() };
            nats.connect("publisher").await?
        }
    };
    Ok((home, Backend::Team(Box::new(sender))))
}
