//! What we allow of the user's servers, and what we hold them to: `tools.yaml`, a file of our own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::pattern::Pattern;
use crate::document::{self, Document};
use crate::fault::{ConfigFault, one_a_key};

mod raw;
mod read;
#[cfg(test)]
mod tests;

/// What stands in `tools.yaml`.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// For each server by name, what was said of it.
    pub servers: BTreeMap<String, ServerPolicy>,
}

/// What is behind a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Anybody's.
    #[default]
    General,
    /// `casebook evidence`: its tools go by their own names, are repeatable and only read, and their
    /// results are records with file, line and time.
    Evidence,
}

/// Where a secret is, never the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In an environment variable of ours.
    Env(String),
    /// In a file, whose last line end does not count.
    File(PathBuf),
}

/// What is said of one server; [`ServerPolicy::default`] where nothing is.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerPolicy {
    /// The line at which it begins, from 1; 0 where nothing is said.
    pub line: usize,
    /// What is behind it.
    pub kind: Kind,
    /// What data it gives, in words, for Experts and Critic.
    pub about: String,
    /// Tools of which we know that they only read, whatever the server says of them.
    pub read_only: Vec<Pattern>,
    /// Tools that may change something and are allowed to.
    pub writes: Vec<Pattern>,
    /// Tools whose answer to the same question is the same, so that a citation is checked by asking
    /// again (rule 3.2).
    pub repeatable: Vec<Pattern>,
    /// Calls at once.
    pub concurrency: usize,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long the server may take to begin.
    pub start_timeout: Duration,
    /// Names of variables of our environment that a child process gets, too.
    pub environment: Vec<String>,
    /// Secrets for a child's environment, by name of the variable there.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Secrets for the headers of requests, by name of the header.
    pub headers: BTreeMap<String, SecretSource>,
    /// Arguments that are fixed, for the tools that a pattern stands for: no caller chooses or sees them.
    pub scope: Vec<(Pattern, Map<String, Value>)>,
    /// What wrote the data; the server's name where it is not said. Servers of one sensor are not
    /// independent of each other (rule 3.3).
    pub sensor: Option<String>,
    /// Whoever holds the alert's subject could have written what it returns, so that no dismissal can
    /// rest on it (rule 3.5). True unless it is denied.
    pub on_subject_host: bool,
}

impl Default for ServerPolicy {
    fn default() -> Self {
        Self {
            line: 0,
            kind: Kind::General,
            about: String::new(),
            read_only: Vec::new(),
            writes: Vec::new(),
            repeatable: Vec::new(),
            concurrency: 4,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(30),
            environment: Vec::new(),
            secrets: BTreeMap::new(),
            headers: BTreeMap::new(),
            scope: Vec::new(),
            sensor: None,
            on_subject_host: true,
        }
    }
}

impl Policy {
    /// The policy in `text`, the content of `file`. Files that it names are relative to its folder.
    ///
    /// # Errors
    /// All faults that there are.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Vec<ConfigFault>> {
        let document = Document::yaml(file, text)?;
        let (written, mut faults) = document.shape::<raw::File>(&[]);
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut servers = BTreeMap::new();
        for (name, server) in written.and_then(|file| file.servers).unwrap_or_default() {
            let mut reader = read::Reader::new(&document, folder, &name);
            let policy = reader.policy(&server.unwrap_or_default());
            faults.extend(reader.faults);
            servers.insert(name, policy);
        }
        if faults.is_empty() { Ok(Self { servers }) } else { Err(one_a_key(faults)) }
    }

    /// What is said of `server`.
    #[must_use]
    pub fn of(&self, server: &str) -> ServerPolicy {
        self.servers.get(server).cloned().unwrap_or_default()
    }

    /// The JSON Schema of the file.
    #[must_use]
    pub fn schema() -> Value {
        document::schema::<raw::File>()
    }
}
