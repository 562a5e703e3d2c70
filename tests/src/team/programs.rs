//! The programs of a team, built where they are missing or older than what they are made from.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use super::Part;

/// The crates that the programs are made from.
const CRATES: [&str; 6] = ["protocol", "agent", "hub", "director", "critic", "expert"];

/// The folder with the programs.
///
/// # Errors
/// They cannot be built.
pub(super) fn folder() -> Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|e| e.to_string())?;
    let beside = here.parent().ok_or("this program lies nowhere")?;
    // A test lies in target/<profile>/deps, a program in the folder above it.
    let folder = if beside.ends_with("deps") { beside.parent().unwrap_or(beside) } else { beside };
    let programs = Part::ALL.map(|part| folder.join(format!("casebook-{}", part.name())));
    let oldest = programs.iter().map(|program| changed(program)).min().flatten();
    let built_here = folder.parent().is_some_and(|target| target.ends_with("target"));
    if oldest.is_none() || (built_here && oldest < newest(&root())) {
        build(folder)?;
    }
    Ok(folder.to_path_buf())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|found| found.modified()).ok()
}

/// When a source file of the programs was changed last; none where the sources are not here.
fn newest(root: &Path) -> Option<SystemTime> {
    let mut open: Vec<PathBuf> = CRATES.iter().map(|name| root.join(name).join("src")).collect();
    let mut newest = None;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                newest = newest.max(changed(&path));
            }
        }
    }
    newest
}

fn build(folder: &Path) -> Result<(), String> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    // The workspace, as its tests were built: some packages alone would have their libraries built anew.
    cargo.args(["build", "--locked", "--workspace", "--bins"]);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(root()).status().map_err(|e| e.to_string())?;
    if built.success() { Ok(()) } else { Err("the programs of the team cannot be built".to_owned()) }
}
