//! What a person may type to run a team of processes and to talk to one.

use std::path::PathBuf;

use clap::Args;

use casebook_hub::program::Limits;

use super::EvidenceArgs;
use crate::nats::Nats;

/// `casebook cluster`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook cluster --evidence logs/
  casebook cluster alert.json --evidence logs/ --out report/

It runs a NATS server, a Hub, a Director, a Critic, and an Expert for each domain of the evidence, at least
three. Each is a user of the server with a password of its own and may do what its role needs. With an
alert, it investigates that, and stops. Ctrl-C finishes what is under way and stops all processes. If one
ends by itself, the others are stopped and the command fails: the same command goes on from what is recorded.")]
pub struct Cluster {
    /// The file with an alert, or `-` for standard input: investigate it, then stop the team
    #[arg(value_name = "ALERT")]
    pub alert: Option<PathBuf>,
    /// What is investigated with.
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// Where report.json, report.md and report.html are written
    #[arg(long, value_name = "DIR", requires = "alert")]
    pub out: Option<PathBuf>,
    /// The port of the NATS server, on the loopback; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 4222)]
    pub port: u16,
    /// The program of the NATS server, looked for in the PATH
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_SERVER", default_value = "nats-server")]
    pub nats_server: PathBuf,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst plays every role
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// What an investigation may cost.
    #[command(flatten)]
    pub budget: Limits,
}

/// `casebook alert`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook alert alert.json --nats nats://127.0.0.1:4222
  jq -c '.alerts[0]' siem.json | casebook alert - --nats nats://127.0.0.1:4222

Prints the id of the investigation and nothing else on standard output. The same alert again is the same investigation. With no Hub there the
alert waits on the server. Any NATS client can do the same: docs/nats.md has the subjects.")]
pub struct SendAlert {
    /// The file with the alert, or `-` for standard input
    #[arg(value_name = "ALERT")]
    pub alert: PathBuf,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}

/// `casebook watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// Its id, or the beginning of it: shown from its beginning to its end. All of them from now on without
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Print the events as JSON, one a line
    #[arg(long)]
    pub json: bool,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}
