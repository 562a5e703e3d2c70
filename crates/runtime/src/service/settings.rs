//! The settings of a process. Options take precedence over environment variables, and variables over a TOML file. A
//! program declares its settings once, in a struct that derives [`clap::Args`]. A field `at_once` is the option
//! `--at-once`, the variable `CASEBOOK_AT_ONCE` and the key `at_once`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::{Resettable, ValueHint};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _};
use serde_json::{Map, Value};

use super::Failure;
use super::common::{Common, address};
use crate::config::{ConfigFaults, Form, Source, sorted};
use crate::files;
use crate::near::nearest;
use crate::wire::WIRE_VERSION;

const AFTER: &str = "\
A settings file is TOML and has the names of the options, with _ for -: drain = 30. Environment variables win over
the file, and options win over both. CASEBOOK_LOG filters log lines.

Asked to stop (SIGTERM, Ctrl-C), the program takes no more work, finishes what is under way, hands back the rest,
and ends with 0; asked twice, it ends at once.

Exit codes:
  0   stopped as asked
  1   the machine or the server failed: see the log
  2   a setting is wrong, or the Hub refuses this version
  3   stopped before what was under way had ended: another process does it again
  70  a defect of casebook";

#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Such as `casebook-director`.
    pub name: &'static str,
    pub about: &'static str,
}

#[derive(Debug)]
pub enum Asked<T> {
    Serve(Box<Common>, T, Own),
    Print(String),
    /// Whether the process is ready that answers here.
    Healthy(SocketAddr),
}

/// Options of every program that are not settings.
#[derive(Debug, Args)]
pub struct Own {
    /// Settings file
    #[arg(long, value_name = "FILE", env = "CASEBOOK_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Print the settings as a settings file, with the origin of each, and end
    #[arg(long)]
    print_config: bool,
    /// Ask the process that serves health checks here whether it is ready, and end: 0 if it is; default: the address
    /// of `health`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    #[expect(clippy::option_option, reason = "the option may have no value")]
    healthy: Option<Option<SocketAddr>>,
    /// Stop when standard input ends; for a child of the process that starts this one
    #[arg(long)]
    pub(super) until_eof: bool,
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::usage(explained(&error))
    }
}

enum Origin {
    File(PathBuf, usize),
    Variable(String),
    Option(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Option(name) => write!(f, "--{name}"),
        }
    }
}

/// The known settings, and the given values by key.
struct Settings {
    command: Command,
    given: BTreeMap<String, (Origin, Vec<OsString>)>,
}

impl Program {
    /// Reads the command line, the environment and the settings file. An empty variable sets nothing.
    ///
    /// # Errors
    /// The first wrong option or variable, or all faults of the file.
    pub fn asked<T: Args>(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Asked<T>, Failure> {
        let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
        let mut settings = Settings::of::<T>();
        // Limits have a heading of their own, which ends here.
        let command = settings.command.clone().name(self.name).next_help_heading(Resettable::Reset);
        let command = Own::augment_args(command);
        let command = command.about(self.about).version(version()).after_help(AFTER).disable_help_flag(false);
        let matches = match without_variables(&command).try_get_matches_from(arguments) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                return Ok(Asked::Print(command.clone().render_help().to_string()));
            }
            Err(error) if !error.use_stderr() => return Ok(Asked::Print(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let own = Own::from_arg_matches(&matches)?;
        if let Some(file) = own.config.clone().or_else(|| variable("CASEBOOK_CONFIG").map(PathBuf::from)) {
            let text = files::text(&file, "the settings file").map_err(Failure::usage)?;
            settings.take_file(&file, &text).map_err(Failure::usage)?;
        }
        for arg in settings.command.clone().get_arguments() {
            let name = variable_of(arg);
            if let Some(text) = variable(&name) {
                let taken = settings.take(arg, Origin::Variable(name.clone()), vec![text.into()]);
                taken.map_err(|why| Failure::usage(format!("{}: {why}", Origin::Variable(name))))?;
            }
            let id = arg.get_id().as_str();
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                let texts = matches.get_raw(id).into_iter().flatten().map(OsString::from).collect();
                settings.given.insert(id.to_owned(), (Origin::Option(id.replace('_', "-")), texts));
            }
        }
        if own.print_config {
            return Ok(Asked::Print(format!("# {} {}\n{}", self.name, version(), settings.print())));
        }
        let given = settings.given.iter().map(|(id, (_, texts))| (id.as_str(), &texts[..]));
        let matches = settings.parse(given)?;
        let common = Common::from_arg_matches(&matches)?;
        if let Some(address) = own.healthy {
            let none = "expected an address: name one after --healthy, or set `health`";
            return address.or(common.health).map(Asked::Healthy).ok_or_else(|| Failure::usage(none));
        }
        Ok(Asked::Serve(Box::new(common), T::from_arg_matches(&matches)?, own))
    }
}

pub fn check<T: Args>(file: &Path, text: &str) -> Result<(), ConfigFaults> {
    Settings::of::<T>().take_file(file, text)
}

pub fn variables<T: Args>() -> Vec<String> {
    Settings::of::<T>().command.get_arguments().map(variable_of).collect()
}

impl Settings {
    fn of<T: Args>() -> Self {
        let command = T::augment_args(Common::augment_args(Command::new("settings"))).disable_help_flag(true);
        // The help names variables, but never shows their values.
        let named = |arg: Arg| {
            let name = variable_of(&arg);
            arg.env(name).hide_env_values(true)
        };
        Self { command: command.mut_args(named), given: BTreeMap::new() }
    }

