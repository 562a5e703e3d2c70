//! The file as it is written.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

/// An Expert of Casebook: what it knows, how it works, and what it may call.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(title = "Expert", deny_unknown_fields)]
pub(super) struct Expert {
    /// Its domain in 1 to 32 of a-z, 0-9 and hyphen, by which the Director addresses it, such as cloud.
    #[schemars(regex(pattern = "^[a-z0-9-]{1,32}$"))]
    pub(super) name: String,
    /// What it knows and what it can look at, in one or two sentences: the Director reads this.
    #[schemars(length(min = 1, max = 2000))]
    pub(super) description: String,
    /// What data it expects, for whoever sets it up: sources, fields, time span.
    #[schemars(length(max = 20000))]
    pub(super) expects: Option<String>,
    /// What it is told beyond what every Expert is told: what to look for, what is normal here.
    #[schemars(length(min = 1, max = 40000))]
    pub(super) instructions: String,
    /// The model that plays it, by its name in the models file, or analyst.
    #[schemars(length(min = 1, max = 64))]
    pub(super) model: Option<String>,
    /// A list of what it may call, each written server/tool, such as evidence/* or github/search_*.
    #[schemars(length(min = 1, max = 200))]
    pub(super) tools: Vec<Tool>,
    /// A list of the sources of the evidence that it reads, by their domains or ids, such as [cloud, identity].
    #[schemars(length(min = 1, max = 200))]
    pub(super) sources: Option<Vec<Source>>,
    /// A map of what one of its tasks may use at the most, such as { turns: 12, cost: "0.50", time: 10m }.
    pub(super) limits: Option<Limits>,
}

/// What it may call, written server/tool; * stands for any characters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Tool(#[schemars(length(min = 1, max = 200))] pub(super) String);

/// The domain or the id of a source of the evidence; * stands for any characters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Source(#[schemars(length(min = 1, max = 200))] pub(super) String);

/// What one task may use at the most.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Limits {
    /// How many turns it may take; the last one offers no tools.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) turns: Option<u32>,
    /// How many calls of tools it may make.
    #[schemars(range(min = 0, max = 100_000))]
    pub(super) tool_calls: Option<u32>,
    /// How many calls of a language model it may make.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) model_calls: Option<u32>,
    /// How many tokens it may use, in and out.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub(super) tokens: Option<u64>,
    /// What it may cost, an amount such as "2.50".
    pub(super) cost: Option<Amount>,
    /// How long it may work, from 1s to 24h, such as 90s or 10m.
    #[schemars(regex(pattern = "^[0-9]{1,9}(s|m|h)$"))]
    pub(super) time: Option<String>,
}

/// An amount such as 2.50, as a text or a number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Amount {
    Text(String),
    Number(Number),
}
