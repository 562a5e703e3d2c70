//! The models file: models, their assignment to roles, and the limits of tasks. Every fault has its line and what to
//! write.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use casebook_protocol::{Domain, Phase, Role, TaskKind};
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::price::Price;

pub use adjust::NoModel;
pub use limits::Limits;

mod adjust;
mod limits;
mod raw;
#[cfg(test)]
mod tests;

/// The name of the built-in analyst in the models file.
pub const ANALYST: &str = "analyst";

/// The service of a model, which decides the format of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Any server with OpenAI Chat Completions (Ollama, vLLM, gateways), at a base URL.
    OpenaiCompatible,
    /// Google Gemini, over its interface for OpenAI Chat Completions.
    Gemini,
    /// Amazon Bedrock, over its interface for OpenAI Chat Completions, with an API key, at the base URL of a region.
    Bedrock,
}

impl Provider {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    /// The name in OpenTelemetry's conventions.
    #[must_use]
    pub const fn vendor(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai | Self::OpenaiResponses => "openai",
            Self::OpenaiCompatible => "openai_compatible",
            Self::Gemini => "gcp.gemini",
            Self::Bedrock => "aws.bedrock",
        }
    }

    /// The default way to answer. Unknown servers may ignore a response format, some drop tool calls if there is one,
    /// and Gemini refuses both together.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Anthropic | Self::Openai | Self::OpenaiResponses => Way::Native,
            Self::OpenaiCompatible | Self::Gemini | Self::Bedrock => Way::SubmitTool,
        }
    }

    /// The default address; none if the file must have it.
    #[must_use]
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::Openai | Self::OpenaiResponses => Some("https://api.openai.com/v1/"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/openai/"),
            Self::OpenaiCompatible | Self::Bedrock => None,
        }
    }

    /// The base URL for `url`. For Gemini and Bedrock, the address of their own format is changed to that of their
    /// OpenAI interface.
    fn chat_url(self, url: &str) -> String {
        match self {
            Self::Gemini if url.ends_with("/v1beta") => format!("{url}/openai/"),
            Self::Bedrock if url.matches('/').count() == 2 => format!("{url}/openai/v1/"),
            _ => format!("{url}/"),
        }
    }
}

/// How a model gives its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Structured output of the provider.
    Native,
    /// The arguments of a tool named `submit`.
    SubmitTool,
}

/// How much a model thinks. Each provider knows some of these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// The place of a key. The models file never contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Env(String),
    /// In this file. White space around the key is ignored.
    File(String),
    /// The server needs no key.
    Keyless,
}

/// Parameters of a model. Unset ones are not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters {
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// Above 0, at most 1.
    pub top_p: Option<f64>,
    pub effort: Option<Effort>,
    /// For providers that can repeat a reply.
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The name in the file, as in [`crate::model::Ask::model`].
    pub name: String,
    pub provider: Provider,
    /// The name at the provider.
    pub provider_model: String,
    /// Ends in `/`.
    pub base_url: String,
    pub key: KeySource,
    pub window: u32,
    pub max_output: u32,
    pub way: Way,
    pub parameters: Parameters,
    pub timeout: Duration,
    pub concurrency: u32,
    /// None if the cost is unknown, which counts as zero.
    pub price: Option<Price>,
    /// Models to use if this one fails, as the file has them.
    pub fallback: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelSelection {
    /// The model and its fallbacks in order, without duplicates. Never empty.
    pub chain: Vec<Profile>,
    pub limits: Limits,
}

/// The model and limits of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Choice {
    /// The name of a model of this file, or "analyst", the built-in one.
    model: Option<String>,
    /// A map of the limits of one task, such as { turns = 12, tool_calls = 40, tokens = 200000 }.
    limits: Limits,
}

impl Choice {
    fn over(&self, under: Self) -> Self {
        Self { model: self.model.clone().or(under.model), limits: self.limits.over(under.limits) }
    }
}

/// The model and limits of a role, with changes by phase, task and domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RoleChoice {
    /// The name of a model of this file, or "analyst", the built-in one.
    model: Option<String>,
    /// A map of the limits of one task, such as { turns = 12, tool_calls = 40, tokens = 200000 }.
    limits: Limits,
    /// A map of changes by phase: discovery, trace, conclude.
    #[schemars(
        with = "BTreeMap<String, Choice>",
        extend("propertyNames" = {"enum": ["discovery", "trace", "conclude"]})
    )]
    phases: BTreeMap<Phase, Choice>,
    /// A map of changes by task of the role: plan, decide, report, investigate, review, timeline.
    #[schemars(
        with = "BTreeMap<String, Choice>",
        extend("propertyNames" = {"enum": ["plan", "decide", "report", "investigate", "review", "timeline"]})
    )]
    tasks: BTreeMap<TaskKind, Choice>,
    /// A map of changes by domain of an Expert.
    #[schemars(with = "BTreeMap<String, Choice>", extend("propertyNames" = {"pattern": "^[a-z0-9-]{1,32}$"}))]
    domains: BTreeMap<Domain, Choice>,
}

impl RoleChoice {
    fn base(&self) -> Choice {
        Choice { model: self.model.clone(), limits: self.limits }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    models: BTreeMap<String, Profile>,
    roles: BTreeMap<Role, RoleChoice>,
    /// Each request to a model is stored with the investigation.
    pub keep_requests: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { models: BTreeMap::new(), roles: BTreeMap::new(), keep_requests: true }
    }
}

impl Config {
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Toml, file.as_ref(), text);
        let mut check = Check::default();
        let config = source.read::<raw::File>()?.config(&mut check);
        source.holds(check)?;
        Ok(config)
    }

    pub fn schema() -> serde_json::Value {
        config::schema::<raw::File>()
    }

    pub fn models(&self) -> impl Iterator<Item = &Profile> {
        self.models.values()
    }

    pub fn model(&self, name: &str) -> Option<&Profile> {
        self.models.get(name)
    }

    /// The models and limits of a task; none for the built-in analyst. Settings of the domain override those of the
    /// task, then of the phase, then of the role, key by key.
    pub fn select(&self, role: Role, kind: TaskKind, phase: Phase, domain: Option<&Domain>) -> Option<ModelSelection> {
        let role = self.roles.get(&role)?;
        let overrides = [role.phases.get(&phase), role.tasks.get(&kind), domain.and_then(|d| role.domains.get(d))];
        let choice = overrides.into_iter().flatten().fold(role.base(), |under, over| over.over(under));
        let model = choice.model.filter(|model| model != ANALYST)?;
        Some(ModelSelection { chain: self.chain(&model), limits: choice.limits })
    }

    /// `name` and its fallbacks, each followed by its own fallbacks.
    fn chain(&self, name: &str) -> Vec<Profile> {
        let mut chain: Vec<Profile> = Vec::new();
        let mut ahead = vec![name];
        while let Some(profile) = ahead.pop().and_then(|name| self.models.get(name)) {
            if chain.iter().all(|had| had.name != profile.name) {
                chain.push(profile.clone());
                ahead.extend(profile.fallback.iter().rev().map(String::as_str));
            }
        }
        chain
    }
}
