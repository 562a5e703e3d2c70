//! A team on this machine, each member a process of its own: a NATS server, a Hub, a Director, a Critic
//! and the Experts. [`plan`] says who there is, [`users`] who may do what, [`keeper`] keeps them running,
//! [`board`] shows how they are.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use casebook_runtime::broker::{self, BrokerError, Places, Server};

use crate::failure::Failure;

pub mod board;
pub mod keeper;
pub mod plan;
pub mod users;

/// What a team keeps where.
#[derive(Debug)]
pub struct Place {
    /// The folder of it all.
    pub folder: PathBuf,
    /// Held for as long as the team runs: two on one folder would destroy each other's store.
    _lock: File,
}

impl Place {
    /// The folder of a team in the data folder `data`, made where it is missing.
    ///
    /// # Errors
    /// It cannot be written, or another team runs in it.
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
                format!("a team runs in {} already", folder.display()),
                "stop it first, or give this one a folder of its own with --data DIR",
            )),
            Err(TryLockError::Error(error)) => Err(Failure::write(&path, &error)),
        }
    }

    /// Whether a team was started in the data folder `data`.
    #[must_use]
    pub fn is_in(data: &Path) -> bool {
        data.join("cluster").join("lock").exists()
    }

    /// The credentials of the user who may read what a team in `data` keeps.
    #[must_use]
    pub fn reader(data: &Path) -> PathBuf {
        data.join("cluster").join("users").join("reader")
    }

    /// Where the server keeps its store and its log.
    #[must_use]
    pub fn nats(&self) -> PathBuf {
        self.folder.join("nats")
    }

    /// The log of the process `name`.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{name}.log"))
    }

    /// The file that says who `user` is.
    #[must_use]
    pub fn user(&self, user: &str) -> PathBuf {
        self.folder.join("users").join(user)
    }

    /// The profile of the Experts of `domain`.
    #[must_use]
    pub fn profile(&self, domain: &str) -> PathBuf {
        self.folder.join("experts").join(format!("{domain}.toml"))
    }
}

/// A server that can be run; looks for it where blocking is allowed, since it may have to be installed.
///
/// # Errors
/// There is none and none can be installed.
pub async fn server() -> Result<Server, Failure> {
    let found = tokio::task::spawn_blocking(|| Places::of_environment().find()).await.map_err(Failure::defect)?;
    found.map_err(|error| {
        Failure::failed(error, "a team of processes talks through a NATS server; `casebook investigate` needs none")
    })
}

/// What a failure of the server is to a person.
pub(crate) fn broker_failure(error: &BrokerError) -> Failure {
    let advice = match error {
        BrokerError::Ended { log, .. } if log.contains("address already in use") => {
            "another program listens there: choose another port with --port N; 0 takes a free one. Where it is the server \
             of a team that was killed, `casebook cluster` with that team's --data takes its place"
        }
        BrokerError::Ended { .. } | BrokerError::Silent { .. } => "its log says more",
        BrokerError::Io { .. } => "choose a folder that you may write to with --data DIR",
    };
    Failure::failed(error, advice)
}

/// Ends what a team left over in this place because it was killed.
pub async fn clear(place: &Place) {
    let folder = place.nats();
    // A panic in it would have ended the process.
    let _ = tokio::task::spawn_blocking(move || broker::end_left_over(&folder)).await;
}
