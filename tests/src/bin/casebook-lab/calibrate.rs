//! Plants false findings into finished investigations and measures how many are believed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use casebook_agent::reasoner::Reasoner;
use casebook_cli::embedded::{self, NoObserver};
use casebook_cli::failure::{Exit, Failure};
use casebook_cli::home::Home;
use casebook_cli::reasoners::Reasoners;
use casebook_cli::{models, stop};
use casebook_hub::archive;
use casebook_protocol::{Budget, InvestigationId, Phase, Role, TaskKind};
use casebook_runtime::process;
use casebook_tests::calibrate::{Calibrated, Options, calibrate, table, usual_critics};
use casebook_tests::{Result, run};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook-lab calibrate
  casebook-lab calibrate 3f2a --trials 500 --seed 7 --json calibration.json
  casebook-lab calibrate --cases cases/

The investigations are not changed. docs/calibration.md describes the kinds of trials.
Exit code 4: the checks accepted a falsehood.")]
pub(super) struct Arguments {
    /// Investigations by id, or its beginning [default: all finished ones]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// The data folder with the investigations
    #[arg(long, value_name = "DIR", env = "CASEBOOK_DATA", default_value = ".casebook")]
    data: PathBuf,
    /// False findings to plant; adds half as many true ones in unusual forms
    #[arg(long, value_name = "N", default_value_t = 2000)]
    trials: usize,
    /// The same seed plants the same findings
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Also write the measurement as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Investigate each case of this folder first, in a temporary data folder
    #[arg(long, value_name = "DIR", conflicts_with = "ids")]
    cases: Option<PathBuf>,
    /// Also measure the model of the Critic in this models file; needs one Review and one Timeline for every
    /// six trials
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let result = process::run(measured(arguments))??;
    if let Some(file) = &arguments.json {
        let json = serde_json::to_string_pretty(&result)? + "\n";
        std::fs::write(file, json).map_err(|e| Failure::write(file, &e))?;
    }
    print!("{}", table::table(&result));
    Ok(if result.failures.is_empty() { ExitCode::SUCCESS } else { Exit::NotIntact.code().into() })
}

async fn measured(arguments: &Arguments) -> Result<Calibrated> {
    let mut stop = stop::listen()?;
    let scratch = tempfile::tempdir()?;
    let home = match &arguments.cases {
        Some(root) => {
            let home = Home::open(scratch.path())?;
            for case in run::cases(root)? {
                let options = run::options(&case, &home.folder, Budget::default(), Reasoners::analyst())?;
                embedded::investigate_in(&home, options, &mut NoObserver, &mut stop).await?;
            }
            home
        }
        None => Home::reading(&arguments.data)?,
    };
    let ids = wanted(&home, &arguments.ids).await?;
    let mut critics = usual_critics();
    if let Some(file) = &arguments.models {
        critics.push(critic_of(file)?);
    }
    let options = Options { trials: arguments.trials, seed: arguments.seed };
    tokio::select! {
        result = calibrate(&home.store, &ids, options, &critics) => result,
        () = stop.wait() => Err(Failure {
            exit: Exit::Unfinished,
            what: "stopped; the measurement is not stored, and the investigations are unchanged".into(),
            advice: "run the same command again, with fewer --trials if it takes too long".into(),
        }
        .into()),
    }
}

fn critic_of(file: &Path) -> Result<(String, Arc<dyn Reasoner>)> {
    let (config, _) = models::config(file)?;
    let Some(selected) = config.select(Role::Critic, TaskKind::Review, Phase::Discovery, None) else {
        let what = format!("{} assigns no model to the Critic", file.display());
        let advice = "add one under [roles.critic]; without --models, only the built-in Critics are measured";
        return Err(Failure::usage(what, advice).into());
    };
    let name = selected.chain.first().map(|profile| profile.name.clone()).unwrap_or_default();
    let client = models::client(&config)?;
    Ok((name, Reasoners::of(Arc::new(config), client).critic()))
}

async fn wanted(home: &Home, named: &[String]) -> Result<Vec<InvestigationId>> {
    let all = archive::summaries(home.store.as_ref()).await.map_err(Failure::from)?;
    let mut finished: Vec<_> = all.into_iter().filter(|s| s.closed.is_some()).map(|s| s.investigation).collect();
    finished.sort();
    let mut ids = Vec::new();
    for text in named {
        ids.push(home.find(text).await?);
    }
    if let Some(open) = ids.iter().find(|id| !finished.contains(id)) {
        let what = format!("investigation {open} is not finished; only finished ones can be measured");
        return Err(Failure::usage(what, format!("continue with: casebook resume {open}")).into());
    }
    ids.dedup();
    let ids = if named.is_empty() { finished } else { ids };
    if ids.is_empty() {
        let what = format!("no finished investigation in {}", home.folder.display());
        let advice = "investigate an alert first, or name a folder of cases with --cases DIR";
        return Err(Failure::usage(what, advice).into());
    }
    Ok(ids)
}
