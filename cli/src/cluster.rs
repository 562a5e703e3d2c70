//! A team on this machine: a NATS server, a Hub, a Director, a Critic and Experts, each as its own process.
//! [`plan`] lists the processes, [`users`] their permissions, and [`team`] starts and stops them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use casebook_runtime::files;
use rustix::fs::Mode;
use rustix::process::umask;

use crate::failure::Failure;

pub(crate) mod again;
pub mod plan;
pub mod process;
pub mod server;
pub mod team;
pub mod users;

/// While it exists, new files of this process and of those that it starts are private.
#[derive(Debug)]
pub struct Private(Mode);

impl Private {
    #[must_use]
    pub fn begin() -> Self {
        Self(umask(Mode::from_raw_mode(0o077)))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        umask(self.0);
    }
}

#[derive(Debug)]
pub struct Place {
    pub folder: PathBuf,
    /// Held while the team runs: two teams in one folder would destroy each other's store.
    _lock: File,
}

impl Place {
    /// The folder `cluster` in the data folder, created if it is missing.
    pub fn open(data: &Path) -> Result<Self, Failure> {
        let folder = data.join("cluster");
        for inner in ["nats", "logs", "experts"] {
            let inner = folder.join(inner);
            files::private_folder(&inner).map_err(|e| Failure::write(&inner, &e))?;
        }
        files::tighten(&folder).map_err(|e| Failure::write(&folder, &e))?;
        let folder = folder.canonicalize().map_err(|e| Failure::write(&folder, &e))?;
        let path = folder.join("lock");
        let lock = files::private_file(&path).map_err(|e| Failure::write(&path, &e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Failure::failed(
                format!("a team already runs in {}", folder.display()),
                "stop it first, or choose another folder with --data DIR",
            )),
            Err(TryLockError::Error(error)) => Err(Failure::write(&path, &error)),
        }
    }

    pub(crate) fn user(&self, user: &str) -> PathBuf {
        self.folder.join("users").join(user)
    }

    pub(crate) fn mac_key(&self) -> PathBuf {
        self.folder.join("mac.key")
    }

    /// The folder of the process that serves the pages.
    pub(crate) fn api(&self) -> PathBuf {
        self.folder.join("api")
    }

    /// The key that opens the pages.
    pub(crate) fn access_key(&self) -> PathBuf {
        self.folder.join("access.key")
    }

    pub(crate) fn profile(&self, domain: &str) -> PathBuf {
        self.folder.join("experts").join(format!("{domain}.toml"))
    }
}
