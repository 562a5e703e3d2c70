//! The forms of the Director's answers. Comments on fields are what the model reads, if the prompt does not say it.

use casebook_agent::model::form::plain;
use casebook_protocol::{Move, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanForm {
    pub question: String,
    /// Domains of the roster; empty for every Expert, as in discovery.
    #[serde(default)]
    pub to: Vec<String>,
    /// Names, addresses, hashes, ids as findings or the alert write them; at most 50.
    #[serde(default)]
    pub follow: Vec<String>,
    #[serde(default)]
    pub takes_up: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideForm {
    #[schemars(schema_with = "plain::<Move>")]
    pub next: Move,
    pub reason: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportForm {
    #[schemars(schema_with = "plain::<Verdict>")]
    pub verdict: Verdict,
    pub summary: String,
    pub root_cause: String,
    #[serde(default)]
    pub actions: Vec<String>,
    #[serde(default)]
    pub open_questions: Vec<String>,
    /// Ids.
    pub findings: Vec<String>,
}
