//! The policy for the user's servers: our file `tools.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source, is_variable, or_default, time};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::pattern::Pattern;
use super::servers::is_header;

use overlap::overlap;

mod overlap;
#[cfg(test)]
mod tests;

const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub servers: BTreeMap<String, ServerPolicy>,
}

/// What Casebook allows the MCP servers in mcp.json.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "tools.yaml")]
struct File {
    /// A map from the names of servers in mcp.json to their settings, such as read_only and timeout.
    servers: Option<BTreeMap<String, Option<ServerPolicy>>>,
}

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any server.
    #[default]
    General,
    /// `casebook evidence`: its tools keep their own names, are repeatable and only read, and their results are
    /// records with file, line and time.
    Evidence,
}

/// The place of the secret, never the secret itself: { env: NAME } or { file: PATH }.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// The name of the environment variable that holds the secret.
    Env(#[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"))] String),
    /// The path of the file that holds the secret. A line end at its end is ignored.
    File(#[schemars(length(min = 1))] PathBuf),
}

/// A map of settings such as read_only and timeout.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerPolicy {
    /// `evidence` for a server that is `casebook evidence`; default: general.
    pub kind: Kind,
    /// A description of the server's data for Experts and Critic.
    pub about: String,
    /// A list of names of tools that only read, such as [search_*, get_*].
    #[serde(deserialize_with = "or_default")]
    pub read_only: Vec<Pattern>,
    /// A list of names of tools that may change something and may be called, such as [add_label].
    #[serde(deserialize_with = "or_default")]
    pub writes: Vec<Pattern>,
    /// A list of names of tools that give the same answer to the same call, such as [get_*].
    #[serde(deserialize_with = "or_default")]
    pub repeatable: Vec<Pattern>,
    /// The most concurrent calls, from 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: usize,
    /// The longest time of a call, from 100ms to 1h, such as 60s, 500ms or 2m.
    #[serde(deserialize_with = "time")]
    #[schemars(with = "String", regex(pattern = "^[0-9]{1,9}(ms|s|m|h)$"))]
    pub timeout: Duration,
    /// The longest time for the start of the server, from 100ms to 1h, such as 30s, 500ms or 2m.
    #[serde(deserialize_with = "time")]
    #[schemars(with = "String", regex(pattern = "^[0-9]{1,9}(ms|s|m|h)$"))]
    pub start_timeout: Duration,
    /// A list of names of environment variables that a child process gets, such as [PATH, HOME].
    #[serde(deserialize_with = "or_default")]
    #[schemars(inner(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$")))]
    pub environment: Vec<String>,
    /// A map from variables of a child's environment to the places of their secrets: NAME: { env: OURS }.
    #[serde(deserialize_with = "or_default")]
    pub secrets: BTreeMap<String, SecretSource>,
    /// A map from headers of requests to the places of their secrets: Authorization: { file: PATH }.
    #[serde(deserialize_with = "or_default")]
    pub headers: BTreeMap<String, SecretSource>,
    /// A map from names of tools to their fixed arguments: search_*: { org: acme }.
    ///
    /// Callers cannot choose or see them.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "BTreeMap<String, Map<String, Value>>")]
    pub scope: BTreeMap<Pattern, Map<String, Value>>,
    /// A name for the system that wrote the data. Servers of one sensor are not independent of each other.
    #[schemars(length(min = 1, max = 80))]
    pub sensor: Option<String>,
    /// False if the subject of the alert cannot write what the server returns, else true. A dismissal must not depend
    /// on data that the subject can write.
    #[serde(rename = "written_on_subject_host")]
    pub on_subject_host: bool,
}

impl Default for ServerPolicy {
    fn default() -> Self {
        Self {
            kind: Kind::General,
            about: String::new(),
            read_only: Vec::new(),
            writes: Vec::new(),
            repeatable: Vec::new(),
            concurrency: 4,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(30),
            environment: Vec::new(),
            secrets: BTreeMap::new(),
            headers: BTreeMap::new(),
            scope: BTreeMap::new(),
            sensor: None,
            on_subject_host: true,
        }
    }
}

