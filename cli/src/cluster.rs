//! A team on this machine: a NATS server, a Hub, a Director, a Critic and Experts, each as its own process.
//! [`plan`] lists the processes, [`users`] their permissions, and [`team`] starts and stops them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

pub mod plan;
pub mod process;
pub mod server;
pub mod team;
pub mod users;

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
            std::fs::create_dir_all(&inner).map_err(|e| Failure::write(&inner, &e))?;
        }
        let folder = folder.canonicalize().map_err(|e| Failure::write(&folder, &e))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(|e| Failure::write(&path, &e))?;
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

    pub(crate) fn profile(&self, domain: &str) -> PathBuf {
        self.folder.join("experts").join(format!("{domain}.toml"))
    }
}
