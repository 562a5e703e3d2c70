//! Reads configuration files (YAML, JSON, TOML) into serde types. Every fault is one sentence with file and line:
//! `tools.yaml:4: servers.hub.timeout: expected a time; write one such as 60s`. Sentences never quote a value, which
//! could be a secret.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Segment, Track};

mod describe;
mod find;
#[cfg(test)]
mod tests;
mod value;
mod yaml;

pub use value::{Money, duration, is_variable, micros, or_default, time};

const LARGEST: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{}:{line}: {what}", file.display())]
pub struct ConfigFault {
    pub file: PathBuf,
    pub line: usize,
    /// What is wrong and what to write instead, without values.
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl ConfigFaults {
    #[must_use]
    pub fn of_file(file: &Path, what: impl Into<String>) -> Self {
        Self(vec![ConfigFault { file: file.to_path_buf(), line: 1, what: what.into() }])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Yaml,
    /// Comments and trailing commas are allowed.
    Json,
    Toml,
}

#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    form: Form,
    file: &'a Path,
    text: &'a str,
}

impl<'a> Source<'a> {
    #[must_use]
    pub fn new(form: Form, file: &'a Path, text: &'a str) -> Self {
        Self { form, file, text: text.strip_prefix('\u{feff}').unwrap_or(text) }
    }

    pub fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, ConfigFaults> {
        if self.text.len() > LARGEST {
            let what = format!("the file is larger than {} MiB; make it smaller", LARGEST / 1024 / 1024);
            return Err(ConfigFaults::of_file(self.file, what));
        }
        let mut track = Track::new();
        let read = match self.form {
            Form::Yaml => yaml::read(self.text, &mut track),
            Form::Json => json(self.text).and_then(|text| yaml::read(&text, &mut track)),
            Form::Toml => toml::Deserializer::parse(self.text)
                .and_then(|toml| T::deserialize(Deserializer::new(toml, &mut track)))
                // The Display of a TOML error would quote the line.
                .map_err(|e| (self.line(e.span().map_or(0, |span| span.start)), e.message().to_owned())),
        };
        read.map_err(|(line, error)| {
            let path = track.path();
            let in_list = matches!(path.iter().next_back(), Some(Segment::Seq { .. }));
            // The readers report these at the end of the map, and at the whole list.
            let displaced = error.starts_with("missing field") || (self.form == Form::Toml && in_list);
            let line = if displaced { self.fault(&describe::steps(&path), "").line } else { line };
            let what = describe::sentence(&error, &path, &schema::<T>());
            ConfigFaults(vec![ConfigFault { file: self.file.to_path_buf(), line, what }])
        })
    }

    /// Returns the faults that `check` collected, each with its line.
    pub fn holds(&self, check: Check) -> Result<(), ConfigFaults> {
        if check.wrong.is_empty() {
            return Ok(());
        }
        let faults = check.wrong.iter().map(|(path, what)| self.fault(path, what));
        Err(ConfigFaults(sorted(faults.collect())))
    }

    /// A fault at `path`, or at the longest part of it that exists.
    pub fn fault(&self, path: &[impl AsRef<str>], what: impl Display) -> ConfigFault {
        let steps: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        let line = match self.form {
            Form::Yaml => find::yaml(self.text, &steps),
            Form::Json => json(self.text).map_or(1, |text| find::yaml(&text, &steps)),
            Form::Toml => self.line(find::toml(self.text, &steps)),
        };
        let what = format!("{}: {what}", describe::place(&steps));
        ConfigFault { file: self.file.to_path_buf(), line, what }
    }

    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1
    }
}

/// `written` without comments and trailing commas. Every line keeps its number.
fn json(written: &str) -> Result<String, (usize, String)> {
    let mut text = written.to_owned();
    json_strip_comments::strip(&mut text).map_err(|_| (1, "expected JSON; close the comment".to_owned()))?;
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            ' ' if written.as_bytes().get(at) == Some(&b'\n') => plain.push('\n'),
            ' '..='~' | '\t' | '\n' | '\r' => plain.push(c),
            // Only escapes can express these characters in both JSON and YAML.
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| plain.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    // The YAML reader accepts more than JSON, but other clients read this file as JSON.
    serde_json::from_str::<IgnoredAny>(&plain)
        .map_err(|e| (e.line().max(1), "expected JSON; see what is before this place".to_owned()))?;
    Ok(plain)
}

#[derive(Debug, Default)]
pub struct Check {
    path: Vec<String>,
    wrong: Vec<(Vec<String>, String)>,
}

impl Check {
    /// Reports the value at `key`, below the current place.
    pub fn wrong(&mut self, key: &[&str], what: impl Display) {
        let path = self.path.iter().cloned().chain(key.iter().map(|step| (*step).to_owned()));
        self.wrong.push((path.collect(), what.to_string()));
    }

    /// Runs `check` one level deeper, at `key`.
    pub fn at(&mut self, key: &[&str], check: impl FnOnce(&mut Self)) {
        let above = self.path.len();
        self.path.extend(key.iter().map(|step| (*step).to_owned()));
        check(self);
        self.path.truncate(above);
    }

    pub fn number<T: PartialOrd + Display>(&mut self, key: &str, number: Option<T>, range: RangeInclusive<T>) {
        if number.is_some_and(|number| !range.contains(&number)) {
            self.wrong(&[key], format!("expected a number from {} to {}", range.start(), range.end()));
        }
    }

    pub fn text(&mut self, key: &str, text: &str, most: usize) {
        if text.trim().is_empty() {
            self.wrong(&[key], "is empty; write a text, or leave it out");
        } else if text.chars().count() > most {
            self.wrong(&[key], format!("is too long; write at most {most} characters"));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.wrong.is_empty()
    }
}

pub fn text(file: &Path) -> Result<String, ConfigFaults> {
    std::fs::read_to_string(file).map_err(|error| {
        let what = match error.kind() {
            std::io::ErrorKind::InvalidData => "expected UTF-8 text; save it as UTF-8".to_owned(),
            _ => format!("this file cannot be read: {error}"),
        };
        ConfigFaults::of_file(file, what)
    })
}

pub fn sorted(mut faults: Vec<ConfigFault>) -> Vec<ConfigFault> {
    faults.sort();
    faults.dedup();
    faults
}

/// The JSON Schema (draft 2020-12) of `T`, without references.
pub fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|s| s.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
