//! The file format of the user's servers.

use std::collections::BTreeMap;

use casebook_runtime::config::{self, Check};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The keys under which clients keep their servers.
const KEYS: [&str; 2] = ["mcpServers", "servers"];

/// The MCP servers under their key.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Under {
    #[serde(rename = "mcpServers", alias = "servers")]
    pub(super) servers: BTreeMap<String, Server>,
}

/// An MCP server: `command` with `args` and `env` for a program that is started here, or `url` with `headers` for one
/// that is reached over HTTP. Keys of other clients are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    /// The transport: stdio or http. It may be left out.
    pub(super) r#type: Option<String>,
    /// The same as `type`, as some clients write it.
    pub(super) transport: Option<String>,
    /// The program of the server, such as npx.
    pub(super) command: Option<String>,
    /// The program's arguments, a list of texts.
    pub(super) args: Option<Vec<Scalar>>,
    /// The program's environment, names and values; "${VAR}" inserts one of our variables.
    pub(super) env: Option<BTreeMap<String, Option<Scalar>>>,
    /// The folder in which the program runs.
    pub(super) cwd: Option<String>,
    /// The address of the server, such as https://host/mcp.
    pub(super) url: Option<String>,
    /// The same as `url`, as some clients write it.
    pub(super) server_url: Option<String>,
    /// The same as `url`, as some clients write it.
    pub(super) http_url: Option<String>,
    /// Headers of each request, names and values; "${VAR}" inserts one of our variables.
    pub(super) headers: Option<BTreeMap<String, Scalar>>,
    /// True to disable the server.
    pub(super) disabled: Option<bool>,
    /// False to disable the server.
    pub(super) enabled: Option<bool>,
}

impl Server {
    pub(super) fn is_off(&self) -> bool {
        self.disabled == Some(true) || self.enabled == Some(false)
    }
}

/// A text, a number, true or false.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = ["string", "number", "boolean"]))]
pub(super) struct Scalar(pub(super) String);

/// The key of the map of servers; none if the servers are the whole file. Reports an unclear file to `check`.
pub(super) fn place(root: &Map<String, Value>, check: &mut Check) -> Option<&'static str> {
    let found: Vec<&'static str> = KEYS.into_iter().filter(|key| root.contains_key(*key)).collect();
    let is_server = |key: &str| {
        let inside = |k: &str| root.get(key).is_some_and(|value| value.get(k).is_some());
        ["command", "url", "serverUrl", "httpUrl"].into_iter().any(inside)
    };
    match found[..] {
        [key] if is_server(key) && root.len() > 1 => {
            check.wrong(&[key], "may be a server or hold them; write {\"mcpServers\": {\"NAME\": {…}}}");
        }
        [key] if !is_server(key) => return Some(key),
        [] if !root.keys().all(|key| is_server(key)) => {
            check.wrong(&[], "names no servers; write {\"mcpServers\": {\"NAME\": {\"command\": …}}}");
        }
        [_, second] => check.wrong(&[second], "is beside mcpServers; move its servers there"),
        _ => {}
    }
    None
}

pub(super) fn schema() -> Value {
    let mut server = config::schema::<Server>();
    if let Some(map) = server.as_object_mut() {
        map.remove("$schema");
        map.remove("title");
    }
    let names = json!({"pattern": "^[A-Za-z0-9._/ -]{1,64}$"});
    let servers = json!({"type": "object", "propertyNames": names, "additionalProperties": server});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mcp.json",
        "description": "The MCP servers, in the format of other MCP clients.",
        "type": "object",
        "properties": {"mcpServers": servers, "servers": servers},
        "anyOf": [{"required": ["mcpServers"]}, {"required": ["servers"]}, servers],
    })
}
