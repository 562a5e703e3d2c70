//! Opens the models and prompts that the command line names. Every error is found before anything is started.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use casebook_agent::model::client::Client;
use casebook_agent::model::config::Config;
pub use casebook_agent::model::open::MODELS_ENV;
use casebook_agent::model::open::{self, ModelsError};
use casebook_agent::model::replay::{self, MODELS_FILE, Replay};
use casebook_agent::model::reword::Prompts;
use casebook_agent::model::{Answered, Ask, AskError, Fault, Model, Observed};
use casebook_expert::reasoner;
use casebook_expert::team::TeamFolder;
use casebook_protocol::Role;
use casebook_runtime::files::ReadError;

use crate::args::Models;
use crate::failure::{Exit, Failure};
use crate::reasoners::Reasoners;

#[derive(Clone, Default)]
pub struct Opened {
    pub reasoners: Reasoners,
    missed: Arc<Mutex<Option<String>>>,
}

impl Opened {
    pub fn open(models: &Models, team: Option<&TeamFolder>) -> Result<Self, Failure> {
        match (&models.replay, &models.record) {
            (Some(folder), _) => Self::replay(folder, models.models.as_deref(), team),
            (None, record) => Self::real(file(models.models.as_deref()).as_deref(), record.as_deref(), team),
        }
    }

    fn real(file: Option<&Path>, record: Option<&Path>, team: Option<&TeamFolder>) -> Result<Self, Failure> {
        let Some(file) = file else {
            return match record {
                None => {
                    without_file(team)?;
                    Ok(Self::default())
                }
                Some(_) => Err(Failure::usage(
                    "--record needs a models file",
                    format!("name one with --models FILE or {MODELS_ENV}; the built-in analyst needs no recording"),
                )),
            };
        };
        let (config, text) = config(file)?;
        let config = of_team(config, team)?;
        let client = client(&config)?;
        let models: Arc<dyn Model> = match record {
            None => client,
            Some(folder) => replay::record(client, folder, &text).map_err(|e| Failure::write(folder, &e))?,
        };
        Ok(Self { reasoners: Reasoners::of(Arc::new(config), models), ..Self::default() })
    }

    fn replay(folder: &Path, file: Option<&Path>, team: Option<&TeamFolder>) -> Result<Self, Failure> {
        let replay = Replay::open(folder)
            .map_err(|e| Failure::usage(e, "name a folder that --record wrote: casebook investigate … --replay DIR"))?;
        let (config, _) = config(&file.map_or_else(|| folder.join(MODELS_FILE), Path::to_path_buf))?;
        let config = of_team(config, team)?;
        let missed: Arc<Mutex<Option<String>>> = Arc::default();
        let first = Arc::clone(&missed);
        let observe = move |_: &Ask, result: &Result<Answered, AskError>, _| {
            if let Err(AskError { fault: Fault::NotRecorded, message, .. }) = result {
                first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| message.clone());
            }
        };
        let models = Arc::new(Observed { model: Arc::new(replay), observe });
        Ok(Self { reasoners: Reasoners::of(Arc::new(config), models), missed })
    }

    /// Fails with the first request that the replay could not answer.
    pub fn replayed(&self) -> Result<(), Failure> {
        match self.missed.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            None => Ok(()),
            Some(first) => Err(Failure {
                exit: Exit::NotReplayed,
                what: format!("the run differs from the recorded one: {first}"),
                advice: "replay with the same alert, evidence, models file and version of casebook, in another data folder; or record again with --record DIR".into(),
            }),
        }
    }
}

/// `config` with the models that the Experts of `team` name, which must be in the models file.
pub fn of_team(config: Config, team: Option<&TeamFolder>) -> Result<Config, Failure> {
    let experts = team.and_then(|team| team.experts.as_ref()).into_iter().flatten();
    reasoner::with_expert_models(config, experts).map_err(|e| {
        Failure::usage(
            format!("an Expert of the team folder has an unusable model: {e}"),
            "`casebook check` shows which",
        )
    })
}

/// Fails if an Expert of `team` names a model, which needs a models file.
pub(crate) fn without_file(team: Option<&TeamFolder>) -> Result<(), Failure> {
    let experts = team.and_then(|team| team.experts.as_ref()).into_iter().flatten();
    match reasoner::wants_model(experts) {
        None => Ok(()),
        Some(expert) => Err(Failure::usage(
            format!(
                "{}: Expert {} uses model {:?}, but no models file is given",
                expert.file.display(),
                expert.name,
                expert.model.as_deref().unwrap_or_default()
            ),
            format!("name one with --models FILE or {MODELS_ENV}"),
        )),
    }
}

/// The given models file, or the one in the environment.
pub fn file(given: Option<&Path>) -> Option<PathBuf> {
    let named = || std::env::var_os(MODELS_ENV).filter(|name| !name.is_empty()).map(PathBuf::from);
    given.map(Path::to_path_buf).or_else(named)
}

