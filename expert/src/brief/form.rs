//! The form of an Expert's answer. Comments on fields are what the model reads, if the prompt does not say it.

use casebook_agent::model::form::{described, one_of, plain};
use casebook_protocol::{Bearing, EntityKind, FindingKind, Weight, closed};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InvestigateForm {
    pub findings: Vec<FindingForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingForm {
    #[schemars(schema_with = "one_of::<FindingKind>")]
    pub kind: FindingKind,
    pub claim: String,
    pub time: Option<String>,
    /// The end of a period.
    pub until: Option<String>,
    #[serde(default)]
    pub entities: Vec<EntityForm>,
    #[schemars(schema_with = "one_of::<Bearing>")]
    pub bearing: Bearing,
    #[schemars(schema_with = "weights")]
    pub weight: Weight,
    #[serde(default)]
    pub about_alert: bool,
    /// MITRE ATT&CK id.
    pub technique: Option<String>,
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    #[serde(default)]
    pub citations: Vec<CitationForm>,
    /// What would settle what stays open.
    pub look_next: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityForm {
    #[schemars(schema_with = "plain::<EntityKind>")]
    pub kind: EntityKind,
    pub value: String,
}

closed! {
    /// The kinds of citation.
    pub(super) enum CitationKind {
        Literal = "literal", "a text that stands in the result";
        Count = "count", "a number of records";
        Aggregate = "aggregate", "another value that the query gives";
        Absence = "absence", "the query finds nothing";
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CitationForm {
    #[schemars(schema_with = "plain::<CitationKind>")]
    pub kind: CitationKind,
    pub call: String,
    pub at: String,
    pub quote: Option<String>,
    pub value: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
}

fn weights(_: &mut SchemaGenerator) -> Schema {
    described::<Weight>(
        "How much it would say if true; for an exonerating finding, how hard it is to explain otherwise.",
    )
}
