use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::EvidenceArgs;
use crate::nats::Nats;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook backtest 3f2a --models models.toml --model critic=small
  casebook backtest 3f2a --models models.toml --prompts my-prompts/ --from-round 2
  casebook backtest 3f2a

Without a models file, the built-in analyst runs the investigation again. The recorded investigation is not
changed, and the new run is not stored; --json writes it to a file.")]
pub struct Backtest {
    /// The id of the investigation, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Assign a model of the file (or `analyst`) to every role, or to one: director, expert, critic
    #[arg(long = "model", value_name = "[ROLE=]NAME")]
    pub model: Vec<String>,
    /// Keep the rounds before this one as they were
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub from_round: u32,
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// A folder with other prompts: plan.md, investigate.md, review.md, timeline.md, decide.md, report.md
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
    /// Write both reports and their differences as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Show each step: questions, findings, scores and the first tool calls of a task; twice, every call
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook doctor --models models.toml
  casebook doctor --models models.toml small --trials 5
  casebook doctor --nats nats://127.0.0.1:4222 --credentials .casebook/cluster/users/hub

With --nats, it checks whether a team's server stores messages, and tries models only if you name them.
Each model performs all six tasks over a small built-in log. This takes a few dozen model calls, which your
provider may charge.")]
pub struct Doctor {
    /// The models to try, by their names in the models file [default: all]
    #[arg(value_name = "MODEL")]
    pub names: Vec<String>,
    /// The models file [env: CASEBOOK_MODELS]
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// How often to try each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub trials: u32,
    #[command(flatten)]
    pub nats: Nats,
}
