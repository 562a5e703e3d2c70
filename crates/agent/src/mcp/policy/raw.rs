//! The file as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What Casebook allows of the MCP servers in mcp.json, and what it holds them to.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(title = "tools.yaml", deny_unknown_fields)]
pub(super) struct File {
    /// For each server by its name in mcp.json, what is said of it.
    pub(super) servers: Option<BTreeMap<String, Option<Server>>>,
}

/// What is said of one server: a map of keys such as read_only and timeout.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Server {
    /// `evidence` for a server that is `casebook evidence`, else general, or nothing.
    pub(super) kind: Option<Kind>,
    /// What data the server gives, in words, for Experts and Critic.
    pub(super) about: Option<String>,
    /// A list of names of tools of which you know that they only read, such as [search_*, get_*].
    pub(super) read_only: Option<Vec<ToolName>>,
    /// A list of names of tools that may change something and may be called, such as [add_label].
    pub(super) writes: Option<Vec<ToolName>>,
    /// A list of names of tools whose answer to the same question is the same, such as [get_*].
    pub(super) repeatable: Option<Vec<ToolName>>,
    /// How many calls there may be at once, from 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub(super) concurrency: Option<u8>,
    /// How long a call may take, from 100ms to 1h, such as 60s, 500ms or 2m.
    #[schemars(regex(pattern = "^[0-9]{1,9}(ms|s|m|h)$"))]
    pub(super) timeout: Option<String>,
    /// How long the server may take to begin, from 100ms to 1h, such as 30s, 500ms or 2m.
    #[schemars(regex(pattern = "^[0-9]{1,9}(ms|s|m|h)$"))]
    pub(super) start_timeout: Option<String>,
    /// A list of names of environment variables that a child process gets, such as [PATH, HOME].
    pub(super) environment: Option<Vec<Variable>>,
    /// For variables of a child's environment, by name, where the secret is: NAME: { env: OURS }.
    pub(super) secrets: Option<BTreeMap<String, Secret>>,
    /// For headers of requests, by name, where the secret is: Authorization: { file: PATH }.
    pub(super) headers: Option<BTreeMap<String, Secret>>,
    /// For names of tools, the arguments that are fixed: search_*: { org: acme }.
    pub(super) scope: Option<BTreeMap<String, Map<String, Value>>>,
    /// A name of what wrote the data; servers of one sensor are not independent of each other.
    #[schemars(length(min = 1, max = 80))]
    pub(super) sensor: Option<String>,
    /// False where whoever holds the alert's subject could not have written what the server returns, else true.
    pub(super) written_on_subject_host: Option<bool>,
}

/// What is behind a server.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    General,
    Evidence,
}

/// The name of a tool, in which * stands for any characters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct ToolName(#[schemars(length(min = 1, max = 128))] pub(super) String);

/// The name of an environment variable, such as PATH.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Variable(#[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"))] pub(super) String);

/// Where the secret is, never the secret itself: { env: NAME } or { file: PATH }.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1, "maxProperties" = 1))]
pub(super) struct Secret {
    /// The name of the environment variable that holds the secret.
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"))]
    pub(super) env: Option<String>,
    /// The path of the file that holds the secret.
    #[schemars(length(min = 1))]
    pub(super) file: Option<String>,
}
