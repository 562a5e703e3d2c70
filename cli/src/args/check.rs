use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook check team/ --models models.toml
  casebook check team/ --evidence logs/
  casebook check mcp.json tools.yaml experts/cloud.yaml
  casebook check --schema expert > expert.schema.json

A team folder holds experts/*.yaml, mcp.json, tools.yaml, pins.json, sources.toml, formats.toml and rules/
(docs/experts.md).
References between its files are checked as well. No server is started or contacted. Exit code 0: no faults,
but maybe notices; 2: faults found.")]
pub struct Check {
    /// Team folders and files to check: an Expert's YAML, mcp.json, tools.yaml, sources.toml, formats.toml, a models
    /// file, the profile of an Expert process, or the settings of a process (hub.toml, director.toml, critic.toml, expert.toml)
    /// [env: CASEBOOK_TEAM]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The models file that must define the models of the Experts [env: CASEBOOK_MODELS]
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Also compare sources.toml and formats.toml with the log files in this folder
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of a format, for use in editors
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["paths", "models", "evidence", "json"])]
    pub schema: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An Expert: experts/*.yaml
    Expert,
    /// The permissions of MCP servers: tools.yaml
    Tools,
    /// The MCP servers: mcp.json
    Mcp,
    /// The models file
    Models,
    /// The profile of an Expert process
    Profile,
    /// What wrote the evidence: sources.toml
    Sources,
    /// Line formats of your own: formats.toml
    Formats,
}

impl Format {
    /// The value of `--schema`, and the beginning of the file name in docs/schemas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expert => "expert",
            Self::Tools => "tools",
            Self::Mcp => "mcp",
            Self::Models => "models",
            Self::Profile => "profile",
            Self::Sources => "sources",
            Self::Formats => "formats",
        }
    }
}
