use std::net::SocketAddr;
use std::path::PathBuf;

use casebook_protocol::Domain;
use clap::Args;

use crate::nats::Nats;
use casebook_hub::program::Limits;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook evidence logs/
  casebook evidence logs/ --team team/
  casebook evidence logs/ --domain identity --domain network
  casebook evidence logs/ --http 127.0.0.1:0

Serves the read-only evidence tools of the Experts over a folder of logs to any MCP client. Uses standard input
and output until the input ends. docs/mcp.md shows how to add it to a client.")]
pub struct Evidence {
    /// The folder with the log files
    #[arg(value_name = "DIR")]
    pub evidence: PathBuf,
    /// Show only the sources of this domain; may be given several times
    #[arg(long = "domain", value_name = "NAME")]
    pub domains: Vec<Domain>,
    /// The team folder whose sources.toml states what wrote the logs [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
    /// A folder with Sigma rules of your own (docs/rules.md); may be repeated
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    /// Serve over HTTP at this loopback address instead; port 0 chooses a free port
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook mcp --evidence logs/
  casebook mcp --evidence logs/ --models models.toml --http 127.0.0.1:8700
  casebook mcp --nats nats://127.0.0.1:4222

Serves Casebook itself to any MCP client. A client can open investigations, read their Timeline, Review, Journal,
report and evidence, and search past investigations. Evidence and models come from this command line, never
from a client. With --nats, a team of processes runs the investigations. docs/mcp.md shows how to add it to a
client.")]
pub struct Mcp {
    /// The folder with the log files to investigate
    #[arg(long, value_name = "DIR", conflicts_with = "nats")]
    pub evidence: Option<PathBuf>,
    /// The team folder: Experts, MCP servers and their permissions (docs/experts.md) [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR", conflicts_with = "nats")]
    pub team: Option<PathBuf>,
    /// A folder with Sigma rules of your own (docs/rules.md); may be repeated
    #[arg(long, value_name = "DIR", conflicts_with = "nats")]
    pub rules: Vec<PathBuf>,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst plays every role
    #[arg(long, value_name = "FILE", conflicts_with = "nats")]
    pub models: Option<PathBuf>,
    /// Serve over HTTP at this loopback address instead; port 0 chooses a free port
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    #[command(flatten)]
    pub budget: Limits,
    /// With --nats: the credentials for sending alerts, if --credentials names a user who can only read
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub publisher_credentials: Option<PathBuf>,
    #[command(flatten)]
    pub nats: Nats,
}
