//! The forms of the Critic's answers. Comments on fields are what the model reads, if the prompt does not say it.

use casebook_agent::model::form::plain;
use casebook_protocol::GapKind;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewForm {
    pub summary: String,
    pub findings: Vec<JudgementForm>,
    #[serde(default)]
    pub leads: Vec<LeadForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeadForm {
    pub what: String,
    pub why: String,
    pub call: String,
    /// JSON pointer such as /records/3, or `line 3` of a text.
    pub at: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgementForm {
    /// Its id.
    pub finding: String,
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
    pub rationale: String,
    #[serde(default)]
    pub corroborated_by: Vec<String>,
    /// Findings that cannot be true together with it.
    #[serde(default)]
    pub contradicted_by: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimelineForm {
    pub narrative: String,
    #[serde(default)]
    pub keep: Vec<usize>,
    #[serde(default)]
    pub events: Vec<EventForm>,
    #[serde(default)]
    pub gaps: Vec<GapForm>,
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventForm {
    pub description: String,
    pub findings: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GapForm {
    #[schemars(schema_with = "plain::<GapKind>")]
    pub kind: GapKind,
    pub description: String,
}
