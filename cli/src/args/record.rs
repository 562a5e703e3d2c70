use std::path::PathBuf;

use casebook_protocol::CallId;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::nats::Nats;
use casebook_report::Form;

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The id of the investigation, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    /// Show the whole recorded result of one tool call instead; citations name their call
    #[arg(long, value_name = "CALL")]
    pub call: Option<CallId>,
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The id of the investigation, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    /// The format of the report
    #[arg(long, value_parser = form(), value_name = "FORM", default_value = Form::Json.name())]
    pub format: Form,
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sign the JSON report with the private key in this file; `casebook key` makes one
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook verify 3f2a
  casebook verify 3f2a --evidence logs/
  casebook verify 3f2a --report kept/report.json --public-key casebook.key.pub

Without --report, a log that was written anew as a whole is not found, and neither are removed last events
together with the report. Keep an exported report in another place. A signed one can be kept anywhere.
Exit code 4: something is not what was recorded.")]
pub struct Verify {
    /// The id of the investigation, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    /// The folder with the log files; also compares each cited record and each file with its hash
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// A report.json that was kept elsewhere; also compares the log with it
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Check the signature of that report with the public key in this file
    #[arg(long, value_name = "FILE", requires = "report")]
    pub public_key: Option<PathBuf>,
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  casebook key casebook.key
  casebook export 3f2a --sign casebook.key --output report.json

Writes the private key to FILE, which only you can read, and the public key to FILE.pub. Both are Ed25519 keys
in PEM form. Keep the private key away from the data folder: a person with both can write and sign another log.")]
pub struct Key {
    /// The file for the private key; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn form() -> impl TypedValueParser<Value = Form> {
    let names = PossibleValuesParser::new(Form::ALL.map(Form::name));
    names.map(|name| Form::ALL.into_iter().find(|form| form.name() == name).unwrap_or(Form::Json))
}
