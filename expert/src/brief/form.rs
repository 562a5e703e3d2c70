//! The form of an Expert's answer. Comments on fields are what the model reads.

use casebook_agent::model::form::{TimeForm, described, one_of};
use casebook_protocol::{Bearing, EntityKind, FindingKind, Weight, closed};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InvestigateForm {
    /// The findings, the most telling first; empty when the evidence holds nothing on the question.
    pub findings: Vec<FindingForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingForm {
    #[schemars(schema_with = "one_of::<FindingKind>")]
    pub kind: FindingKind,
    /// One sentence. Names from the evidence in `backquotes`; every time, address, hash, number and
    /// quoted name must occur in what is cited.
    pub claim: String,
    /// When; needed for an occurrence, null where the finding has no time.
    pub time: Option<TimeForm>,
    /// What it is about, each as the evidence writes it and as it occurs in what is cited.
    pub entities: Vec<EntityForm>,
    #[schemars(schema_with = "one_of::<Bearing>")]
    pub bearing: Bearing,
    #[schemars(schema_with = "weights")]
    pub weight: Weight,
    /// True only when it is about the very activity that raised the alert.
    pub about_alert: bool,
    /// A MITRE ATT&CK technique id such as T1059.004, where one clearly fits; otherwise null.
    pub technique: Option<String>,
    /// How sure you are.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// What it rests on: at least one.
    pub citations: Vec<CitationForm>,
    /// What would settle what stays open; null where nothing does.
    pub look_next: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityForm {
    #[schemars(schema_with = "one_of::<EntityKind>")]
    pub kind: EntityKind,
    /// As the evidence writes it.
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
    #[schemars(schema_with = "one_of::<CitationKind>")]
    pub kind: CitationKind,
    /// The id of the call, from the first line of its result.
    pub call: String,
    /// A JSON pointer into the result, such as /records/0/raw or /total; "" is the whole; `line 3` for a
    /// line of a result that is text.
    pub at: String,
    /// For literal: what stands there, word for word. Otherwise null.
    pub quote: Option<String>,
    /// For count: the number. For aggregate: the value. Otherwise null.
    pub value: Option<String>,
    /// For absence: the start of the window claimed, UTC, within the window searched; null for all of
    /// the evidence, where all of it was searched. Otherwise null.
    pub from: Option<String>,
    /// For absence: the end of the window claimed, likewise.
    pub to: Option<String>,
}

fn weights(_: &mut SchemaGenerator) -> Schema {
    described::<Weight>(
        "How much it would say if true; for an exonerating finding, how hard it is to explain otherwise.",
    )
}
