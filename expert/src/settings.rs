use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Profile to read: a file with evidence and index, team, domains; may be given several times
    #[arg(long, value_name = "FILE")]
    pub profile: Vec<PathBuf>,
    #[command(flatten)]
    pub role: casebook_agent::service::RoleOptions,
}
