//! Finds a NATS server that can be built on, and installs one where there is none.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::nats;

use super::install::{self, InstallError, PINNED};

/// The environment variable that names a server to use.
pub const SERVER_ENV: &str = "CASEBOOK_NATS_SERVER";
/// The environment variable that names the folder in which an installed server is kept.
pub const CACHE_ENV: &str = "CASEBOOK_CACHE";
/// The oldest server that is run.
pub const OLDEST: Version = {
    let (major, minor, patch) = nats::OLDEST_SERVER;
    Version(major, minor, patch)
};

/// The version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl From<(u32, u32, u32)> for Version {
    fn from((major, minor, patch): (u32, u32, u32)) -> Self {
        Self(major, minor, patch)
    }
}

impl Version {
    /// The version in what a server says of itself, such as `nats-server: v2.15.1`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (_, version) = text.trim().rsplit_once([' ', '\t']).unwrap_or(("", text.trim()));
        nats::version(version).map(Self::from)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A server that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The program.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
    /// What was passed over and what was installed, a line each.
    pub notes: Vec<String>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The one that was named cannot be used.
    #[error(
        "{SERVER_ENV} names {}, which {reason}; name a nats-server of version {OLDEST} or newer",
        program.display()
    )]
    Named {
        /// The program.
        program: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// There is none, and none can be installed.
    #[error(
        "there is no nats-server of version {OLDEST} or newer{}: {source}; install one, or name one with {SERVER_ENV}",
        passed_over(notes)
    )]
    None {
        /// What was passed over.
        notes: Vec<String>,
        /// Why none could be installed.
        source: InstallError,
    },
}

fn passed_over(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// A server that was named: this one or none.
    pub named: Option<PathBuf>,
    /// Folders to look in, as in `PATH`.
    pub path: Option<OsString>,
    /// Where an installed server is kept.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// What the environment says.
    #[must_use]
    pub fn of_environment() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = set(CACHE_ENV).map(PathBuf::from).or_else(|| {
            let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
            Some(set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?.join("casebook"))
        });
        Self { named: set(SERVER_ENV).map(PathBuf::from), path: set("PATH"), cache }
    }

    /// A server that can be run: the one that was named, else one in `path`, else the one in the cache,
    /// which is installed where it is missing. Blocks, for long where it installs.
    ///
    /// # Errors
    /// [`FindError`] says what is wrong with the one that was named, or why none could be installed.
    pub fn find(&self) -> Result<Server, FindError> {
        if let Some(program) = &self.named {
            let wrong = |reason| FindError::Named { program: program.clone(), reason };
            return good(program).map(|version| server(program, version, Vec::new())).map_err(wrong);
        }
        let mut notes = Vec::new();
        for folder in self.path.iter().flat_map(std::env::split_paths) {
            let program = folder.join("nats-server");
            if !program.is_file() {
                continue;
            }
            match good(&program) {
                Ok(version) => return Ok(server(&program, version, notes)),
                Err(reason) => notes.push(format!("{} {reason}", program.display())),
            }
        }
        match self.cached(&mut notes) {
            Ok((program, version)) => Ok(server(&program, version, notes)),
            Err(source) => Err(FindError::None { notes, source }),
        }
    }

    fn cached(&self, notes: &mut Vec<String>) -> Result<(PathBuf, Version), InstallError> {
        let cache = self.cache.as_deref().ok_or(InstallError::NoCache)?;
        let program = install::place(cache);
        if let Ok(version) = good(&program) {
            return Ok((program, version));
        }
        let program = install::install(cache)?;
        notes.push(format!("installed nats-server {PINNED} as {}", program.display()));
        match good(&program) {
            Ok(version) => Ok((program, version)),
            Err(reason) => Err(InstallError::Unusable { program, reason }),
        }
    }
}

fn server(program: &Path, version: Version, notes: Vec<String>) -> Server {
    Server { program: program.to_path_buf(), version, notes }
}

/// The version of a server that can be built on; else why it cannot.
pub(super) fn good(program: &Path) -> Result<Version, String> {
    let said = said(program).map_err(|error| format!("cannot be run ({error})"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    match Version::read(&said) {
        None => Err("does not say that it is a nats-server".to_owned()),
        Some(version) if version < OLDEST => Err(format!("is of version {version}, older than {OLDEST}")),
        Some(version) => Ok(version),
    }
}

/// What a program says of its version. One that was written a moment ago may still be open in a child
/// that another thread is starting.
fn said(program: &Path) -> io::Result<Output> {
    let mut tries = 0;
    loop {
        match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 100 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            said => return said,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that says this of its version.
    fn program(folder: &Path, says: &str) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let program = folder.join("nats-server");
        std::fs::write(&program, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn versions_are_read_and_compared() {
        let check = |text: &str, expect: Option<Version>| assert_eq!(Version::read(text), expect, "{text}");
        check("nats-server: v2.15.1\n", Some(Version(2, 15, 1)));
        check("nats-server: v2.11.0-RC.4", Some(Version(2, 11, 0)));
        check("2.10.26", Some(Version(2, 10, 26)));
        check("nats-server: 2.9", None);
        check("", None);
        assert!(Version(2, 9, 10) < OLDEST && Version(2, 10, 26) >= OLDEST && Version(3, 0, 0) > OLDEST);
    }

    #[test]
    fn the_one_that_was_named_is_used_or_refused_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let old = program(folder.path(), "nats-server: v2.9.10");
        let named = |program: PathBuf| Places { named: Some(program), ..Places::default() }.find();
        let error = named(old.clone()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "CASEBOOK_NATS_SERVER names {}, which is of version 2.9.10, older than 2.10.26; \
                 name a nats-server of version 2.10.26 or newer",
                old.display()
            )
        );
        let error = named(folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("cannot be run"), "{error}");
    }

    #[test]
    fn an_old_one_in_the_path_is_passed_over_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let passed = program(&old, "nats-server: v2.9.10");
        let taken = program(&new, "nats-server: v2.11.4");
        let path = std::env::join_paths([old, folder.path().join("empty"), new]).unwrap();
        let server = Places { path: Some(path), ..Places::default() }.find().unwrap();
        assert_eq!((server.program, server.version), (taken, Version(2, 11, 4)));
        assert_eq!(server.notes, [format!("{} is of version 2.9.10, older than 2.10.26", passed.display())]);
    }

    #[test]
    fn where_there_is_none_it_says_what_to_do() {
        let error = Places::default().find().unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no nats-server of version 2.10.26 or newer: there is no folder to install it in (HOME is not \
             set): set CASEBOOK_CACHE; install one, or name one with CASEBOOK_NATS_SERVER"
        );
    }
}
