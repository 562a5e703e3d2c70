use std::path::PathBuf;

use clap::Args;

use casebook_hub::program::Limits;

use super::EvidenceArgs;
use crate::nats::Nats;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook cluster --evidence logs/
  casebook cluster alert.json --evidence logs/ --out report/

Starts a NATS server, a Hub, a Director, a Critic, and an Expert for each domain of the evidence, but at least
three. Each process has its own user and password on the server, with the permissions of its role. With an
alert, it investigates the alert and stops. Ctrl-C finishes running tasks and stops all processes. If a process
ends by itself, the command stops the others and fails; run it again to continue.")]
pub struct Cluster {
    /// The file with an alert, or `-` for standard input: investigate it, then stop the team
    #[arg(value_name = "ALERT")]
    pub alert: Option<PathBuf>,
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// The folder for report.json, report.md and report.html
    #[arg(long, value_name = "DIR", requires = "alert")]
    pub out: Option<PathBuf>,
    /// The loopback port of the NATS server; 0 chooses a free port
    #[arg(long, value_name = "N", default_value_t = 4222)]
    pub port: u16,
    /// The nats-server program; a plain name is searched in the PATH
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_SERVER", default_value = "nats-server")]
    pub nats_server: PathBuf,
    /// While the team runs, show the pages at this port of 127.0.0.1, 7420 unless set; 0 chooses a free port
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "7420")]
    pub serve: Option<u16>,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst plays every role
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub budget: Limits,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook alert alert.json --nats nats://127.0.0.1:4222
  jq -c '.alerts[0]' siem.json | casebook alert - --nats nats://127.0.0.1:4222

Prints only the id of the investigation on standard output. The same alert always gets the same investigation.
If no Hub is running, the alert waits on the server. Other NATS clients can send alerts as well: see
docs/nats.md.")]
pub struct SendAlert {
    /// The file with the alert, or `-` for standard input
    #[arg(value_name = "ALERT")]
    pub alert: PathBuf,
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
pub struct Watch {
    /// The id of the investigation, or its beginning; shows it from start to end. Without it, shows all
    /// investigations from now on
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Print the events as JSON, one per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub nats: Nats,
}
