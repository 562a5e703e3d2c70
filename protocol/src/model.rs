//! A call of a language model as it is kept: enough to account for it and to go on from it, without
//! the prompt, which follows from the view, the prompt's version and the calls before.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, ModelCallId, Timestamp, Usage};

/// What a model was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn in which it may call tools or answer.
    Turn,
    /// The last turn: no tools are offered, only an answer counts.
    Last,
    /// The one repair of an answer that did not hold: no tools are offered.
    Repair,
}

/// One finished call of a language model. Its reply is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The deterministic id of the call.
    pub id: ModelCallId,
    /// The model, by its name in the models file.
    pub model: String,
    /// The model as its provider names it.
    pub version: String,
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    pub purpose: Purpose,
    /// SHA-256 of the request: a replay finds its answer by it. The request itself is not stored.
    pub request: ArtifactId,
    /// Bytes of the request's texts.
    pub request_bytes: u64,
    /// The reply, or what sort of failure it was; none only where nothing was kept.
    pub reply: Option<ArtifactId>,
    /// Why it failed for good, attempts included.
    pub failed: Option<String>,
    /// Attempts that it took, the last one included.
    pub attempts: u32,
    pub usage: Usage,
    pub started: Timestamp,
    pub ended: Timestamp,
}

/// Tokens that the provider says it counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens in, cached ones included.
    pub input: u64,
    /// Of those, read from the provider's cache.
    pub cached: u64,
    /// Of those, written into the provider's cache.
    pub cache_written: u64,
    /// Tokens out, thoughts included.
    pub output: u64,
}
