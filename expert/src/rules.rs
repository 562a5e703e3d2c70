//! The Sigma rules of a run: those of Casebook, of the team folder, and of further folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_evidence::Declared;
use casebook_evidence::rules::{RuleFault, RuleFile, RuleSet, built_in_rules, rule_files};
use casebook_runtime::config::{ConfigFault, ConfigFaults};

/// The folder with rules in a team folder.
pub const FOLDER: &str = "rules";

fn faults(found: Vec<RuleFault>) -> ConfigFaults {
    let fault = |RuleFault { file, line, what }| ConfigFault { file, line, what };
    ConfigFaults(found.into_iter().map(fault).collect())
}

/// The rules of users in `folders`, and below the team folder.
///
/// Errors: A folder or file that cannot be read.
pub fn files(team: Option<&Path>, folders: &[PathBuf]) -> Result<Vec<RuleFile>, ConfigFaults> {
    let of_team = team.map(|folder| folder.join(FOLDER)).filter(|folder| folder.is_dir());
    let mut files = Vec::new();
    for folder in of_team.iter().chain(folders) {
        files.extend(rule_files(folder).map_err(|fault| faults(vec![fault]))?);
    }
    files.dedup_by(|one, other| one.path == other.path);
    Ok(files)
}

/// The rules of Casebook with these of users.
///
/// Errors: Each rule that cannot be used.
pub fn set(files: Vec<RuleFile>) -> Result<Arc<RuleSet>, ConfigFaults> {
    if files.is_empty() {
        return Ok(RuleSet::built_in());
    }
    let all: Vec<RuleFile> = built_in_rules().into_iter().chain(files).collect();
    RuleSet::read(&all).map(Arc::new).map_err(faults)
}

/// What is declared of evidence if there is no team folder.
pub fn declared() -> Declared {
    Declared { rule_set: Some(RuleSet::built_in()), ..Declared::default() }
}
