//! The user's servers in the JSON format of other MCP clients.

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

pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Debug, Clone, Default)]
pub struct Servers {
    pub all: BTreeMap<String, Way>,
    pub disabled: BTreeSet<String>,
    /// The key of the map of servers in the file, if any.
    pub place: Vec<String>,
}

#[derive(Clone)]
pub enum Way {
    Child {
        command: String,
        args: Vec<String>,
        /// Its whole environment, except for what the policy adds.
        env: BTreeMap<String, SecretString>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, SecretString>,
    },
}

impl fmt::Debug for Way {
    /// Omits what may be secret: arguments, values, and everything in an address except the host.
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

/// The host of an address. The rest may contain a secret: the query, the path, or the part before the host.
pub fn host(url: &str) -> Option<&str> {
    url.split(['/', '?', '#']).nth(2).and_then(|host| host.rsplit('@').next())
}

impl Servers {
    /// The servers in `text`, the content of `file`. `variable` looks up environment variables. Disabled servers are
    /// skipped, and their variables need not be set.
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
        let names = place.map_or(Some(&root), |key| root.get(key)?.as_object()).into_iter().flat_map(Map::keys);
        for (name, server) in names.filter_map(|name| Some((name.as_str(), written.get(name)?))) {
            let path: Vec<&str> = place.into_iter().chain([name]).collect();
            check.at(&path, |check| servers.take(name, server, variable, check));
        }
        source.holds(check)?;
        Ok(servers)
    }

    pub fn schema() -> Value {
        raw::schema()
    }

    fn take(&mut self, name: &str, server: &raw::Server, variable: Variable<'_>, check: &mut Check) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ');
        let own = source_name(name);
        if !(1..=64).contains(&name.len()) || !name.chars().all(plain) || own.is_empty() {
            check.wrong(&[], "expected a server's name of 1 to 64 letters, digits, blanks and . _ - /; rename it");
        }
        if server.is_off() {
            self.disabled.insert(name.to_owned());
            return;
        }
        if let Some(had) = self.all.keys().find(|had| source_name(had) == own) {
            check.wrong(&[], format!("its tools would have the prefix {own}__ like those of {had}; rename one"));
        }
        self.all.extend(read::way(server, variable, check).map(|way| (name.to_owned(), way)));
    }
}