impl Policy {
    /// The policy in `text`, the content of `file`. Relative paths in it start at its folder.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Yaml, file, text);
        let written: File = source.read()?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut servers = BTreeMap::new();
        let mut check = Check::default();
        for (name, server) in written.servers.unwrap_or_default() {
            let mut server = server.unwrap_or_default();
            check.at(&["servers", &name], |check| server.check(check));
            for secret in server.secrets.values_mut().chain(server.headers.values_mut()) {
                if let SecretSource::File(path) = secret {
                    *path = folder.join(&path);
                }
            }
            servers.insert(name, server);
        }
        source.holds(check)?;
        Ok(Self { servers })
    }

    pub fn of(&self, server: &str) -> ServerPolicy {
        self.servers.get(server).cloned().unwrap_or_default()
    }

    pub fn schema() -> Value {
        config::schema::<File>()
    }
}

impl ServerPolicy {
    fn check(&self, check: &mut Check) {
        check.number("concurrency", Some(self.concurrency), 1..=64);
        for (key, time) in [("timeout", self.timeout), ("start_timeout", self.start_timeout)] {
            if !(LEAST..=MOST).contains(&time) {
                check.wrong(&[key], "is out of range; write a time from 100ms to 1h");
            }
        }
        for (n, _) in self.environment.iter().enumerate().filter(|(_, name)| !is_variable(name)) {
            check.wrong(&["environment", &n.to_string()], "expected the name of a variable; write one such as PATH");
        }
        if let Some(sensor) = &self.sensor {
            check.text("sensor", sensor, 80);
        }
        self.check_secrets(check);
        self.check_patterns(check);
        self.check_scope(check);
    }

    fn check_secrets(&self, check: &mut Check) {
        for name in self.secrets.keys() {
            if !is_variable(name) {
                let what = "expected the name of an environment variable; write one such as GITHUB_TOKEN";
                check.wrong(&["secrets", name], what);
            }
            if self.environment.contains(name) {
                check.wrong(&["secrets", name], "is also named under environment; remove one of them");
            }
        }
        for name in self.headers.keys().filter(|name| !is_header(name)) {
            check.wrong(&["headers", name], "expected the name of a header; write one such as Authorization");
        }
        for (key, secrets) in [("secrets", &self.secrets), ("headers", &self.headers)] {
            for (name, secret) in secrets {
                let what = match secret {
                    SecretSource::Env(variable) if !is_variable(variable) => {
                        "expected the name of the environment variable that holds the secret, not the secret itself"
                    }
                    SecretSource::File(file) if file.as_os_str().is_empty() => "expected the path of a file",
                    SecretSource::Env(_) | SecretSource::File(_) => continue,
                };
                check.wrong(&[key, name], what);
            }
        }
    }

    /// Code may call a repeatable tool again, so it must not write.
    fn check_patterns(&self, check: &mut Check) {
        for (key, patterns) in
            [("read_only", &self.read_only), ("repeatable", &self.repeatable), ("writes", &self.writes)]
        {
            for (n, pattern) in patterns.iter().enumerate() {
                if pattern.as_str().is_empty() || pattern.as_str().len() > 128 {
                    check.wrong(&[key, &n.to_string()], "expected the name of a tool, in which * is any characters");
                } else if key != "writes" && self.may_write(pattern) {
                    let what = format!("{pattern} may match a tool under writes; name each tool in one of them");
                    check.wrong(&[key, &n.to_string()], what);
                }
            }
        }
    }

    /// True if `pattern` matches a tool under writes. Two overlapping wildcards are accepted, since no tool may have
    /// such a name.
    fn may_write(&self, pattern: &Pattern) -> bool {
        let clear = |w: &&Pattern| *w == pattern || w.is_exact() || pattern.is_exact();
        self.writes.iter().filter(clear).any(|w| overlap(w.as_str(), pattern.as_str()))
    }

    fn check_scope(&self, check: &mut Check) {
        for (n, (pattern, arguments)) in self.scope.iter().enumerate() {
            let name = pattern.as_str();
            if name.is_empty() || arguments.is_empty() {
                let what = "fixes nothing; write the name of a tool with arguments, or remove it";
                check.wrong(&["scope", name], what);
            }
            for (had, fixed) in self.scope.iter().take(n).filter(|(had, _)| overlap(had.as_str(), name)) {
                let differs =
                    |argument: &&String| fixed.get(*argument).is_some_and(|v| arguments.get(*argument) != Some(v));
                if let Some(argument) = arguments.keys().find(differs) {
                    let what = format!("fixes another value than {had}, which may match the same tool; fix it once");
                    check.wrong(&["scope", name, argument], what);
                }
            }
        }
    }
}
