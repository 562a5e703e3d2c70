//! What a person may type to try models and prompts.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::EvidenceArgs;

/// `casebook backtest`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook backtest 3f2a --models models.toml --model critic=small
  casebook backtest 3f2a --models models.toml --prompts my-prompts/ --from-round 2
  casebook backtest 3f2a

The last one runs it again with the built-in analyst. What is recorded of the investigation is read
and never changed, and nothing of the new run is kept but what --json writes.")]
pub struct Backtest {
    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// The models file [env: CASEBOOK_MODELS]; without it, the built-in analyst
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Seat a model of the file (or `analyst`) in every role, or in one: director, expert, critic
    #[arg(long = "model", value_name = "[ROLE=]NAME")]
    pub model: Vec<String>,
    /// Keep the rounds before this one as they were
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub from_round: u32,
    /// With what it is run again, if that has moved.
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// Prompts to use instead: plan.md, investigate.md, review.md, timeline.md, decide.md, report.md
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
    /// Write both reports and what differs, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Show each step: questions, findings, scores and the first tool calls of a task; twice, every call
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
}

/// `casebook doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook doctor --models models.toml
  casebook doctor --models models.toml small --trials 5

Each model is given all six tasks over a small log of our own. That asks it a few dozen times, and
costs what it costs.")]
pub struct Doctor {
    /// The models to try, by their names in the models file; all of them without
    #[arg(value_name = "MODEL")]
    pub names: Vec<String>,
    /// The models file [env: CASEBOOK_MODELS]
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// So often each task is tried
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub trials: u32,
}
