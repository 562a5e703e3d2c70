//! `casebook calibrate`

use std::path::Path;
use std::sync::Arc;

use casebook_agent::mind::Mind;
use casebook_hub::archive;
use casebook_protocol::{InvestigationId, Phase, Role, TaskKind};

use crate::args::Calibrate;
use crate::calibrate::{CalibrateError, Options, calibrate, cases, table, usual_critics};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::minds::Minds;
use crate::models;
use crate::screen::Screen;
use crate::stop;

pub(super) async fn run(data: &Path, args: &Calibrate, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut stop = stop::listen()?;
    let scratch; // Lives as long as the store in it.
    let home = match &args.cases {
        Some(root) => {
            let cases = cases::found(root)?;
            scratch = tempfile::tempdir().map_err(|e| Failure::write(&std::env::temp_dir(), &e))?;
            let home = Home::open(scratch.path())?;
            cases::investigate(&home, &cases, &mut stop).await?;
            home
        }
        None => Home::existing(data)?,
    };
    let ids = wanted(&home, &args.ids).await?;
    let options = Options { trials: args.trials, seed: args.seed };
    let mut critics = usual_critics();
    if let Some(file) = &args.models {
        critics.push(seated(file)?);
    }
    let mut quiet = |_, _| ();
    let measuring = calibrate(&home.store, &ids, options, &critics, &mut quiet);
    let result = tokio::select! {
        result = measuring => result.map_err(failure)?,
        () = stop.wait() => return Err(Failure {
            exit: Exit::Unfinished,
            what: "stopped: nothing was changed and nothing is kept of the measurement".into(),
            advice: "run the same command again, with fewer --trials if it takes too long".into(),
        }),
    };
    if let Some(file) = &args.json {
        let mut json = serde_json::to_vec_pretty(&result).map_err(Failure::defect)?;
        json.push(b'\n');
        std::fs::write(file, json).map_err(|e| Failure::write(file, &e))?;
    }
    screen.text(&table::table(&result));
    Ok(if result.failures.is_empty() { Exit::Done } else { Exit::NotIntact })
}

/// The model that reviews by the models file, under its name there.
fn seated(file: &Path) -> Result<(String, Arc<dyn Mind>), Failure> {
    let (config, _) = models::config(file)?;
    let Some(seat) = config.seat(Role::Critic, TaskKind::Review, Phase::Discovery, None) else {
        return Err(Failure::usage(
            format!("{} seats no model as Critic", file.display()),
            "give it one under [roles.critic]; the built-in analyst is measured without --models",
        ));
    };
    let name = seat.chain.first().map(|profile| profile.name.clone()).unwrap_or_default();
    let client = models::client(&config)?;
    Ok((name, Minds::of(Arc::new(config), client).critic()))
}

/// The investigations that were named, or all that are finished.
async fn wanted(home: &Home, named: &[String]) -> Result<Vec<InvestigationId>, Failure> {
    let all = archive::summaries(home.store.as_ref()).await?;
    let mut ids = Vec::new();
    for text in named {
        ids.push(home.find(text).await?);
    }
    let finished = |id: &InvestigationId| all.iter().any(|s| s.investigation == *id && s.closed.is_some());
    if let Some(open) = ids.iter().find(|id| !finished(id)) {
        return Err(Failure::usage(
            format!("investigation {open} is not finished: only finished ones can be measured"),
            format!("go on with: casebook resume {open}"),
        ));
    }
    if named.is_empty() {
        ids = all.into_iter().filter(|s| s.closed.is_some()).map(|s| s.investigation).collect();
        ids.sort();
    }
    ids.dedup();
    if ids.is_empty() {
        return Err(Failure::usage(
            format!("there is no finished investigation in {}", home.folder.display()),
            "investigate an alert first, or give a folder of cases with --cases DIR",
        ));
    }
    Ok(ids)
}

fn failure(error: CalibrateError) -> Failure {
    match error {
        CalibrateError::Hub(error) => error.into(),
        CalibrateError::Sitting(error) => Failure::defect(error),
    }
}
