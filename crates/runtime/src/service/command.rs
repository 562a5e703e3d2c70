//! The command line of a process: the keys as flags, `--config`, and `--print-config`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::key::Key;
use super::settings::{File, Settings, SettingsError};
use crate::files;
use crate::wire::WIRE_VERSION;

/// The environment variable that names a settings file.
pub const CONFIG_ENV: &str = "CASEBOOK_CONFIG";

const AFTER: &str = "\
A settings file is TOML and has the names of the flags, with _ for -: drain = 30. What is set in the
environment goes before the file, and what is given here before both. CASEBOOK_LOG filters log lines.

Asked to stop (SIGTERM, Ctrl-C), it takes no more work, finishes what is under way, hands back the rest,
and ends with 0; asked twice, it ends at once.

Exit codes:
  0   stopped as asked
  1   the machine or the server did not let it: see the log
  2   a setting is wrong, or the Hub refuses this version
  3   stopped before what was under way had ended: it is done again by another
  70  a defect of casebook";

/// A program that serves: what it is called and what may be set.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name, such as `casebook-director`.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What may be set.
    pub keys: &'static [&'static Key],
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// To serve.
    Serve {
        /// With these settings.
        settings: Settings,
        /// And to stop when standard input ends: so a child ends with whoever started it.
        until_eof: bool,
    },
    /// To say this and end.
    Say(String),
}

/// Why a command line cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It is no command line of ours.
    #[error("{0}")]
    Usage(String),
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The settings file is not read.
    #[error(transparent)]
    Read(#[from] files::ReadError),
}

impl Program {
    /// What the command line, the environment and the settings file ask for.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn asked(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Asked, CommandError> {
        let matches = match self.command().try_get_matches_from(arguments) {
            Ok(matches) => matches,
            Err(error) if error.use_stderr() => return Err(CommandError::Usage(error.to_string())),
            Err(help) => return Ok(Asked::Say(help.to_string())),
        };
        let named = || environment(CONFIG_ENV).filter(|name| !name.is_empty()).map(PathBuf::from);
        let file = matches.get_one::<PathBuf>("config").cloned().or_else(named);
        let file = file.as_deref().map(read).transpose()?;
        let settings = Settings::gather(self.keys, file.as_ref(), &environment, &self.flags(&matches))?;
        if matches.get_flag("print-config") {
            return Ok(Asked::Say(format!("# {} {}\n{}", self.name, version(), settings.print())));
        }
        Ok(Asked::Serve { settings, until_eof: matches.get_flag("until-eof") })
    }

    fn flags(&self, matches: &ArgMatches) -> Vec<(&'static str, Vec<String>)> {
        let given = |key: &&'static Key| {
            let values = matches.get_many::<String>(key.name)?;
            Some((key.name, values.cloned().collect()))
        };
        self.keys.iter().filter_map(given).collect()
    }

    fn command(&self) -> Command {
        let config = Arg::new("config").long("config").value_name("FILE").value_parser(clap::value_parser!(PathBuf));
        let print = Arg::new("print-config").long("print-config").action(ArgAction::SetTrue);
        let eof = Arg::new("until-eof").long("until-eof").action(ArgAction::SetTrue);
        let own = [
            config.help(format!("the settings file [env: {CONFIG_ENV}]")),
            print.help("print what is set as such a file, with where it came from, and end"),
            eof.help("stop when standard input ends, as a child of whoever starts it"),
        ];
        Command::new(self.name)
            .about(self.about)
            .version(version())
            .after_help(AFTER)
            .args(own)
            .args(self.keys.iter().map(|key| flag(key)))
    }
}

fn flag(key: &'static Key) -> Arg {
    let usual = key.usual.map(|usual| format!(" [default: {usual}]")).unwrap_or_default();
    let action = if key.kind.several() { ArgAction::Append } else { ArgAction::Set };
    Arg::new(key.name)
        .long(key.flag())
        .value_name(key.value)
        .action(action)
        .help(format!("{} [env: {}]{usual}", key.help, key.env))
}

/// The version of the package and of the messages between processes.
#[must_use]
pub fn version() -> String {
    format!("{} (messages {WIRE_VERSION})", env!("CARGO_PKG_VERSION"))
}

fn read(path: &Path) -> Result<File, files::ReadError> {
    Ok(File { path: path.to_path_buf(), text: files::text(path, "the settings file")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::common;

    const PROGRAM: Program = Program { name: "casebook-x", about: "Does x.", keys: &common::KEYS };

    fn asked(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Asked, CommandError> {
        let arguments = std::iter::once("casebook-x").chain(arguments.iter().copied()).map(OsString::from);
        let environment =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        PROGRAM.asked(arguments, environment)
    }

    fn said(arguments: &[&str], environment: &[(&str, &str)]) -> String {
        match asked(arguments, environment) {
            Ok(Asked::Say(text)) => text,
            other => panic!("it says nothing: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        PROGRAM.command().debug_assert();
    }

    #[test]
    fn the_settings_file_is_the_one_given_or_the_one_of_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (first, second) = (file("a.toml", "drain = 1\n"), file("b.toml", "drain = 2\n"));
        let environment = [(CONFIG_ENV, second.as_str())];
        let printed = said(&["--print-config"], &environment);
        assert!(printed.contains(&format!("drain = 2  # {second}:1")), "{printed}");
        let printed = said(&["--print-config", "--config", &first, "--log", "json"], &environment);
        assert!(printed.starts_with("# casebook-x 0.1.0 (messages "), "{printed}");
        assert!(printed.contains(&format!("drain = 1  # {first}:1")), "{printed}");
        assert!(printed.contains("log = \"json\"  # --log"), "{printed}");
        let missing = asked(&[], &[(CONFIG_ENV, "/nowhere/x.toml")]).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read the settings file /nowhere/x.toml: "), "{missing}");
    }

    #[test]
    fn help_and_version_are_said_and_an_unknown_flag_is_refused() {
        let help = said(&["--help"], &[]);
        assert!(help.contains("--drain <SECONDS>") && help.contains("[env: CASEBOOK_DRAIN] [default: 30]"), "{help}");
        assert!(said(&["--version"], &[]).contains("(messages "), "the version names that of the messages");
        assert!(matches!(asked(&["--drian", "3"], &[]), Err(CommandError::Usage(_))));
        assert!(matches!(asked(&["--drain", "x"], &[]), Err(CommandError::Settings(_))));
    }
}
