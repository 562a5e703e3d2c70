//! What a person may type to serve tools over MCP.

use std::net::SocketAddr;
use std::path::PathBuf;

use casebook_protocol::Domain;
use clap::Args;

use crate::nats::Nats;
use casebook_hub::program::Limits;

/// `casebook evidence`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook evidence logs/
  casebook evidence logs/ --domain identity --domain network
  casebook evidence logs/ --http 127.0.0.1:0

Serves the read-only tools that Experts use over a folder of logs to any MCP client, over standard input and
output until the input ends. docs/mcp.md shows how to add it to a client.")]
pub struct Evidence {
    /// The folder with the log files
    #[arg(value_name = "DIR")]
    pub evidence: PathBuf,
    /// Show only the sources of this domain; may be given several times
    #[arg(long = "domain", value_name = "NAME")]
    pub domains: Vec<Domain>,
    /// Serve over HTTP at this address of the loopback instead; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
}

/// `casebook mcp`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook mcp --evidence logs/
  casebook mcp --evidence logs/ --models models.toml --http 127.0.0.1:8700
  casebook mcp --nats nats://127.0.0.1:4222

Serves Casebook itself to any MCP client: it can open an investigation, read its Timeline, Review, Journal,
report and evidence, and search past investigations. Evidence and models are those named here, never those
of a client. With --nats, investigations are opened and read of a team of processes. docs/mcp.md shows how
to add it to a client.")]
pub struct Mcp {
    /// The folder with the log files that alerts are investigated over
    #[arg(long, value_name = "DIR", conflicts_with = "nats")]
    pub evidence: Option<PathBuf>,
    /// The team folder: Experts, MCP servers and what they may do (docs/experts.md) [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR", conflicts_with = "nats")]
    pub team: Option<PathBuf>,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst plays every role
    #[arg(long, value_name = "FILE", conflicts_with = "nats")]
    pub models: Option<PathBuf>,
    /// Serve over HTTP at this address of the loopback instead; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// What each investigation may cost.
    #[command(flatten)]
    pub budget: Limits,
    /// With --nats: who we are when we send alerts, where --credentials names a user who may only read
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub publisher_credentials: Option<PathBuf>,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}
