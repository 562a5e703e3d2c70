//! Opens the models of a models file.

use std::path::Path;
use std::sync::Arc;

use casebook_protocol::Role;
use casebook_runtime::config::ConfigFaults;
use casebook_runtime::files::{ReadError, text};

use crate::model::Model;
use crate::model::client::{self, Client};
use crate::model::config::{Config, NoModel};

pub const MODELS_ENV: &str = "CASEBOOK_MODELS";
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    File(#[from] ConfigFaults),
    /// An Expert's file names a model that the models file does not have.
    #[error("an Expert names a model: {0}")]
    Seat(#[from] NoModel),
    /// A key is missing, or TLS cannot be set up.
    #[error(transparent)]
    Client(#[from] client::OpenError),
}

#[derive(Clone)]
pub struct Models {
    pub config: Arc<Config>,
    pub models: Arc<dyn Model>,
}

impl Models {
    /// The models that `file` assigns to `role` after `adjust`. Keys of other roles are not needed.
    pub fn of_role(
        file: &Path,
        role: Role,
        adjust: impl FnOnce(Config) -> Result<Config, NoModel>,
    ) -> Result<Self, ModelsError> {
        let (config, _) = read(file)?;
        let config = adjust(config)?.of_role(role);
        let client = Client::open(&config)?;
        Ok(Self { config: Arc::new(config), models: Arc::new(client) })
    }
}

pub fn read(file: &Path) -> Result<(Config, String), ModelsError> {
    let text = text(file, "the models file")?;
    let config = Config::parse(file, &text)?;
    Ok((config, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[models.ours]\nprovider = \"openai-compatible\"\nmodel = \"s\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 32768\n[models.theirs]\nprovider = \"openai\"\nmodel = \"t\"\nkey_env = \"CASEBOOK_TEST_NO_SUCH_KEY\"\nwindow = 32768\n[roles.expert]\nmodel = \"ours\"\n[roles.critic]\nmodel = \"theirs\"\n";

    #[test]
    fn a_process_needs_the_keys_of_its_own_role_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.toml");
        std::fs::write(&file, FILE).unwrap();
        let names =
            |role| Models::of_role(&file, role, Ok).map(|m| m.config.models().map(|p| p.name.clone()).collect());
        assert_eq!(names(Role::Expert), Ok(vec!["ours".to_owned()]));
        assert_eq!(names(Role::Director), Ok(vec![]));
        let error = names(Role::Critic).unwrap_err();
        assert!(matches!(error, ModelsError::Client(_)), "{error}");
        assert!(error.to_string().contains("CASEBOOK_TEST_NO_SUCH_KEY"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read the models file ") && error.contains("expected a file of at most"),
            "{error}"
        );
    }
}