/// The checked configuration, and the text of the file.
pub fn config(file: &Path) -> Result<(Config, String), Failure> {
    open::read(file).map_err(|error| match error {
        ModelsError::Read(error) => unread(&error),
        error => Failure::usage(error, "docs/models.md describes the file; `casebook doctor --models FILE` checks it"),
    })
}

/// Opens the models that `config` assigns to roles.
pub fn client(config: &Config) -> Result<Arc<dyn Model>, Failure> {
    let client = Client::open(&config.clone().in_use())
        .map_err(|e| Failure::usage(e, "`casebook doctor --models FILE` shows what each model needs"))?;
    Ok(Arc::new(client))
}

/// `config` with the values of `--model [ROLE=]NAME`, in order.
pub fn with_models(config: Config, choices: &[String]) -> Result<Config, Failure> {
    choices.iter().try_fold(config, |config, choice| {
        let refused = |what: String| {
            Failure::usage(
                format!("--model {choice}: {what}"),
                "write --model NAME, or --model critic=NAME for one role",
            )
        };
        let (role, name) = match choice.split_once('=') {
            None => (None, choice.as_str()),
            Some((role, name)) => (Some(named_role(role).map_err(refused)?), name),
        };
        config.with_model(role, name).map_err(|e| refused(e.to_string()))
    })
}

fn named_role(text: &str) -> Result<Role, String> {
    Role::ALL
        .into_iter()
        .find(|role| role.name() == text)
        .ok_or_else(|| format!("expected the role director, expert or critic, got {text:?}"))
}

pub fn prompts(folder: &Path) -> Result<Prompts, Failure> {
    const ADVICE: &str = "copy the built-in prompts (the prompts/ folders of director, expert and critic) and change the copies (docs/backtest-and-replay.md)";
    let refused = |what: String| Failure::usage(format!("prompts in {}: {what}", folder.display()), ADVICE);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| refused(e.to_string()))? {
        let path = entry.map_err(|e| refused(e.to_string()))?.path();
        if path.extension().is_some_and(|e| e == "md") {
            names.push(path);
        }
    }
    names.sort();
    let mut prompts = Prompts::default();
    for path in &names {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        prompts.take(&name, &read(path, "the prompt")?).map_err(|e| refused(e.to_string()))?;
    }
    if names.is_empty() {
        return Err(refused("expected a prompt, such as plan.md".into()));
    }
    Ok(prompts)
}

fn read(file: &Path, what: &'static str) -> Result<String, Failure> {
    casebook_runtime::files::text(file, what).map_err(|e| unread(&e))
}

fn unread(error: &ReadError) -> Failure {
    Failure::usage(error, "name the models file: --models FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[models.small]\nprovider = \"openai-compatible\"\nmodel = \"s\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 32768\n[roles.expert]\nmodel = \"small\"\n";

    fn refused(choice: &str) -> String {
        let config = Config::parse("models.toml", FILE).unwrap();
        with_models(config, &[choice.to_owned()]).unwrap_err().what
    }

    #[test]
    fn a_model_choice_that_cannot_be_is_named() {
        assert_eq!(
            refused("judge=small"),
            "--model judge=small: expected the role director, expert or critic, got \"judge\""
        );
        assert_eq!(
            refused("critic=big"),
            "--model critic=big: expected a model of the models file (small), got \"big\""
        );
        let config = Config::parse("models.toml", FILE).unwrap();
        assert!(with_models(config, &["small".into(), "critic=analyst".into()]).is_ok());
    }

    #[test]
    fn what_cannot_be_opened_is_told_before_anything_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let why = |models: Models| Opened::open(&models, None).err().map(|f| (f.exit, f.what)).unwrap();
        let nowhere = Some(folder.path().join("nowhere"));
        assert_eq!(why(Models { models: nowhere.clone(), ..Models::default() }).0, Exit::Usage);
        assert_eq!(why(Models { replay: nowhere, ..Models::default() }).0, Exit::Usage);
        let file = folder.path().join("models.toml");
        std::fs::write(&file, FILE.replace("window", "windows")).unwrap();
        let (exit, what) = why(Models { models: Some(file), ..Models::default() });
        assert!(exit == Exit::Usage && what.contains("models.toml:5"), "{what}");
    }

    #[test]
    fn prompts_are_read_from_a_folder_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let refused = || prompts(folder.path()).unwrap_err().what;
        assert!(refused().contains("expected a prompt"));
        std::fs::write(folder.path().join("plan.md"), "Casebook task: plan (prompt plan 2)\nAsk.\n").unwrap();
        assert_eq!(prompts(folder.path()).unwrap().kinds().count(), 1);
        std::fs::write(folder.path().join("ask.md"), "x").unwrap();
        assert!(refused().contains("ask.md: expected one of plan.md"));
    }
}
