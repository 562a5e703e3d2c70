//! A folder of cases as material: each is investigated by the built-in analyst first. Of a case only
//! its alert and its evidence are read.

use std::path::{Path, PathBuf};

use casebook_protocol::{Alert, Budget};

use crate::embedded::{self, Nobody, Options};
use crate::failure::Failure;
use crate::home::Home;
use crate::minds::Minds;
use crate::stop::Stop;

/// The folders below `root` that hold `alert.json` and `evidence/`, in order of name.
///
/// # Errors
/// It cannot be read, or there is none.
pub fn found(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let advice = "give the folder whose folders each hold alert.json and evidence/";
    let unreadable = |e: std::io::Error| Failure::usage(format!("cannot read {}: {e}", root.display()), advice);
    let mut cases: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join("alert.json").is_file() && path.join("evidence").is_dir() {
            cases.push(path);
        }
    }
    cases.sort();
    if cases.is_empty() {
        return Err(Failure::usage(format!("there is no case in {}", root.display()), advice));
    }
    Ok(cases)
}

/// Investigates every case into `home`.
///
/// # Errors
/// [`Failure`] names the case that failed.
pub async fn investigate(home: &Home, cases: &[PathBuf], stop: &mut Stop) -> Result<(), Failure> {
    for case in cases {
        let path = case.join("alert.json");
        let wrong = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()), "mend the alert");
        let bytes = std::fs::read(&path).map_err(|e| wrong(&e))?;
        let options = Options {
            alert: Alert::parse(&bytes).map_err(|e| wrong(&e))?,
            ground: case.join("evidence").into(),
            data: home.folder.clone(),
            budget: Budget::default(),
            minds: Minds::analyst(),
        };
        embedded::investigate_in(home, options, &mut Nobody, stop).await?;
    }
    Ok(())
}
