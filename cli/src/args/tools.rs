//! `casebook tools`

use std::path::PathBuf;

use clap::Args;

/// `casebook tools`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook tools --team team/
  casebook tools --team team/ --confirm github
  casebook tools --team team/ --confirm github/search_code --verbose

It starts each server of the team folder's mcp.json, lists what it has, and ends it again. A tool is pinned as
it is when its server is first seen; one that changed or joined since is held back until it is confirmed.
Ends with 1 when a server is not there.")]
pub struct ShowTools {
    /// The team folder [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
    /// Trust a server's tools, or one tool, as they are now
    #[arg(long, value_name = "SERVER[/TOOL]")]
    pub confirm: Vec<String>,
    /// Show each tool's description and schema, as callers see them
    #[arg(long, short)]
    pub verbose: bool,
    /// Print all of it as JSON
    #[arg(long)]
    pub json: bool,
}
