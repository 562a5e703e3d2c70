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
    #[command(flatten)]
    pub nats: Nats,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The id of the investigation, or its beginning
    #[arg(value_name = "ID")]
    pub id: String,
    /// The folder with the log files; also compares each cited record with its line in the file
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    #[command(flatten)]
    pub nats: Nats,
}

fn form() -> impl TypedValueParser<Value = Form> {
    let names = PossibleValuesParser::new(Form::ALL.map(Form::name));
    names.map(|name| Form::ALL.into_iter().find(|form| form.name() == name).unwrap_or(Form::Json))
}
