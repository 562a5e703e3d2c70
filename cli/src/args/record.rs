//! What a person may type to see what is recorded of investigations.

use std::path::PathBuf;

use casebook_protocol::CallId;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::nats::Nats;
use casebook_report::Form;

/// `casebook list`
#[derive(Debug, Args)]
pub struct List {
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}

/// `casebook show`
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Show instead what one tool call returned, whole, as it is recorded: a citation names its call
    #[arg(long, value_name = "CALL")]
    pub call: Option<CallId>,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}

/// `casebook export`
#[derive(Debug, Args)]
pub struct Export {
    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// The form of the report
    #[arg(long, value_parser = form(), value_name = "FORM", default_value = Form::Json.name())]
    pub format: Form,
    /// The file to write; standard output without it
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}

/// `casebook verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// The folder with the log files: compares each cited record with its line in the file, too
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Where the team is.
    #[command(flatten)]
    pub nats: Nats,
}

/// Reads a form of the report by its name.
fn form() -> impl TypedValueParser<Value = Form> {
    let names = PossibleValuesParser::new(Form::ALL.map(Form::name));
    names.map(|name| Form::ALL.into_iter().find(|form| form.name() == name).unwrap_or(Form::Json))
}
