use std::path::PathBuf;

use casebook_index::{Sort, Status};
use casebook_protocol::{CallId, Severity, Timestamp, Verdict};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::nats::Nats;
use casebook_report::Form;

#[derive(Debug, Args)]
pub struct List {
    /// Only these: open, closed, quiet (not investigated, or nothing recorded for ten minutes), broken (the log is damaged)
    #[arg(long, value_parser = of(Status::ALL, Status::name), value_name = "STATUS")]
    pub status: Vec<Status>,
    /// Only alerts of these severities
    #[arg(long, value_parser = of(Severity::ALL, Severity::name), value_name = "SEVERITY")]
    pub severity: Vec<Severity>,
    /// Only these verdicts
    #[arg(long, value_parser = of(Verdict::ALL, Verdict::name), value_name = "VERDICT")]
    pub verdict: Vec<Verdict>,
    /// Only where the path or name of the evidence contains this text
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Only where the title, an id or a name in the alert (host, user, address) contains each of these words
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Only what was opened since this time: 2026-11-24, 2026-11-24T03:00:00Z, or 90m, 24h, 7d before now
    #[arg(long, value_parser = since, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// The order: newest, latest (event), urgent (open ones first, then by severity), cost
    #[arg(long, value_parser = of(Sort::ALL, Sort::name), value_name = "ORDER", default_value = Sort::Newest.name())]
    pub sort: Sort,
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Continue where an earlier list ended; it prints this value
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Print JSON: the items, and the cursor of the next page
    #[arg(long)]
    pub json: bool,
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

/// One of `all` by its name.
fn of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.map(name));
    names.try_map(move |given| all.into_iter().find(|one| name(*one) == given).ok_or("no such value"))
}

fn since(text: &str) -> Result<Timestamp, String> {
    time(text, Timestamp::now()).ok_or_else(|| {
        "expected a time such as 2026-11-24, 2026-11-24T03:00:00Z, or 90m, 24h or 7d before now".to_owned()
    })
}

fn time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let end = text.char_indices().next_back().map_or(0, |(at, _)| at);
    let (number, unit) = text.split_at_checked(end)?;
    let seconds = [("m", 60), ("h", 3_600), ("d", 86_400)].into_iter().find(|(name, _)| *name == unit);
    if let (Ok(number), Some((_, seconds))) = (number.parse::<u32>(), seconds) {
        return now.checked_sub(std::time::Duration::from_secs(u64::from(number) * seconds)).ok();
    }
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  casebook key casebook.key
  casebook export 3f2a --sign casebook.key --output report.json

Writes the private key to FILE, which only you can read, and the public key to FILE.pub. Both are Ed25519 keys
in PEM form. Keep the private key away from the data folder: anyone with both can write and sign another log.")]
pub struct Key {
    /// The file for the private key; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn form() -> impl TypedValueParser<Value = Form> {
    let names = PossibleValuesParser::new(Form::ALL.map(Form::name));
    names.map(|name| Form::ALL.into_iter().find(|form| form.name() == name).unwrap_or(Form::Json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_moment_or_an_age() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let check = |text: &str, expect: &str| assert_eq!(time(text, now).unwrap().to_string(), expect, "{text}");
        check("2026-11-24", "2026-11-24T00:00:00Z");
        check("2026-11-24T03:00:00+02:00", "2026-11-24T01:00:00Z");
        check("90m", "2026-11-25T10:30:00Z");
        check("24h", "2026-11-24T12:00:00Z");
        check("7d", "2026-11-18T12:00:00Z");
        for wrong in ["", "d", "7", "-1d", "7 days", "24é", "yesterday"] {
            assert_eq!(time(wrong, now), None, "{wrong}");
        }
    }
}
