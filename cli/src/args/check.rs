//! What a person may type to check configuration files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `casebook check`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook check team/ --models models.toml
  casebook check mcp.json tools.yaml experts/cloud.yaml
  casebook check --schema expert > expert.schema.json

A team folder holds experts/*.yaml, mcp.json, tools.yaml and pins.json (docs/experts.md), and is checked across
its files, too. Nothing is started and no server is asked. Exit code 0: all of it holds; 2: there are faults.")]
pub struct Check {
    /// Team folders and files: an Expert's YAML, mcp.json, tools.yaml, a models file, an Expert process' profile,
    /// the settings of a process (hub.toml, director.toml, critic.toml, expert.toml) [env: CASEBOOK_TEAM]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The models file, to which the models of Experts are held [env: CASEBOOK_MODELS]
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of a format, for editors
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["paths", "models", "json"])]
    pub schema: Option<Format>,
}

/// A format of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An Expert: experts/*.yaml
    Expert,
    /// What is allowed of MCP servers: tools.yaml
    Tools,
    /// The MCP servers: mcp.json
    Mcp,
    /// The models file
    Models,
    /// The profile of an Expert that is a process of its own
    Profile,
}

impl Format {
    /// Its name, as `--schema` takes it and as its file under docs/schemas begins.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expert => "expert",
            Self::Tools => "tools",
            Self::Mcp => "mcp",
            Self::Models => "models",
            Self::Profile => "profile",
        }
    }
}
