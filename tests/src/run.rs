//! Runs investigations in this process, each in a temporary data folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use casebook_cli::embedded::{self, NoObserver, Options, Sources};
use casebook_cli::failure::Failure;
use casebook_cli::reasoners::Reasoners;
use casebook_cli::stop::Stop;
use casebook_expert::team::TeamFolder;
use casebook_protocol::{Alert, Budget, Report};
use casebook_runtime::process;

use crate::{Result, nats, programs};

/// The path of one of our programs, built with the profile of the test.
pub fn program(name: &str) -> PathBuf {
    programs::folder().join(name)
}

/// `casebook cluster` on a free port, with an installed NATS server or one from pip.
pub fn cluster() -> Result<Command> {
    let mut command = Command::new(program("casebook"));
    command.args(["cluster", "--port", "0", "--nats-server"]).arg(nats::program()?).stdin(Stdio::null());
    for name in ["CASEBOOK_MODELS", "CASEBOOK_NATS", "CASEBOOK_TEAM"] {
        command.env_remove(name);
    }
    Ok(command)
}

pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod")
}

/// The cases in `root`, which may be a case itself, by name. Fails if there are none.
pub fn cases(root: &Path) -> Result<Vec<PathBuf>> {
    let advice = "a case is a folder with alert.json and evidence/";
    let unreadable = |e| Failure::usage(format!("cannot read {}: {e}", root.display()), advice);
    let below = std::fs::read_dir(root).map_err(unreadable)?.flatten().map(|entry| entry.path());
    let is_case = |path: &PathBuf| path.join("alert.json").is_file() && path.join("evidence").is_dir();
    let mut cases: Vec<PathBuf> = below.chain([root.to_path_buf()]).filter(is_case).collect();
    cases.sort();
    if cases.is_empty() {
        return Err(Failure::usage(format!("no case in {}", root.display()), advice).into());
    }
    Ok(cases)
}

/// The options to investigate a case; reads only the alert, the evidence and the team folder.
pub fn options(case: &Path, data: &Path, budget: Budget, reasoners: Reasoners) -> Result<Options> {
    prepared(&case.join("alert.json"), &case.join("evidence"), data, budget, reasoners)
}

fn prepared(alert: &Path, evidence: &Path, data: &Path, budget: Budget, reasoners: Reasoners) -> Result<Options> {
    let refused = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", alert.display()), "correct the alert");
    let bytes = std::fs::read(alert).map_err(|e| refused(&e))?;
    let alert = Alert::parse(&bytes).map_err(|e| refused(&e))?;
    let sources = Sources { evidence: Some(evidence.to_path_buf()), team: team(evidence)?, rule_set: None };
    Ok(Options { alert, sources, data: data.to_path_buf(), budget, reasoners })
}

/// The team folder of a case is beside its evidence.
pub fn team(evidence: &Path) -> Result<Option<Arc<TeamFolder>>> {
    let folder = evidence.with_file_name("team");
    Ok(folder.is_dir().then(|| TeamFolder::read(&folder).map(Arc::new)).transpose()?)
}

/// The options of the command line for the evidence and the team folder of a case.
pub fn with_evidence(command: &mut Command, case: &Path) {
    command.arg("--evidence").arg(case.join("evidence"));
    if case.join("team").is_dir() {
        command.arg("--team").arg(case.join("team"));
    }
}

pub fn investigate_case(case: &Path) -> Result<Report> {
    investigate(&case.join("alert.json"), &case.join("evidence"))
}

pub fn investigate(alert: &Path, evidence: &Path) -> Result<Report> {
    investigate_in(alert, evidence, tempfile::tempdir()?.path())
}

/// Like [`investigate`], in the data folder `data`.
pub fn investigate_in(alert: &Path, evidence: &Path, data: &Path) -> Result<Report> {
    investigate_with(alert, evidence, data, Budget::default(), Reasoners::analyst())
}

/// Like [`investigate_in`], with other limits and reasoners.
pub fn investigate_with(
    alert: &Path,
    evidence: &Path,
    data: &Path,
    budget: Budget,
    reasoners: Reasoners,
) -> Result<Report> {
    ended(prepared(alert, evidence, data, budget, reasoners)?)
}

/// Like [`investigate_in`], over these sources.
pub fn investigate_by(sources: Sources, alert: Alert, data: &Path) -> Result<Report> {
    let (data, reasoners) = (data.to_path_buf(), Reasoners::analyst());
    ended(Options { alert, sources, data, budget: Budget::default(), reasoners })
}

fn ended(options: Options) -> Result<Report> {
    let (_stopper, mut stop) = Stop::by_hand();
    Ok(process::run(async { embedded::investigate(options, &mut NoObserver, &mut stop).await })??)
}

pub fn no_task_failed(report: &Report) -> Result<()> {
    match report.usage.tasks.iter().find_map(|task| Some((&task.task, task.failed.as_ref()?))) {
        Some((task, why)) => Err(format!("task {task} failed: {why}").into()),
        None => Ok(()),
    }
}

/// True if `program` is on the path. Without it the test is skipped, with a message; in CI (`CI=true`) that is an error.
///
/// # Panics
/// If it is missing in CI.
#[must_use]
pub fn has(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let why = format!("{program} is not installed; apt-get install {package}");
    assert!(found || std::env::var_os("CI").is_none(), "{why}");
    if !found {
        eprintln!("skipped: {why}");
    }
    found
}
