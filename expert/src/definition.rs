//! An Expert as configuration: a YAML file says what it knows, how it works and what it may call.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use casebook_agent::document;
use casebook_agent::fault::ConfigFault;
use casebook_agent::mcp::pattern::Pattern;
use casebook_agent::model::config::Limits;
use casebook_protocol::Domain;

mod folder;
mod raw;
mod read;
#[cfg(test)]
mod tests;

/// An Expert.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The file that says so; a preset's is its name in angle brackets.
    pub file: PathBuf,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its domain, by which the Director addresses it.
    pub name: Domain,
    /// What it knows and what it can look at: what the Director reads.
    pub description: String,
    /// What data it expects, for whoever sets it up.
    pub expects: String,
    /// What it is told beyond what every Expert is told.
    pub instructions: String,
    /// The model that plays it, by its name in the models file, or `analyst`.
    pub model: Option<String>,
    /// What it may call; nothing is implied.
    pub tools: Vec<Grant>,
    /// Which sources of the evidence its evidence tools show: their domains or ids. Its own domain's
    /// where the file does not say.
    pub sources: Vec<Pattern>,
    /// What one of its tasks may use; what is not set is left to the models file or is usual.
    pub limits: Limits,
}

/// Tools that an Expert may call, written `server/tool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The server; `evidence` is the folder of logs.
    pub server: Pattern,
    /// Its tools.
    pub tool: Pattern,
    /// The line that says so, from 1.
    pub line: usize,
}

impl Definition {
    /// The Expert in `text`, the content of `file`.
    ///
    /// # Errors
    /// All faults that there are.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Vec<ConfigFault>> {
        read::definition(file, text)
    }

    /// The JSON Schema of the file.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        document::schema::<raw::Expert>()
    }

    /// Its file grants it `tool` of `server`.
    #[must_use]
    pub fn grants(&self, server: &str, tool: &str) -> bool {
        self.tools.iter().any(|grant| grant.server.matches(server) && grant.tool.matches(tool))
    }
}

/// The Experts that the files in `dir` define (`*.yaml` and `*.yml`), in the order of the files' names.
///
/// # Errors
/// All faults of all files; two Experts of one name, and a folder with no such file, are faults, too.
pub fn read_folder(dir: &Path) -> Result<Vec<Definition>, Vec<ConfigFault>> {
    folder::read(dir)
}

/// The Experts in `dir` that hold, as [`read_folder`] finds them, and all faults of the others.
#[must_use]
pub fn read_each(dir: &Path) -> (Vec<Definition>, Vec<ConfigFault>) {
    folder::each(dir)
}

/// The Experts that come with Casebook, in the order of their names.
#[must_use]
pub fn presets() -> &'static [Definition] {
    static READ: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        let file = |name: &str| PathBuf::from(format!("<{name}>"));
        // Each holds: a test reads them all.
        PRESETS.iter().filter_map(|(name, text)| Definition::parse(&file(name), text).ok()).collect()
    });
    &READ
}

/// The preset of `domain`.
#[must_use]
pub fn preset(domain: &Domain) -> Option<&'static Definition> {
    presets().iter().find(|preset| preset.name == *domain)
}

/// The files of the Experts that come with Casebook, by name.
pub const PRESETS: [(&str, &str); 8] = [
    ("access", include_str!("../presets/access.yaml")),
    ("cloud", include_str!("../presets/cloud.yaml")),
    ("code", include_str!("../presets/code.yaml")),
    ("configuration", include_str!("../presets/configuration.yaml")),
    ("endpoint", include_str!("../presets/endpoint.yaml")),
    ("identity", include_str!("../presets/identity.yaml")),
    ("network", include_str!("../presets/network.yaml")),
    ("threat", include_str!("../presets/threat.yaml")),
];
