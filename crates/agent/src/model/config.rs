//! The models file: which models there are, who thinks with which, and what a task may use. Pure: the
//! text goes in, a checked [`Config`] comes out, and every fault names its line and what to write.

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

/// The name by which a role or an override asks for the built-in analyst.
pub const ANALYST: &str = "analyst";

/// Who serves a model, and so which format its requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Any server that speaks OpenAI Chat Completions (Ollama, vLLM, gateways), at a base URL.
    OpenaiCompatible,
    /// Google Gemini, by its interface for OpenAI Chat Completions.
    Gemini,
    /// Amazon Bedrock, by its interface for OpenAI Chat Completions, with an API key, at the base URL of a
    /// region.
    Bedrock,
}

impl Provider {
    /// The name as in the models file.
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

    /// Whose service it is, as OpenTelemetry's conventions call it.
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

    /// How a model of this provider answers when the file does not say: unknown servers may ignore a
    /// response format, some drop tool calls when one is given, and Gemini refuses both together.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Anthropic | Self::Openai | Self::OpenaiResponses => Way::Native,
            Self::OpenaiCompatible | Self::Gemini | Self::Bedrock => Way::SubmitTool,
        }
    }

    /// Where it is served when the file does not say; none when the file must.
    #[must_use]
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::Openai | Self::OpenaiResponses => Some("https://api.openai.com/v1/"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/openai/"),
            Self::OpenaiCompatible | Self::Bedrock => None,
        }
    }

    /// The base URL for `url`. The address of Gemini's or Bedrock's own format leads to their interface for
    /// OpenAI's.
    fn chat_url(self, url: &str) -> String {
        match self {
            Self::Gemini if url.ends_with("/v1beta") => format!("{url}/openai/"),
            Self::Bedrock if url.matches('/').count() == 2 => format!("{url}/openai/v1/"),
            _ => format!("{url}/"),
        }
    }
}

/// How a model gives its answer object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By the provider's own structured output.
    Native,
    /// As the arguments of a tool named `submit`.
    SubmitTool,
}

/// How hard a model is told to think. Providers know some of these each.
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

/// Where a key is. The key itself never stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In this environment variable.
    Env(String),
    /// In this file, whitespace around it ignored.
    File(String),
    /// The server wants none.
    Keyless,
}

/// Parameters of a model; what is not set is not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters {
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// Above 0, at most 1.
    pub top_p: Option<f64>,
    /// Effort.
    pub effort: Option<Effort>,
    /// For providers that can repeat themselves.
    pub seed: Option<u64>,
}

/// A model of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name in the file: what [`crate::model::Ask::model`] says.
    pub name: String,
    /// Who serves it.
    pub provider: Provider,
    /// Its name at the provider, sent exactly so.
    pub provider_model: String,
    /// Where it is served; ends in `/`.
    pub base_url: String,
    /// Where its key is.
    pub key: KeySource,
    /// Tokens that prompt and reply may have together.
    pub window: u32,
    /// Tokens that one reply may have.
    pub max_output: u32,
    /// How it answers.
    pub way: Way,
    /// Parameters.
    pub parameters: Parameters,
    /// Time for one attempt.
    pub timeout: Duration,
    /// Calls at the same time.
    pub concurrency: u32,
    /// Prices; none means that cost is not known and counts as zero.
    pub price: Option<Price>,
    /// Models to go on with when this one fails for good, as the file has them.
    pub fallback: Vec<String>,
}

/// Who thinks in a task, and what the task may use.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSelection {
    /// The model, then those to go on with, in order; never empty, none twice.
    pub chain: Vec<Profile>,
    /// The task's limits.
    pub limits: Limits,
}

/// Who thinks, and what a task may use: model and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Choice {
    /// The name of a model of this file, or "analyst", the built-in one.
    model: Option<String>,
    /// A map of what one task may use at most, such as { turns = 12, tool_calls = 40, tokens = 200000 }.
    limits: Limits,
}

impl Choice {
    fn over(&self, under: Self) -> Self {
        Self { model: self.model.clone().or(under.model), limits: self.limits.over(under.limits) }
    }
}

/// A role with what differs by phase, task and domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RoleChoice {
    /// The name of a model of this file, or "analyst", the built-in one.
    model: Option<String>,
    /// A map of what one task may use at most, such as { turns = 12, tool_calls = 40, tokens = 200000 }.
    limits: Limits,
    /// What differs in a phase: discovery, trace, conclude.
    #[schemars(
        with = "BTreeMap<String, Choice>",
        extend("propertyNames" = {"enum": ["discovery", "trace", "conclude"]})
    )]
    phases: BTreeMap<Phase, Choice>,
    /// What differs in a task of the role: plan, decide, report, investigate, review, timeline.
    #[schemars(
        with = "BTreeMap<String, Choice>",
        extend("propertyNames" = {"enum": ["plan", "decide", "report", "investigate", "review", "timeline"]})
    )]
    tasks: BTreeMap<TaskKind, Choice>,
    /// What differs for the Expert of a domain.
    #[schemars(with = "BTreeMap<String, Choice>", extend("propertyNames" = {"pattern": "^[a-z0-9-]{1,32}$"}))]
    domains: BTreeMap<Domain, Choice>,
}

impl RoleChoice {
    fn base(&self) -> Choice {
        Choice { model: self.model.clone(), limits: self.limits }
    }
}

/// A models file that holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    models: BTreeMap<String, Profile>,
    roles: BTreeMap<Role, RoleChoice>,
}

impl Config {
    /// The models file `file` with the content `text`.
    ///
    /// # Errors
    /// The first fault of form, or all faults of meaning.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Toml, file.as_ref(), text);
        let mut check = Check::default();
        let config = source.read::<raw::File>()?.config(&mut check);
        source.holds(check)?;
        Ok(config)
    }

    /// The JSON Schema of the file.
    pub fn schema() -> serde_json::Value {
        config::schema::<raw::File>()
    }

    /// All models, by name.
    pub fn models(&self) -> impl Iterator<Item = &Profile> {
        self.models.values()
    }

    /// The model `name`.
    pub fn model(&self, name: &str) -> Option<&Profile> {
        self.models.get(name)
    }

    /// Who thinks in such a task; none means the built-in analyst. What is set for the domain goes
    /// before what is set for the task, then the phase, then the role, key by key.
    pub fn select(&self, role: Role, kind: TaskKind, phase: Phase, domain: Option<&Domain>) -> Option<ModelSelection> {
        let role = self.roles.get(&role)?;
        let overrides = [role.phases.get(&phase), role.tasks.get(&kind), domain.and_then(|d| role.domains.get(d))];
        let choice = overrides.into_iter().flatten().fold(role.base(), |under, over| over.over(under));
        let model = choice.model.filter(|model| model != ANALYST)?;
        Some(ModelSelection { chain: self.chain(&model), limits: choice.limits })
    }

    /// `name` and its fallbacks, each with its own fallbacks behind it.
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
