//! What a person may type.

use std::path::PathBuf;

use casebook_hub::program::Limits;
use casebook_runtime::service::common::http;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::embedded::{self, Sources};
use crate::failure::Failure;

mod check;
mod mcp;
mod measure;
mod record;
mod rules;
mod serve;
mod team;
mod tools;

pub use check::{Check, Format};
pub use mcp::{Evidence, Mcp};
pub use measure::{Backtest, Doctor};
pub use record::{Export, Key, List, Show, Verify};
pub use rules::{CheckRules, ExplainRules, ListRules, RuleFolders, Rules, RulesCommand, TestRules};
pub use serve::Serve;
pub use team::{Cluster, SendAlert, Watch};
pub use tools::ShowTools;

const AFTER: &str = "\
Examples:
  casebook demo
  casebook investigate alert.json --evidence logs/ --out report/
  jq -c '.alerts[0]' siem.json | casebook investigate - --evidence logs/
  casebook list
  casebook investigate alert.json --evidence logs/ --models models.toml
  casebook export 3f2a --format html --output report.html
  casebook serve --evidence logs/ --open
  casebook verify 3f2a --evidence logs/ --report kept/report.json
  casebook cluster --evidence logs/
  casebook alert alert.json --nats nats://127.0.0.1:4222

Exit codes:
  0   done, whatever the verdict
  1   something outside prevented it: full disk, locked data folder, evidence that changed
  2   the command or its input is wrong; `check` found faults
  3   stopped before the end; `casebook resume ID` goes on from there
  4   `verify` found something that is not what was recorded
  5   `--replay` had no answer for a request: the report is not that of the recorded run
  6   `doctor` found a model that cannot be used, or a NATS server that does not store
  7   not investigated: no model answered, so no log was read; `casebook resume ID` goes on
  70  a defect of casebook";

/// Investigates security alerts: an alert and a folder of logs go in, a report that can be checked
/// down to the log line comes out.
#[derive(Debug, Parser)]
#[command(name = "casebook", version, after_help = AFTER, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// The folder in which everything is kept
    #[arg(long, global = true, value_name = "DIR", env = "CASEBOOK_DATA", default_value = ".casebook")]
    pub data: PathBuf,
    /// How log lines look on standard error; `CASEBOOK_LOG` says which (`info`, `casebook_hub=debug`)
    #[arg(long, global = true, value_enum, value_name = "FORM", default_value_t = LogForm::Text)]
    pub log: LogForm,
    /// Show times in the time zone of this machine instead of UTC
    #[arg(long, global = true)]
    pub local: bool,
    /// Send traces and metrics to this OpenTelemetry collector, over HTTP (OTLP, protobuf); else where `CASEBOOK_OTLP` or
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` says
    #[arg(long, global = true, value_name = "URL")]
    pub otlp: Option<String>,
}

impl Common {
    /// The collector, where the flag or our own variable names one.
    ///
    /// # Errors
    /// The address is not that of an HTTP server. An address with a password is not repeated.
    pub fn collector(&self) -> Result<Option<String>, Failure> {
        // Read here, since the help shows what stands in a variable that it knows.
        let set = || std::env::var("CASEBOOK_OTLP").ok();
        let named = self.otlp.clone().or_else(set).filter(|url| !url.is_empty());
        let advice = "name a collector that speaks OTLP over HTTP with --otlp or CASEBOOK_OTLP, or none";
        named.map(|url| http(&url)).transpose().map_err(|why| Failure::usage(why, advice))
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Investigate the demo: a recorded alert and its logs, which travel in this program
    Demo(Demo),
    /// Investigate an alert over a folder of log files
    Investigate(Investigate),
    /// Go on with an investigation that was stopped
    Resume(Resume),
    /// Run a whole team on this machine, each member as a separate process, over NATS
    Cluster(Cluster),
    /// Send an alert to a team of processes over NATS
    Alert(SendAlert),
    /// Watch one investigation of another process or of such a team, or all of them
    Watch(Watch),
    /// List all investigations, the latest first
    List(List),
    /// Show an investigation, finished or not, with what each task used
    Show(Show),
    /// Write the report of an investigation
    Export(Export),
    /// Check the log, all results and the report against each other, and against a kept report and the evidence
    Verify(Verify),
    /// Make a key that signs reports
    Key(Key),
    /// List MCP servers and their tools, who may call what, and what is held back
    Tools(ShowTools),
    /// Show what is recognised in a folder of evidence: formats, times, domains, damage
    Sources(ListSources),
    /// Run a past investigation again with other models or prompts, and show what differs
    Backtest(Backtest),
    /// Check the models file, the keys and the servers, and try each model on the real tasks
    Doctor(Doctor),
    /// Check configuration files: Experts, MCP servers, what is allowed of them, models, profiles
    Check(Check),
    /// List, check, test and explain Sigma rules
    Rules(Rules),
    /// Serve the tools over a folder of log files to any MCP client
    Evidence(Evidence),
    /// Serve the pages and the HTTP API on this machine: watch, replay and launch investigations
    Serve(Serve),
    /// Serve Casebook itself to any MCP client: open investigations, and read and search them
    Mcp(Mcp),
}

/// `casebook investigate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook investigate alert.json --evidence logs/ --out report/
  casebook investigate - --evidence logs/ < alert.json

