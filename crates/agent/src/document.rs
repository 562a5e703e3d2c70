//! A configuration file as a tree in which every node knows its line. It is held against the schema of its
//! format, which is derived from the Rust type that it is read into, so that every fault of its shape is
//! found at once, at its line, and editors are given the same schema.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::fault::ConfigFault;

mod json;
mod shape;
#[cfg(test)]
mod tests;
mod time;
mod yaml;

pub use casebook_runtime::near::nearest;
pub use shape::schema;
pub use time::duration;

/// The largest file that is read, in bytes.
const LARGEST: usize = 1024 * 1024;
/// The deepest nesting that is read.
const DEEPEST: usize = 32;

/// A configuration file.
#[derive(Debug, Clone)]
pub struct Document {
    file: PathBuf,
    root: Node,
}

/// A value with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line at which it begins, from 1.
    pub line: usize,
    /// What it holds.
    pub content: Content,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A text, a number, true, false or null.
    Plain(Value),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the file's order; no key stands twice.
    Map(Vec<(Key, Node)>),
}

/// A key with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The line, from 1.
    pub line: usize,
    /// The key.
    pub text: String,
}

impl Node {
    /// The value of `key`, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(k, _)| k.text == key).map(|(_, node)| node)
    }

    /// Keys and values in the file's order; none where this is no map.
    #[must_use]
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Plain(_) | Content::List(_) => &[],
        }
    }

    /// The same without lines.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Plain(value) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.text.clone(), node.value())).collect::<Map<_, _>>())
            }
        }
    }

    /// The node at `step`, and the line by which a person finds it: that of its key.
    fn step(&self, step: &str) -> Option<(usize, &Self)> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|(k, _)| k.text == step).map(|(k, node)| (k.line, node)),
            Content::List(items) => items.get(step.parse::<usize>().ok()?).map(|node| (node.line, node)),
            Content::Plain(_) => None,
        }
    }
}

impl Document {
    /// The YAML 1.2 in `text`, the content of `file`. An empty file is an empty map. Anchors and aliases are
    /// read within limits; merge keys, tags of an application's own and duplicate keys are faults.
    ///
    /// # Errors
    /// It is no YAML, or too large.
    pub fn yaml(file: &Path, text: &str) -> Result<Self, Vec<ConfigFault>> {
        Self::read(file, text, yaml::read)
    }

    /// The JSON in `text`, the content of `file`; comments and trailing commas are read, duplicate keys are
    /// faults.
    ///
    /// # Errors
    /// It is no JSON, or too large.
    pub fn json(file: &Path, text: &str) -> Result<Self, Vec<ConfigFault>> {
        Self::read(file, text, json::read)
    }

    fn read(
        file: &Path,
        text: &str,
        read: fn(&str) -> Result<Node, (usize, String)>,
    ) -> Result<Self, Vec<ConfigFault>> {
        let told = |(line, what)| vec![ConfigFault { file: file.to_path_buf(), line, what }];
        if text.len() > LARGEST {
            return Err(told((1, format!("the file is larger than {} MiB: make it smaller", LARGEST / 1024 / 1024))));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = read(text).map_err(told)?;
        Ok(Self { file: file.to_path_buf(), root })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// All of it.
    #[must_use]
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// The line at which `path` stands, of as much of it as there is; `path` leads through keys, and numbers
    /// from 0 in lists.
    #[must_use]
    pub fn line(&self, path: &[&str]) -> usize {
        let (mut line, mut node) = (self.root.line, &self.root);
        for step in path {
            let Some((at, next)) = node.step(step) else { break };
            (line, node) = (at, next);
        }
        line
    }

    /// A fault at `path`.
    #[must_use]
    pub fn fault(&self, path: &[&str], what: impl std::fmt::Display) -> ConfigFault {
        ConfigFault { file: self.file.clone(), line: self.line(path), what: format!("{}: {what}", shown(path)) }
    }

    /// What stands at `path`, as a `T`, with the faults of its shape: none of them, or the value is not to be
    /// used but to look for further faults. No value where it cannot be read as a `T` at all.
    pub fn shape<T: JsonSchema + DeserializeOwned>(&self, path: &[&str]) -> (Option<T>, Vec<ConfigFault>) {
        let found = path.iter().try_fold(&self.root, |node, step| node.step(step).map(|(_, node)| node));
        let Some(node) = found else { return (None, vec![self.fault(path, "is missing")]) };
        let value = node.value();
        let mut faults = shape::faults::<T>(self, path, &value);
        let read = serde_json::from_value(value);
        if read.is_err() && faults.is_empty() {
            // The schema let something through that the type does not take; the error's own text could quote it.
            faults.push(self.fault(path, "cannot be read: see the manual for what may stand here"));
        }
        (read.ok(), faults)
    }
}

/// `path` as a person writes it.
fn shown(path: &[&str]) -> String {
    if path.is_empty() {
        return "the file".to_owned();
    }
    let steps = path.iter().map(|step| casebook_protocol::one_line(step, 80));
    steps.collect::<Vec<_>>().join(".")
}
