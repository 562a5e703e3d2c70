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
    /// Its tools.
    pub tools: Vec<ToolSpec>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The tool answered.
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
    /// The tool's name.
    pub tool: String,
    /// The arguments, canonical JSON.
    pub arguments: String,
    /// How it ended.
    pub status: CallStatus,
    /// The whole result, or the error message.
    pub result: ArtifactId,
    /// Size of the result in bytes.
    pub bytes: u64,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
}