The alert is one JSON object of at most 1 MiB. The evidence is read and never changed:
JSON lines, JSON arrays, CSV, TSV, Zeek, syslog, auditd, plain lines, Windows event logs (EVTX), and
gzip or zstd of any. zip and tar archives are read as folders.
An investigation of the same alert and evidence that was stopped is continued.")]
pub struct Investigate {
    /// The file with the alert, or `-` for standard input
    #[arg(value_name = "ALERT")]
    pub alert: PathBuf,
    /// What it is investigated with.
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// Where report.json, report.md and report.html are written
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show each step: questions, findings, scores and the first tool calls of a task; twice, every call
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Who thinks.
    #[command(flatten)]
    pub models: Models,
    /// What it may cost.
    #[command(flatten)]
    pub budget: Limits,
}

/// `casebook demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// Show the investigation in a browser while it runs, and keep serving until Ctrl-C
    #[arg(long, conflicts_with_all = ["verbose"])]
    pub serve: bool,
    /// The address of the server
    #[command(flatten)]
    pub place: serve::Place,
    /// Where report.json, report.md and report.html are written
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub out: PathBuf,
    /// Show each step: questions, findings, scores and the first tool calls of a task; twice, every call
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Who thinks.
    #[command(flatten)]
    pub models: Models,
    /// What it may cost.
    #[command(flatten)]
    pub budget: Limits,
}

/// What an alert is investigated with.
#[derive(Debug, Default, Args)]
pub struct EvidenceArgs {
    /// The folder with the log files
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// The team folder: Experts, MCP servers and what they may do (docs/experts.md) [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
    /// A folder with Sigma rules of your own (docs/rules.md); may be repeated
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
}

impl EvidenceArgs {
    /// What they lead to, read.
    ///
    /// # Errors
    /// The team folder's files or the rules do not hold.
    pub fn sources(&self) -> Result<Sources, Failure> {
        embedded::given(self.evidence.clone(), self.team.as_deref(), &self.rules)
    }
}

/// Who thinks, and what is kept of it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Models (without a models file the built-in analyst plays every role)")]
pub struct Models {
    /// The models file: which models there are and which role each plays [env: CASEBOOK_MODELS]
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Keep every exchange with models in this folder, for --replay; it holds what was sent, and no key
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Take every answer from such a folder: no network, no keys; uses its models.toml unless --models
    #[arg(long, value_name = "DIR")]
    pub replay: Option<PathBuf>,
}

/// `casebook resume`
#[derive(Debug, Args)]
pub struct Resume {
    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// With what it goes on, if that has moved.
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// Where report.json, report.md and report.html are written
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show each step: questions, findings, scores and the first tool calls of a task; twice, every call
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Who thinks.
    #[command(flatten)]
    pub models: Models,
}

/// `casebook sources`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook sources --evidence logs/
  casebook sources --evidence logs/ --write team/sources.toml
  casebook sources --evidence logs/ --team team/

What wrote a log is a guess until sources.toml in the team folder confirms it, and a guess counts as written
on the alerted host. --write drafts the file. Check each entry and set confirmed = true (docs/experts.md).")]
pub struct ListSources {
    /// The folder with the log files
    #[arg(long, value_name = "DIR")]
    pub evidence: PathBuf,
    /// The team folder whose sources.toml states what wrote the logs [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
    /// Write a draft of sources.toml to this new file, outside the folder with the log files
    #[arg(long, value_name = "FILE", conflicts_with = "team")]
    pub write: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
