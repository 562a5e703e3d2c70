//! Runs whole investigations in this process, in a data folder of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use casebook_cli::embedded::{self, Nobody, Options};
use casebook_cli::minds::Minds;
use casebook_cli::stop::Stop;
use casebook_protocol::{Alert, Budget, Report};
use casebook_runtime::process;

use crate::{nats, programs};

/// One of our programs, built like the test that runs it.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    programs::folder().join(name)
}

/// `casebook cluster` on a free port, with a NATS server that this machine has or that pip installs.
///
/// # Errors
/// There is no such server.
pub fn cluster() -> Result<Command, String> {
    let mut command = Command::new(program("casebook"));
    command.args(["cluster", "--port", "0", "--nats-server"]).arg(nats::program()?).stdin(Stdio::null());
    for name in ["CASEBOOK_MODELS", "CASEBOOK_NATS", "CASEBOOK_TEAM"] {
        command.env_remove(name);
    }
    Ok(command)
}

/// Investigates an alert over a folder of evidence with the built-in analyst.
///
/// # Errors
/// What went wrong, in words.
pub fn investigate(alert: &Path, evidence: &Path) -> Result<Report, String> {
    let data = tempfile::tempdir().map_err(|e| e.to_string())?;
    investigate_in(alert, evidence, data.path())
}

/// The same in the data folder `data`.
///
/// # Errors
/// What went wrong, in words.
pub fn investigate_in(alert: &Path, evidence: &Path, data: &Path) -> Result<Report, String> {
    investigate_with(alert, evidence, data, Budget::default(), Minds::analyst())
}

/// The same with other limits and other minds.
///
/// # Errors
/// What went wrong, in words.
pub fn investigate_with(
    alert: &Path,
    evidence: &Path,
    data: &Path,
    budget: Budget,
    minds: Minds,
) -> Result<Report, String> {
    let bytes = std::fs::read(alert).map_err(|e| format!("{}: {e}", alert.display()))?;
    let alert = Alert::parse(&bytes).map_err(|e| format!("{}: {e}", alert.display()))?;
    let options = Options { alert, ground: evidence.to_path_buf().into(), data: data.to_path_buf(), budget, minds };
    let (_stopper, mut stop) = Stop::by_hand();
    process::run(async { embedded::investigate(options, &mut Nobody, &mut stop).await })
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())
}
