//! The record of a model call: enough to account for it, to continue from it, and to read what was sent.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, ModelCallId, Timestamp, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn in which the model may call tools or answer.
    Turn,
    Last,
    /// The one repair of an invalid answer, without tools.
    Repair,
}

/// A request as artifacts. Together with the calls of its task before it they give the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequest {
    /// The system prompt, the tools and the form of the answer, which many calls share.
    pub frame: ArtifactId,
    /// What the call adds to the messages of the call before it.
    pub added: ArtifactId,
    /// The long texts of what it adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<ArtifactId>,
}

impl KeptRequest {
    pub fn artifacts(&self) -> impl Iterator<Item = &ArtifactId> {
        [&self.frame, &self.added].into_iter().chain(&self.texts)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    pub id: ModelCallId,
    /// The name in the models file.
    pub model: String,
    /// The model as its provider names it.
    pub version: String,
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    pub purpose: Purpose,
    /// SHA-256 of the request, by which a replay finds the reply.
    pub request: ArtifactId,
    /// Bytes of the texts in the request.
    pub request_bytes: u64,
    /// Where the request is kept; none if the models file says so, and in logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptRequest>,
    pub reply: Option<ArtifactId>,
    /// Why the call failed after all attempts.
    pub failed: Option<String>,
    pub attempts: u32,
    pub usage: Usage,
    /// The provider did not report all tokens of `usage`, so that some are our own estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    pub started: Timestamp,
    pub ended: Timestamp,
}

impl ModelCall {
    /// A call without a reply yet, at no time.
    pub fn new(id: ModelCallId, model: impl Into<String>, prompt: impl Into<String>, purpose: Purpose) -> Self {
        Self {
            id,
            model: model.into(),
            version: String::new(),
            prompt: prompt.into(),
            purpose,
            request: ArtifactId::of(b""),
            request_bytes: 0,
            kept: None,
            reply: None,
            failed: None,
            attempts: 1,
            usage: Usage { model_calls: 1, ..Usage::default() },
            estimated: false,
            started: Timestamp::default(),
            ended: Timestamp::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Includes cached tokens.
    pub input: u64,
    /// Input tokens that were read from the provider's cache.
    pub cached: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_written: u64,
    /// Includes reasoning tokens.
    pub output: u64,
}
