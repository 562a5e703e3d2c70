//! What an investigation is given: evidence, a team folder and rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_evidence::Declared;
use casebook_evidence::rules::RuleSet;
use casebook_expert::rules;
use casebook_expert::team::{self, TeamError};

use crate::failure::Failure;

#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub evidence: Option<PathBuf>,
    pub team: Option<Arc<team::TeamFolder>>,
    /// The rules, if there are others than those of Casebook and of the team folder.
    pub rule_set: Option<Arc<RuleSet>>,
}

impl Sources {
    /// What the team folder states about the evidence, with the rules.
    pub fn declared(&self) -> Declared {
        let declared = self.team.as_ref().map_or_else(rules::declared, |team| team.declared.clone());
        let rule_set = self.rule_set.clone().or(declared.rule_set);
        Declared { rule_set, ..declared }
    }
}

impl From<PathBuf> for Sources {
    fn from(evidence: PathBuf) -> Self {
        Self { evidence: Some(evidence), ..Self::default() }
    }
}

/// Names the team folder if no option does.
pub const TEAM_ENV: &str = "CASEBOOK_TEAM";
/// Reads the given team folder, or the one in the environment. Fails with all faults of its files.
pub fn team(given: Option<&Path>) -> Result<Option<Arc<team::TeamFolder>>, Failure> {
    team_folder(given)
        .map(|folder| team::TeamFolder::read(&folder).map(Arc::new).map_err(|e| team_failure(&e)))
        .transpose()
}

/// The given team folder, or the one in the environment.
pub fn team_folder(given: Option<&Path>) -> Option<PathBuf> {
    let named = || std::env::var_os(TEAM_ENV).filter(|name| !name.is_empty()).map(PathBuf::from);
    given.map(Path::to_path_buf).or_else(named)
}

/// What an investigation is given: the team folder, and the rules of `folders` beside those of Casebook and the team.
///
/// # Errors
/// The files of the team folder or the rules have faults.
pub fn given(evidence: Option<PathBuf>, team_of: Option<&Path>, folders: &[PathBuf]) -> Result<Sources, Failure> {
    let team = team(team_of)?;
    let rule_set = match folders {
        [] => None,
        folders => {
            let files = rules::files(team_folder(team_of).as_deref(), folders);
            Some(files.and_then(rules::set).map_err(|faults| crate::commands::rules::refused(&faults))?)
        }
    };
    Ok(Sources { evidence, team, rule_set })
}

pub(crate) fn team_failure(error: &TeamError) -> Failure {
    match error {
        TeamError::Faults(_) => Failure::usage(error, "`casebook check DIR` shows all faults of a team folder"),
        TeamError::NoFolder(_) => Failure::usage(error, "name the folder with --team DIR"),
        TeamError::Name { .. } => Failure::usage(error, "each server must be its own source of evidence"),
        TeamError::Twice { .. } => Failure::usage(error, "only one body of evidence can be investigated at a time"),
        TeamError::Unread { .. } => Failure::failed(error, "`casebook tools` shows the state of each server"),
        TeamError::Nobody(_) => {
            Failure::usage(error, "`casebook tools` shows the tools of each Expert and which servers are available")
        }
    }
}
