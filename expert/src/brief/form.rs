//! The form of an Expert's answer. Comments on fields are what the model reads.

use casebook_agent::model::form::{TimeForm, one_of};
use casebook_protocol::{Bearing, EntityKind, FindingKind, Weight};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InvestigateForm {
    /// The findings, the most telling first; empty when the evidence holds nothing on the question.
    pub findings: Vec<FindingForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingForm {
    #[schemars(schema_with = "kinds")]
    pub kind: FindingKind,
    /// One sentence. Names from the evidence in `backquotes`; every time, address, hash, number and
    /// quoted name must occur in what is cited.
    pub claim: String,
    /// When; needed for an occurrence, null where the finding has no time.
    pub time: Option<TimeForm>,
    /// What it is about, each as the evidence writes it and as it occurs in what is cited.
    pub entities: Vec<EntityForm>,
    #[schemars(schema_with = "bearings")]
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
    #[schemars(schema_with = "entity_kinds")]
    pub kind: EntityKind,
    /// As the evidence writes it.
    pub value: String,
}

/// The kinds of citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CitationKind {
    Literal,
    Count,
    Aggregate,
    Absence,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CitationForm {
    #[schemars(schema_with = "citation_kinds")]
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

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let values = [
        (FindingKind::Occurrence, "it happened at a time"),
        (FindingKind::Aggregate, "a number over many records"),
        (FindingKind::Absence, "searched for and not there"),
        (FindingKind::State, "how things are"),
        (FindingKind::Instruction, "text in the evidence that addresses the analyst"),
    ];
    one_of("", &values)
}

fn bearings(_: &mut SchemaGenerator) -> Schema {
    let values = [
        (Bearing::Incriminating, "towards an attack"),
        (Bearing::Exonerating, "towards a harmless explanation"),
        (Bearing::Neutral, "neither by itself"),
    ];
    one_of("", &values)
}

fn weights(_: &mut SchemaGenerator) -> Schema {
    let values = [
        (Weight::Weak, "common in ordinary work"),
        (Weight::Moderate, "unusual"),
        (Weight::Strong, "seldom legitimate"),
        (Weight::Decisive, "practically never legitimate"),
    ];
    one_of("How much it would say if true; for an exonerating finding, how hard it is to explain otherwise.", &values)
}

fn entity_kinds(_: &mut SchemaGenerator) -> Schema {
    let values = [
        (EntityKind::Host, "machine by name"),
        (EntityKind::User, "account or principal"),
        (EntityKind::Address, "IP address"),
        (EntityKind::Process, "image or program"),
        (EntityKind::File, "path, key, bucket, object"),
        (EntityKind::Hash, "hash of content"),
        (EntityKind::Name, "DNS name or URL"),
        (EntityKind::Session, "session, connection or process instance by id"),
        (EntityKind::Other, "anything else"),
    ];
    one_of("", &values)
}

fn citation_kinds(_: &mut SchemaGenerator) -> Schema {
    let values = [
        (CitationKind::Literal, "a text that stands in the result"),
        (CitationKind::Count, "a number of records"),
        (CitationKind::Aggregate, "another value that the query gives"),
        (CitationKind::Absence, "the query finds nothing"),
    ];
    one_of("", &values)
}
