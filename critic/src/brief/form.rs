//! The forms of the Critic's answers. Comments on fields are what the model reads.

use casebook_agent::model::form::one_of;
use casebook_protocol::GapKind;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewForm {
    /// What this round established, what is weak, where findings disagree.
    pub summary: String,
    /// One judgement for each submitted finding, and for no other.
    pub findings: Vec<JudgementForm>,
    /// What you saw in results and no finding mentions; at most three, usually none.
    #[serde(default)]
    pub leads: Vec<LeadForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeadForm {
    /// What is there, in one sentence, without a theory.
    pub what: String,
    /// Why it matters to this case.
    pub why: String,
    /// The id of the Expert's call whose result shows it.
    pub call: String,
    /// JSON pointer into that result, such as /records/3; `line 3` of a text.
    pub at: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgementForm {
    /// The id of the finding.
    pub finding: String,
    /// How far it can be believed, 0.0 to 1.0, by the rubric.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
    /// What you checked, what it showed, what keeps the score from being higher.
    pub rationale: String,
    /// Ids of findings, also of earlier rounds, that support it from another source.
    #[serde(default)]
    pub corroborated_by: Vec<String>,
    /// Ids of findings that cannot be true together with it.
    #[serde(default)]
    pub contradicted_by: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimelineForm {
    /// The story in three to six sentences, in order of time.
    pub narrative: String,
    /// The numbers `n` of the events of the previous Timeline that stay as they are.
    #[serde(default)]
    pub keep: Vec<usize>,
    /// The new and the changed events.
    #[serde(default)]
    pub events: Vec<EventForm>,
    /// The gaps, the most significant first; at most three.
    #[serde(default)]
    pub gaps: Vec<GapForm>,
    /// How well the story holds together, 0.0 to 1.0, by the rubric.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventForm {
    /// What happened, in one sentence that says nothing its findings do not say.
    pub description: String,
    /// Ids of the findings that it stands on, the one that gives it its time first.
    pub findings: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GapForm {
    #[schemars(schema_with = "one_of::<GapKind>")]
    pub kind: GapKind,
    /// What is missing, and what would close it.
    pub description: String,
}
