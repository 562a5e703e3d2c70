//! A scripted model behind a models file: whole investigations with language models in every role, over
//! real HTTP on loopback.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_agent::model::client::Client;
use casebook_agent::model::config::Config;
use casebook_cli::reasoners::Reasoners;
use casebook_protocol::{Budget, Report};

use crate::model::invariants;
use crate::model::play::Script;
use crate::model::server::{Options, Server};
use crate::{Result, run};

/// The key that every request of a lab carries. It must be found nowhere else.
pub const KEY: &str = "sk-planted-7f3d9b1c-never-to-be-seen";

/// A wire format with the way in which an answer is given: provider and `answer` of the models file.
pub const FORMS: [(&str, &str); 8] = [
    ("anthropic", "native"),
    ("anthropic", "submit_tool"),
    ("openai", "native"),
    ("openai", "submit_tool"),
    ("openai-responses", "native"),
    ("openai-responses", "submit_tool"),
    ("openai-compatible", "native"),
    ("openai-compatible", "submit_tool"),
];

/// A scripted model that is served, with the models file that leads to it.
pub struct Lab {
    pub server: Server,
    /// The text of the models file.
    pub file: String,
    folder: tempfile::TempDir,
}

impl Lab {
    /// Serves `script` as the one model of every role, in a wire format and a way of answering.
    pub fn start(script: impl Script, (provider, way): (&str, &str)) -> Result<Self> {
        Self::start_with(script, (provider, way), "", Options::default())
    }

    /// The same with more lines for the model (`price`, `window`, …) and other options of the server.
    pub fn start_with(
        script: impl Script,
        (provider, way): (&str, &str),
        more: &str,
        options: Options,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut options = options;
        options.keys.push(KEY.to_owned());
        let server = Server::start(script, options)?;
        let key = folder.path().join("key");
        std::fs::write(&key, KEY)?;
        let file = models_file(&server.url(), (provider, way), &key, more);
        Ok(Self { server, file, folder })
    }

    /// The models file as it is read.
    pub fn config(&self) -> Result<Arc<Config>> {
        Ok(Arc::new(Config::parse("models.toml", &self.file)?))
    }

    /// The models in every role.
    pub fn reasoners(&self) -> Result<Reasoners> {
        let config = self.config()?;
        let client = Client::open(&config)?;
        Ok(Reasoners::of(config, Arc::new(client)))
    }

    /// The data folder of its investigations.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Investigates the alert of a case.
    pub fn investigate(&self, case: &Path, budget: Budget) -> Result<Report> {
        run::investigate_with(&case.join("alert.json"), &case.join("evidence"), &self.data(), budget, self.reasoners()?)
    }

    /// What is wrong with the requests so far, in words.
    pub fn violations(&self) -> Vec<String> {
        let found = invariants::check(&self.server.log().captured(), &[KEY.to_owned()]);
        found.iter().map(|v| format!("request {}: {}: {}", v.number, v.rule, v.detail)).collect()
    }
}

/// The models file with the scripted model at `url` in every role, which is asked with the key in the
/// file `key`; `more` are further lines for the model, in place of the usual ones where they name the same.
pub fn models_file(url: &str, (provider, way): (&str, &str), key: &Path, more: &str) -> String {
    let usual = ["window = 200000\n", "max_output = 8000\n", "concurrency = 64\n"];
    let name = |line: &str| line.split(' ').next().unwrap_or(line).to_owned();
    let usual: String = usual.into_iter().filter(|line| !more.contains(&name(line))).collect();
    let roles = ["director", "expert", "critic"].map(|role| format!("[roles.{role}]\nmodel = \"scripted\"\n")).concat();
    format!(
        "[models.scripted]\nprovider = \"{provider}\"\nmodel = \"scripted-1\"\nbase_url = \"{url}/v1/\"\n\
         key_file = \"{}\"\n{usual}answer = \"{way}\"\n{more}\n{roles}",
        key.display(),
    )
}
