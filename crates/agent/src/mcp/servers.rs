//! The servers that a user has, in the JSON that other MCP clients keep them in: pasted, unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use casebook_protocol::source_name;
use secrecy::SecretString;

use crate::document::Document;
use crate::fault::{ConfigFault, sorted};
use read::Place;

pub(crate) use fill::is_variable;
pub(crate) use read::is_header;

mod fill;
mod raw;
mod read;
#[cfg(test)]
mod tests;

/// The servers of a file.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// The file.
    pub file: PathBuf,
    /// Them by name.
    pub all: BTreeMap<String, Entry>,
    /// The names of those that are left out, since the file says that they are disabled.
    pub disabled: BTreeSet<String>,
}

/// A server.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The line at which it begins, from 1.
    pub line: usize,
    /// How it is reached.
    pub way: Way,
}

/// How a server is reached. Variables are filled in.
#[derive(Clone)]
pub enum Way {
    /// A child process that talks over its standard input and output.
    Child {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// All of its environment, but for what the policy adds.
        env: BTreeMap<String, SecretString>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// What goes with each request.
        headers: BTreeMap<String, SecretString>,
    },
}

impl fmt::Debug for Way {
    /// Without what may hold a secret: arguments, values, and of an address all but the host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child { command, args, env, cwd } => f
                .debug_struct("Child")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("host", &host(url))
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
        }
    }
}

/// The host of an address: the rest of it may hold a secret, in the query, in a part of the path, or before
/// the host.
#[must_use]
pub fn host(url: &str) -> Option<&str> {
    url.split(['/', '?', '#']).nth(2).and_then(|host| host.rsplit('@').next())
}

impl Servers {
    /// The servers in `text`, the content of `file`; `variable` says what an environment variable is.
    /// A server that is disabled is left out, and nothing of it is filled in.
    ///
    /// # Errors
    /// All faults that there are.
    pub fn parse(file: &Path, text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<ConfigFault>> {
        let document = Document::json(file, text)?;
        let base = raw::place(&document)?;
        let (written, mut faults) = document.shape::<BTreeMap<String, raw::Server>>(&base);
        let (mut all, mut disabled) = (BTreeMap::new(), BTreeSet::new());
        for (name, server) in written.unwrap_or_default() {
            let at = Place { document: &document, path: [&base[..], &[name.as_str()]].concat() };
            faults.extend(misnamed(&at, &name));
            if server.is_off() {
                disabled.insert(name.clone());
            } else {
                match read::way(&at, &server, variable) {
                    Ok(way) => {
                        all.insert(name.clone(), Entry { line: document.line(&at.path), way });
                    }
                    Err(found) => faults.extend(found),
                }
            }
        }
        faults.extend(same_source(&document, &base, &all));
        if faults.is_empty() { Ok(Self { file: file.to_path_buf(), all, disabled }) } else { Err(sorted(faults)) }
    }

    /// The JSON Schema of the file.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        raw::schema()
    }
}

/// What is wrong with the name of a server.
fn misnamed(at: &Place<'_>, name: &str) -> Option<ConfigFault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ');
    let holds = (1..=64).contains(&name.len()) && name.chars().all(plain) && !source_name(name).is_empty();
    (!holds).then(|| at.fault(&[], "a server's name is 1 to 64 letters, digits, blanks and . _ - /: rename it"))
}

/// Servers that nobody could tell apart by the names of their tools.
fn same_source(document: &Document, base: &[&str], all: &BTreeMap<String, Entry>) -> Vec<ConfigFault> {
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut in_order: Vec<_> = all.iter().collect();
    in_order.sort_by_key(|(_, entry)| entry.line);
    let mut faults = Vec::new();
    for (name, entry) in in_order {
        let source = source_name(name);
        if let Some(had) = first.get(&source) {
            let line = all.get(*had).map_or(0, |entry| entry.line);
            let what = format!("its tools would be named {source}__… as those of {had} (line {line}): rename one");
            let path = [base, &[name.as_str()]].concat();
            faults.push(ConfigFault { line: entry.line, ..document.fault(&path, what) });
        } else {
            first.insert(source, name);
        }
    }
    faults
}
