use std::path::PathBuf;

use casebook_evidence::rules::Level;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Rules {
    #[command(subcommand)]
    pub command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List the rules with what they are for and what they mean
    List(ListRules),
    /// Check rules: each fault with file, line and what to write instead
    Check(CheckRules),
    /// Run rules over a folder of logs, and show what they find
    Test(TestRules),
    /// Say for one record why each rule did or did not match
    Explain(ExplainRules),
}

/// Where rules come from.
#[derive(Debug, Clone, Default, Args)]
pub struct RuleFolders {
    /// A folder or file with Sigma rules (docs/rules.md); may be repeated
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    /// The team folder, whose rules/ counts as well [env: CASEBOOK_TEAM]
    #[arg(long, value_name = "DIR")]
    pub team: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook rules list
  casebook rules list --rules own/ --level high --json")]
pub struct ListRules {
    #[command(flatten)]
    pub from: RuleFolders,
    /// Only rules of this level or above
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub level: Option<Level>,
    /// Print the rules as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook rules check own/
  casebook rules check own/curl.yml

Exit code 0: no faults, but maybe notices; 2: faults found.")]
pub struct CheckRules {
    /// Folders and files with rules
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook rules test --rules own/ --evidence logs/
  casebook rules test --evidence logs/

Without --rules and --team, the rules of Casebook are tested.")]
pub struct TestRules {
    /// The folder with the log files
    #[arg(long, value_name = "DIR")]
    pub evidence: PathBuf,
    #[command(flatten)]
    pub from: RuleFolders,
    /// Hits that are shown for each rule
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub show: usize,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook rules explain auth.log:17 --evidence logs/
  casebook rules explain auth.log:17 --evidence logs/ --rules own/ --rule 'Curl to an address'")]
pub struct ExplainRules {
    /// The record: its file, as `casebook sources` shows it, and its line
    #[arg(value_name = "FILE:LINE", value_parser = place)]
    pub record: (String, u64),
    /// The folder with the log files
    #[arg(long, value_name = "DIR")]
    pub evidence: PathBuf,
    #[command(flatten)]
    pub from: RuleFolders,
    /// Only the rule with this id or title
    #[arg(long, value_name = "RULE")]
    pub rule: Option<String>,
}

fn level(text: &str) -> Result<Level, String> {
    let known = Level::ALL.iter().find(|(name, _)| *name == text).map(|(_, level)| *level);
    let names: Vec<&str> = Level::ALL.iter().map(|(name, _)| *name).collect();
    known.ok_or_else(|| format!("expected {}", names.join(", ")))
}

fn place(text: &str) -> Result<(String, u64), String> {
    let (file, line) = text.rsplit_once(':').ok_or("expected a file and a line; write them as auth.log:17")?;
    let line = line.parse().map_err(|_| "expected a line after the last colon; write it as auth.log:17")?;
    Ok((file.to_owned(), line))
}
