//! The settings of a process, from its file, then its environment, then its flags: later ones win.
//! Pure: texts go in, values come out, each with where it came from.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::key::{Key, Kind, Value};

/// What is wrong with a setting. A value is quoted only where it cannot be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct SettingsError {
    /// File and line, environment variable, or flag.
    pub place: String,
    /// What is wrong and what to write instead.
    pub fault: String,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing was said.
    Usual,
    /// A settings file and the line in it, from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(&'static str),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("default"),
            Self::File(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// A settings file that was read.
#[derive(Debug, Clone)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// What stands in it.
    pub text: String,
}

/// The settings that hold.
#[derive(Debug, Clone)]
pub struct Settings {
    keys: Vec<&'static Key>,
    values: Values,
}

impl Settings {
    /// What is set for `keys` by the file, then the environment, then the flags. An environment
    /// variable that is empty sets nothing.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn gather(
        keys: &[&'static Key],
        file: Option<&File>,
        environment: impl Fn(&str) -> Option<String>,
        flags: &[(&'static str, Vec<String>)],
    ) -> Result<Self, SettingsError> {
        let mut values = BTreeMap::new();
        for key in keys {
            if let Some(usual) = key.usual {
                take(&mut values, key, Origin::Usual, &[usual.to_owned()], None)?;
            }
        }
        if let Some(file) = file {
            take_file(&mut values, keys, file)?;
        }
        for key in keys {
            if let Some(text) = environment(key.env).filter(|text| !text.is_empty()) {
                take(&mut values, key, Origin::Environment(key.env), &[text], None)?;
            }
            if let Some((_, texts)) = flags.iter().find(|(name, _)| *name == key.name) {
                take(&mut values, key, Origin::Flag(key.flag()), texts, None)?;
            }
        }
        Ok(Self { keys: keys.to_vec(), values })
    }

    fn value(&self, key: &Key) -> Option<&Value> {
        self.values.get(key.name).map(|(value, _)| value)
    }

    /// Where the value of `key` came from; none when it is not set.
    #[must_use]
    pub fn origin(&self, key: &Key) -> Option<&Origin> {
        self.values.get(key.name).map(|(_, origin)| origin)
    }

    /// The text of `key`; empty when it is not set.
    #[must_use]
    pub fn text(&self, key: &Key) -> &str {
        if let Some(Value::Text(text)) = self.value(key) { text } else { "" }
    }

    /// The number of `key`, in millionths for an amount.
    #[must_use]
    pub fn number(&self, key: &Key) -> Option<u64> {
        if let Some(Value::Number(number)) = self.value(key) { Some(*number) } else { None }
    }

    /// The address of `key`.
    #[must_use]
    pub fn address(&self, key: &Key) -> Option<SocketAddr> {
        if let Some(Value::Address(address)) = self.value(key) { Some(*address) } else { None }
    }

    /// The files of `key`.
    #[must_use]
    pub fn paths(&self, key: &Key) -> &[PathBuf] {
        if let Some(Value::Paths(paths)) = self.value(key) { paths } else { &[] }
    }

    /// The file of `key`.
    #[must_use]
    pub fn path(&self, key: &Key) -> Option<&Path> {
        self.paths(key).first().map(PathBuf::as_path)
    }

    /// The settings as a file that says the same, each with where it came from. Secrets are in files of
    /// their own, of which only the paths stand here.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = String::new();
        for key in &self.keys {
            // Writing to a String cannot fail.
            let _ = match self.values.get(key.name) {
                Some((value, origin)) => writeln!(out, "{} = {}  # {origin}", key.name, written(key.kind, value)),
                None => writeln!(out, "# {} is not set: {}", key.name, key.help),
            };
        }
        out
    }
}

fn take(
    values: &mut Values,
    key: &Key,
    origin: Origin,
    texts: &[String],
    base: Option<&Path>,
) -> Result<(), SettingsError> {
    let place = match &origin {
        Origin::File(..) => format!("{origin}: {}", key.name),
        _ => origin.to_string(),
    };
    let value = key.kind.value(texts, base).map_err(|fault| SettingsError { place, fault })?;
    values.insert(key.name, (value, origin));
    Ok(())
}

type Values = BTreeMap<&'static str, (Value, Origin)>;

fn take_file(values: &mut Values, keys: &[&'static Key], file: &File) -> Result<(), SettingsError> {
    let line = |at: usize| file.text.get(..at).unwrap_or(&file.text).matches('\n').count() + 1;
    let wrong =
        |at: usize, fault: String| SettingsError { place: format!("{}:{}", file.path.display(), line(at)), fault };
    // The message alone: the error's own text would quote the line.
    let table: BTreeMap<Spanned<String>, toml::Value> = toml::from_str(&file.text)
        .map_err(|e: toml::de::Error| wrong(e.span().map_or(0, |span| span.start), e.message().to_owned()))?;
    for (name, value) in &table {
        let at = name.span().start;
        let Some(key) = keys.iter().copied().find(|key| key.name == name.get_ref()) else {
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            return Err(wrong(at, format!("there is no setting {:?}: there are {}", name.get_ref(), known.join(", "))));
        };
        let texts = texts(value, key.kind).map_err(|fault| wrong(at, format!("{}: {fault}", key.name)))?;
        take(values, key, Origin::File(file.path.clone(), line(at)), &texts, file.path.parent())?;
    }
    Ok(())
}

fn texts(value: &toml::Value, kind: Kind) -> Result<Vec<String>, String> {
    let one = |value: &toml::Value| match (value, kind) {
        (toml::Value::String(text), Kind::Number(..)) => Err(format!("{text:?} is a text: write a number")),
        (toml::Value::String(text), _) => Ok(text.clone()),
        (toml::Value::Integer(number), Kind::Number(..) | Kind::Amount | Kind::Address) => Ok(number.to_string()),
        (toml::Value::Float(number), Kind::Amount) => Ok(number.to_string()),
        (other, _) => Err(format!("this is {}, which it cannot be", other.type_str())),
    };
    match value {
        toml::Value::Array(all) if kind.several() => all.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

fn written(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Text(text)) => quoted(text),
        (_, Value::Address(address)) => quoted(&address.to_string()),
        (Kind::Amount, Value::Number(micros)) => quoted(&format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)),
        (_, Value::Number(number)) => number.to_string(),
        (kind, Value::Paths(paths)) => {
            let all: Vec<String> = paths.iter().map(|path| quoted(&path.display().to_string())).collect();
            if kind.several() { format!("[{}]", all.join(", ")) } else { all.concat() }
        }
    }
}

/// `text` as a string of TOML.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
