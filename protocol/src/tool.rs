//! What a tool is to those who may call it.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, CallId, Domain, Timestamp};

/// One tool: its name, its documentation and the JSON Schema of its arguments, as the caller and the
/// Critic see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique within its toolset, such as `search`.
    pub name: String,
    /// What the tool does, when to use it, and what it returns: read by Experts and by the Critic.
    pub description: String,
    /// JSON Schema of the arguments, as text (the wire codec carries no free-form JSON).
    pub input_schema: String,
    /// The same call on unchanged evidence gives the same answer, so that a citation of it may be
    /// checked by calling again (rule 3.2).
    pub repeatable: bool,
}

/// The tools of one Expert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolset {
    /// The name of the toolset, such as `evidence`.
    pub name: String,
    /// What data stands behind it, in words.
    pub about: String,
    pub tools: Vec<ToolSpec>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Answered,
    /// The tool refused or failed, and its message is the result: a fact for the caller.
    Failed,
}

/// One finished tool call: the methodology that the Critic audits. Its result is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The deterministic id of the call.
    pub id: CallId,
    /// Whose call it was; none for the Director's and the Critic's own tools.
    pub domain: Option<Domain>,
    pub tool: String,
    /// The arguments, canonical JSON.
    pub arguments: String,
    pub status: CallStatus,
    /// The whole result, or the error message.
    pub result: ArtifactId,
    /// Size of the result in bytes.
    pub bytes: u64,
    pub started: Timestamp,
    pub ended: Timestamp,
}

/// The tools that look into the recorded results of a task's own calls. What they return is cited at the
/// call that they looked into.
pub const RESULT_TOOLS: [&str; 3] = ["search_result", "slice_result", "count_result"];

/// What parts a server's name from that of its tool: `github__search_code`.
const BETWEEN: &str = "__";
/// The longest name of a tool that every provider of language models takes.
const LONGEST: usize = 64;

/// The name under which the tool `tool` of the MCP server `server` is offered and recorded: what every
/// provider of language models takes as a name, `server__tool`. The tools over the evidence go by their
/// own names, without a server's, so that no other server can pass for them.
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

/// The MCP server `server` as a source of evidence, as its tools' names begin.
pub fn source_name(server: &str) -> String {
    let mut name: String = server.chars().take(30).map(plain).collect();
    while name.contains(BETWEEN) {
        name = name.replace(BETWEEN, "_");
    }
    name.trim_matches('_').to_owned()
}

/// The MCP server behind a tool's offered name; none for the tools over the evidence, and for our own.
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