    fn parse<'a>(&self, given: impl Iterator<Item = (&'a str, &'a [OsString])>) -> Result<ArgMatches, clap::Error> {
        let mut arguments = vec![OsString::new()];
        for (id, texts) in given {
            for text in texts {
                let mut argument = OsString::from(format!("--{}=", id.replace('_', "-")));
                argument.push(text);
                arguments.push(argument);
            }
        }
        without_variables(&self.command).try_get_matches_from(arguments)
    }

    fn take(&mut self, arg: &Arg, origin: Origin, texts: Vec<OsString>) -> Result<(), String> {
        let id = arg.get_id().as_str();
        self.parse(std::iter::once((id, &texts[..]))).map_err(|error| reason(&error))?;
        self.given.insert(id.to_owned(), (origin, texts));
        Ok(())
    }

    /// Takes the values of a file. Relative paths start at its folder.
    fn take_file(&mut self, file: &Path, text: &str) -> Result<(), ConfigFaults> {
        let source = Source::new(Form::Toml, file, text);
        let mut faults = Vec::new();
        let known: Vec<Arg> = self.command.get_arguments().cloned().collect();
        let names = || known.iter().map(|arg| arg.get_id().as_str());
        for (key, value) in source.read::<Map<String, Value>>()? {
            let origin = Origin::File(file.to_path_buf(), source.fault(&[&key], "").line);
            let taken = match known.iter().find(|arg| arg.get_id().as_str() == key) {
                Some(arg) => texts(arg, &value, file.parent()).and_then(|texts| self.take(arg, origin, texts)),
                None => Err(match nearest(&key, names()) {
                    Some(near) => format!("unknown key; write {near}"),
                    None => format!("unknown key; write one of {}", names().collect::<Vec<_>>().join(", ")),
                }),
            };
            faults.extend(taken.err().map(|why| source.fault(&[&key], why)));
        }
        if faults.is_empty() { Ok(()) } else { Err(ConfigFaults(sorted(faults))) }
    }

    /// The settings as a file. Secrets are in other files, so only their paths are printed.
    fn print(&self) -> String {
        let mut out = String::new();
        for arg in self.command.get_arguments() {
            let id = arg.get_id().as_str();
            let given = self.given.get(id).map(|(origin, texts)| (origin.to_string(), texts.clone()));
            let default = || Some(("default".to_owned(), vec![arg.get_default_values().first()?.into()]));
            let _ = match given.or_else(default) {
                Some((origin, texts)) => {
                    let texts: Vec<String> = texts.iter().map(|text| written(&text.to_string_lossy())).collect();
                    let value = if is_list(arg) { format!("[{}]", texts.join(", ")) } else { texts.concat() };
                    writeln!(out, "{id} = {value}  # {origin}")
                }
                None => writeln!(out, "# {id} is not set: {}", arg.get_help().cloned().unwrap_or_default()),
            };
        }
        out
    }
}

pub fn version() -> String {
    format!("{} (messages {WIRE_VERSION})", env!("CARGO_PKG_VERSION"))
}

/// `text` as a TOML string. TOML has the escapes of JSON.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

fn written(text: &str) -> String {
    if text.parse::<u64>().is_ok() { text.to_owned() } else { quoted(text) }
}

fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn variable_of(arg: &Arg) -> String {
    let usual = || format!("CASEBOOK_{}", arg.get_id().as_str().to_uppercase());
    arg.get_env().map_or_else(usual, |name| name.to_string_lossy().into_owned())
}

/// clap would read variables without naming the wrong one.
fn without_variables(command: &Command) -> Command {
    command.clone().mut_args(|arg| arg.env(Resettable::Reset))
}

/// `value` from a file in `folder` as the texts of an option.
fn texts(arg: &Arg, value: &Value, folder: Option<&Path>) -> Result<Vec<OsString>, String> {
    let is_path = arg.get_value_hint() == ValueHint::AnyPath;
    let text = |value: &Value| match value {
        Value::String(text) if is_path && !text.is_empty() => Ok(folder.unwrap_or(Path::new("")).join(text).into()),
        Value::String(text) => Ok(text.into()),
        Value::Number(number) if !is_path => Ok(number.to_string().into()),
        _ => Err(format!("expected a text{}", if is_path { "" } else { " or a number" })),
    };
    match value {
        Value::Array(all) if is_list(arg) => all.iter().map(text).collect(),
        value => Ok(vec![text(value)?]),
    }
}

/// The message of the value's parser, which repeats no secret.
fn reason(error: &clap::Error) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string);
    match (std::error::Error::source(error), context(ContextKind::ValidValue)) {
        (Some(why), _) => why.to_string(),
        (None, Some(words)) if !words.is_empty() => {
            format!("expected one of {words}, got {:?}", context(ContextKind::InvalidValue).unwrap_or_default())
        }
        _ => "expected a value, got \"\"".to_owned(),
    }
}

/// The fault of a command line. Only errors of clap itself are printed unchanged, since they repeat no value.
fn explained(error: &clap::Error) -> String {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(ContextValue::String(option))) => {
            format!("{}: {}", option.split(' ').next().unwrap_or_default(), reason(error))
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
