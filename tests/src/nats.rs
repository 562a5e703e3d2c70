//! A real NATS server for a test, found or installed, in a folder of its own.

use std::path::{Path, PathBuf};

use casebook_agent::broker::{Broker, Options, Places};
use casebook_agent::nats;

/// A NATS server that ends with this value.
pub struct Nats {
    /// The server.
    pub broker: Broker,
    folder: tempfile::TempDir,
}

impl Nats {
    /// Starts a server that asks nobody who they are.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn start() -> Result<Self, String> {
        Self::start_with(None)
    }

    /// Starts a server with a configuration of its own.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn start_with(config: Option<&str>) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let config = match config {
            None => None,
            Some(text) => {
                let path = folder.path().join("server.conf");
                std::fs::write(&path, text).map_err(|e| e.to_string())?;
                Some(path)
            }
        };
        let place = folder.path().join("nats");
        std::fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        let broker = Broker::start(Options { program: program()?, folder: place, config, port: 0 });
        Ok(Self { broker: broker.map_err(|e| e.to_string())?, folder })
    }

    /// How to reach it as `user`.
    #[must_use]
    pub fn options(&self, user: &str) -> nats::Options {
        nats::Options { url: self.broker.url(), user: user.to_owned(), ..nats::Options::default() }
    }

    /// A folder that is removed with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The server's program; says on standard error what it took to have one.
///
/// # Errors
/// Why there is none, and what to do.
pub fn program() -> Result<PathBuf, String> {
    let server = Places::of_environment().find().map_err(|e| e.to_string())?;
    for note in &server.notes {
        eprintln!("{note}");
    }
    Ok(server.program)
}
