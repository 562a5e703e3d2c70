//! A scripted model behind a models file: investigations with a language model in every role, over HTTP on
//! loopback.

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

/// The key of every request of a lab. It must not appear anywhere else.
pub const KEY: &str = "sk-planted-7f3d9b1c-never-to-be-seen";

/// The wire formats: `provider` and `answer` of the models file.
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

pub struct Lab {
    pub server: Server,
    pub file: String,
    folder: tempfile::TempDir,
}

impl Lab {
    pub fn start(script: impl Script, (provider, way): (&str, &str)) -> Result<Self> {
        Self::start_with(script, (provider, way), "", Options::default())
    }

    /// Like [`Lab::start`], with more lines for the model (`price`, `window`, …) and server options.
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

    pub fn config(&self) -> Result<Arc<Config>> {
        Ok(Arc::new(Config::parse("models.toml", &self.file)?))
    }

    pub fn reasoners(&self) -> Result<Reasoners> {
        let config = self.config()?;
        let client = Client::open(&config)?;
        Ok(Reasoners::of(config, Arc::new(client)))
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn investigate(&self, case: &Path, budget: Budget) -> Result<Report> {
        run::investigate_with(&case.join("alert.json"), &case.join("evidence"), &self.data(), budget, self.reasoners()?)
    }

    pub fn violations(&self) -> Vec<String> {
        let found = invariants::check(&self.server.log().captured(), &[KEY.to_owned()]);
        found.iter().map(|v| format!("request {}: {}: {}", v.number, v.rule, v.detail)).collect()
    }
}

/// The models file with the scripted model in every role. `more` has additional lines for the model, which
/// replace the usual ones with the same key.
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
