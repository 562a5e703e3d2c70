use serde::{Deserialize, Serialize};

use crate::{ArtifactId, CallId, Domain, Timestamp};

/// A tool as its callers and the Critic see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique within its toolset, such as `search`.
    pub name: String,
    /// What the tool does, when to use it, and what it returns. Experts and the Critic read it.
    pub description: String,
    /// JSON Schema of the arguments as text, since the wire codec carries no free-form JSON.
    pub input_schema: String,
    /// The same call on unchanged evidence gives the same answer. Only then may code check a citation by calling again
    /// (rule "citation check").
    pub repeatable: bool,
}

impl ToolSpec {
    pub fn new(name: &str, description: &str, input_schema: &str, repeatable: bool) -> Self {
        let (name, description, input_schema) = (name.to_owned(), description.to_owned(), input_schema.to_owned());
        Self { name, description, input_schema, repeatable }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolset {
    /// Such as `evidence`.
    pub name: String,
    /// What data it gives access to.
    pub about: String,
    pub tools: Vec<ToolSpec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Answered,
    /// The tool refused or failed, and its message is the result.
    Failed,
}

/// One finished tool call. Its result is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    /// The Expert that called; none for the Director's and the Critic's own tools.
    pub domain: Option<Domain>,
    pub tool: String,
    /// Canonical JSON.
    pub arguments: String,
    pub status: CallStatus,
    /// The whole result, or the error message.
    pub result: ArtifactId,
    pub bytes: u64,
    pub started: Timestamp,
    pub ended: Timestamp,
}

impl ToolCall {
    /// An answered call of no Expert, at no time.
    pub fn answered(id: CallId, tool: impl Into<String>, arguments: impl Into<String>, result: &[u8]) -> Self {
        Self {
            id,
            domain: None,
            tool: tool.into(),
            arguments: arguments.into(),
            status: CallStatus::Answered,
            result: ArtifactId::of(result),
            bytes: result.len() as u64,
            started: Timestamp::default(),
            ended: Timestamp::default(),
        }
    }
}

/// The tools that examine what is recorded: results of the task's own calls, and the Expert's earlier findings. A citation
/// names the original call, never one of these.
pub const RESULT_TOOLS: [&str; 2] = [GET_RESULT, MY_FINDINGS];

/// The tool that examines the result of an earlier call of the task.
pub const GET_RESULT: &str = "get_result";

/// The tool that lists an Expert's own findings of earlier rounds.
pub const MY_FINDINGS: &str = "my_findings";

/// Separates the name of a server from that of its tool: `github__search_code`.
const BETWEEN: &str = "__";
/// The longest tool name that every model provider accepts.
const LONGEST: usize = 64;

/// The name `server__tool` under which a tool of an MCP server is offered and recorded. It has only characters that
/// every model provider accepts. The evidence tools have names without a server, so that no server can imitate them.
pub fn offered_name(server: &str, tool: &str) -> String {
    let tool: String = tool.chars().map(plain).collect();
    let name = format!("{}{BETWEEN}{tool}", source_name(server));
    if name.len() <= LONGEST {
        return name;
    }
    let digest = crate::hash::sha256_hex(name.as_bytes());
    let kept: String = name.chars().take(LONGEST - 9).collect();
    format!("{kept}-{}", digest.get(..8).unwrap_or_default())
}

/// The name of an MCP server as a source of evidence, which its tools' names begin with.
pub fn source_name(server: &str) -> String {
    let mut name: String = server.chars().take(30).map(plain).collect();
    while name.contains(BETWEEN) {
        name = name.replace(BETWEEN, "_");
    }
    name.trim_matches('_').to_owned()
}

/// The MCP server of an offered tool; none for the evidence tools and the result tools.
pub fn server_of(tool: &str) -> Option<&str> {
    tool.split_once(BETWEEN).map(|(server, _)| server)
}

const fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_name_says_whose_it_is_and_is_what_providers_take() {
        assert_eq!(offered_name("github", "search_code"), "github__search_code");
        assert_eq!(offered_name("my.server/1", "a b"), "my-server-1__a-b");
        assert_eq!(server_of(&offered_name("a__b_", "c__d")), Some("a_b"));
        let long = offered_name(&"s".repeat(50), &"t".repeat(80));
        assert_eq!(long.len(), 64);
        assert_eq!(server_of(&long), Some("s".repeat(30).as_str()));
        assert_ne!(long, offered_name(&"s".repeat(50), &"t".repeat(81)));
        assert_eq!(server_of("search"), None);
    }
}
