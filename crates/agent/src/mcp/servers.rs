//! The servers that a user has, in the JSON that other MCP clients keep them in: pasted, unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use casebook_protocol::source_name;
use casebook_runtime::config::{Check, ConfigFaults, Form, Source};
use secrecy::SecretString;
use serde_json::{Map, Value};

pub(crate) use read::is_header;

mod fill;
mod raw;
mod read;
#[cfg(test)]
mod tests;

/// What an environment variable is.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The servers of a file.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// By name.
    pub all: BTreeMap<String, Way>,
    /// The names of those that are left out, since the file says that they are disabled.
    pub disabled: BTreeSet<String>,
    /// The keys that lead to them in the file.
    pub place: Vec<String>,
}

/// How a server is reached. Variables are filled in.
#[derive(Clone)]
pub enum Way {
    /// A child process that talks over its standard input and output.
    Child {
        command: String,
        args: Vec<String>,
        /// All of its environment, but for what the policy adds.
        env: BTreeMap<String, SecretString>,
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
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
pub fn host(url: &str) -> Option<&str> {
    url.split(['/', '?', '#']).nth(2).and_then(|host| host.rsplit('@').next())
}

impl Servers {
    /// The servers in `text`, the content of `file`; `variable` says what an environment variable is.
    /// A server that is disabled is left out, and nothing of it is filled in.
    ///
    /// # Errors
    /// The first fault of form, or all faults of meaning.
    pub fn parse(file: &Path, text: &str, variable: Variable<'_>) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Json, file, text);
        let root: Map<String, Value> = source.read()?;
        let mut check = Check::default();
        let place = raw::place(&root, &mut check);
        let written: BTreeMap<String, raw::Server> = match place {
            Some(_) => source.read::<raw::Under>()?.servers,
            None if check.is_empty() => source.read()?,
            None => BTreeMap::new(),
        };
        let mut servers = Self { place: place.map(str::to_owned).into_iter().collect(), ..Self::default() };
        // In the file's order, which a map of names does not keep.
        let names = place.map_or(Some(&root), |key| root.get(key)?.as_object()).into_iter().flat_map(Map::keys);
        for (name, server) in names.filter_map(|name| Some((name.as_str(), written.get(name)?))) {
            let path: Vec<&str> = place.into_iter().chain([name]).collect();
            check.at(&path, |check| servers.take(name, server, variable, check));
        }
        source.holds(check)?;
        Ok(servers)
    }

    /// The JSON Schema of the file.
    pub fn schema() -> Value {
        raw::schema()
    }

    fn take(&mut self, name: &str, server: &raw::Server, variable: Variable<'_>, check: &mut Check) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ');
        let own = source_name(name);
        if !(1..=64).contains(&name.len()) || !name.chars().all(plain) || own.is_empty() {
            check.wrong(&[], "a server's name has 1 to 64 letters, digits, blanks and . _ - /; rename it");
        }
        if server.is_off() {
            self.disabled.insert(name.to_owned());
            return;
        }
        if let Some(had) = self.all.keys().find(|had| source_name(had) == own) {
            check.wrong(&[], format!("its tools would be named {own}__… as those of {had}; rename one"));
        }
        self.all.extend(read::way(server, variable, check).map(|way| (name.to_owned(), way)));
    }
}
