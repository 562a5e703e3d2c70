use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook tools --team team/
  casebook tools --team team/ --confirm github
  casebook tools --team team/ --confirm github/search_code --verbose

Starts each server in mcp.json of the team folder, lists its tools, and stops it. Tools are pinned when their
server is first seen. A tool that changed or was added later is held back until you confirm it. Exit code 1: a
server is not available.")]
pub struct ShowTools {
    /// The team folder [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
    /// Trust all tools of a server, or one tool, in their current form
    #[arg(long, value_name = "SERVER[/TOOL]")]
    pub confirm: Vec<String>,
    /// Show the description and schema of each tool, as callers see them
    #[arg(long, short)]
    pub verbose: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}
