//! An Expert as configuration: a YAML file says what it knows, how it works and what it may call.

use std::path::{Path, PathBuf};

use casebook_agent::fault::ConfigFault;
use casebook_agent::mcp::pattern::Pattern;
use casebook_protocol::Domain;

/// An Expert.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The file that says so; a preset's is its name in angle brackets.
    pub file: PathBuf,
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
    /// What one of its tasks may use.
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

/// What one task of an Expert may use at the most; none: what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Turns.
    pub turns: Option<u32>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// Calls of a language model.
    pub model_calls: Option<u32>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Money, in millionths.
    pub cost_micros: Option<u64>,
    /// Seconds of work.
    pub seconds: Option<u64>,
}

impl Definition {
    /// It may call `tool` of `server`.
    #[must_use]
    pub fn grants(&self, server: &str, tool: &str) -> bool {
        self.tools.iter().any(|grant| grant.server.matches(server) && grant.tool.matches(tool))
    }

    /// The Expert in `text`, the content of `file`.
    ///
    /// # Errors
    /// All faults that there are.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Vec<ConfigFault>> {
        let _ = text;
        Err(vec![ConfigFault { file: file.to_path_buf(), line: 1, what: "is not read yet".into() }])
    }
}

/// The Experts that come with Casebook.
#[must_use]
pub fn presets() -> Vec<Definition> {
    Vec::new()
}

/// The preset of `domain`.
#[must_use]
pub fn preset(_domain: &Domain) -> Option<&'static Definition> {
    None
}

/// All Experts in the folder `dir`.
///
/// # Errors
/// All faults that there are.
pub fn read_folder(dir: &Path) -> Result<Vec<Definition>, Vec<ConfigFault>> {
    let _ = dir;
    Ok(Vec::new())
}
