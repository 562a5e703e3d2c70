//! Builds our programs if they are missing or older than their sources.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

const ALL: [&str; 7] = [
    "casebook",
    "casebook-api",
    "casebook-hub",
    "casebook-director",
    "casebook-critic",
    "casebook-expert",
    "scripted-model",
];

/// The folder with the programs. Panics if they cannot be built.
pub(crate) fn folder() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(find)
}

fn find() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    // A test is in target/<profile>/deps, a program in the folder above.
    let folder = here.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).unwrap_or(&here);
    let oldest = ALL.iter().map(|name| changed(&folder.join(name))).min().flatten();
    let built_here = folder.parent().is_some_and(|target| target.ends_with("target"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if oldest.is_none() || (built_here && oldest < newest(&root)) {
        build(&root, folder);
    }
    folder.to_path_buf()
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|found| found.modified()).ok()
}

/// The latest change of a source file outside tests.
fn newest(root: &Path) -> Option<SystemTime> {
    let mut open = vec![root.to_path_buf()];
    let mut newest = None;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let aside = name.starts_with('.') || ["target", "tests", "docs", "deploy"].contains(&name.as_str());
            if !path.is_dir() {
                newest = newest.max(changed(&path));
            } else if !aside {
                open.push(path);
            }
        }
    }
    newest
}

fn build(root: &Path, folder: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Builds the whole workspace, because single packages would rebuild libraries with other features.
    cargo.args(["build", "--locked", "--workspace", "--bins"]);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    // Cargo describes the package under test to a test. A build script that reads these variables, such as that of
    // `ring`, would run again, and everything above it would be compiled again.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            cargo.env_remove(name);
        }
    }
    let built = cargo.current_dir(root).status();
    assert!(built.is_ok_and(|status| status.success()), "our programs cannot be built");
}
