//! The file as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document::{self, Content, Document};
use crate::fault::ConfigFault;

/// The keys under which clients keep their servers.
const KEYS: [&str; 2] = ["mcpServers", "servers"];

/// An MCP server: `command` with `args` and `env` for a program that is started here, or `url` with `headers`
/// for one that is reached over HTTP. Keys of other clients are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    /// How it is reached: stdio or http. It need not be said.
    pub(super) r#type: Option<String>,
    /// The same as `type`, as some clients write it.
    pub(super) transport: Option<String>,
    /// The program that is the server, such as npx.
    pub(super) command: Option<String>,
    /// The program's arguments, a list of texts.
    pub(super) args: Option<Vec<Scalar>>,
    /// The program's environment, names and values; "${VAR}" stands for a variable of ours.
    pub(super) env: Option<BTreeMap<String, Option<Scalar>>>,
    /// The folder in which the program runs.
    pub(super) cwd: Option<String>,
    /// The address of the server, such as https://host/mcp.
    pub(super) url: Option<String>,
    /// The same as `url`, as some clients write it.
    pub(super) server_url: Option<String>,
    /// The same as `url`, as some clients write it.
    pub(super) http_url: Option<String>,
    /// Headers of each request, names and values; "${VAR}" stands for a variable of ours.
    pub(super) headers: Option<BTreeMap<String, Scalar>>,
    /// True for a server that is not to be used.
    pub(super) disabled: Option<bool>,
    /// False for a server that is not to be used.
    pub(super) enabled: Option<bool>,
}

impl Server {
    /// It is not to be used.
    pub(super) fn is_off(&self) -> bool {
        self.disabled == Some(true) || self.enabled == Some(false)
    }
}

/// A text, or a number or true or false that stands for its text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Scalar {
    Text(String),
    Number(serde_json::Number),
    Bool(bool),
}

impl Scalar {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Bool(bool) => bool.to_string(),
        }
    }
}

/// Where in the file the servers are.
pub(super) fn place(document: &Document) -> Result<Vec<&'static str>, Vec<ConfigFault>> {
    let root = document.root();
    let fault = |path: &[&str], what: &str| Err(vec![document.fault(path, what)]);
    let Content::Map(entries) = &root.content else {
        return fault(&[], "is no object: write {\"mcpServers\": {\"NAME\": {…}}}");
    };
    let found: Vec<&'static str> = KEYS.into_iter().filter(|key| root.get(key).is_some()).collect();
    let is_server = |key: &str| {
        let inside = |k: &str| root.get(key).is_some_and(|node| node.get(k).is_some());
        ["command", "url", "serverUrl", "httpUrl"].into_iter().any(inside)
    };
    match found[..] {
        [_] if found.iter().any(|key| is_server(key) && entries.len() > 1) => {
            fault(&[KEYS[0]], "may be a server or hold them: write {\"mcpServers\": {\"NAME\": {…}}}")
        }
        [key] if is_server(key) => Ok(Vec::new()),
        [key] => Ok(vec![key]),
        [] if entries.iter().all(|(key, _)| is_server(&key.text)) => Ok(Vec::new()),
        [] => fault(&[], "names no servers: write {\"mcpServers\": {\"NAME\": {\"command\": …}}}"),
        _ => fault(&[KEYS[1]], "stands beside mcpServers: move its servers there"),
    }
}

/// The JSON Schema of the file in each of its forms.
pub(super) fn schema() -> Value {
    let mut server = document::schema::<Server>();
    if let Some(map) = server.as_object_mut() {
        map.remove("$schema");
        map.remove("title");
    }
    let names = json!({"pattern": "^[A-Za-z0-9._/ -]{1,64}$"});
    let servers = json!({"type": "object", "propertyNames": names, "additionalProperties": server});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mcp.json",
        "description": "The MCP servers that there are, as other MCP clients keep them.",
        "type": "object",
        "properties": {"mcpServers": servers, "servers": servers},
        "anyOf": [{"required": ["mcpServers"]}, {"required": ["servers"]}, servers],
    })
}
