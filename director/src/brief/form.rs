//! The forms of the Director's answers. Comments on fields are what the model reads.

use casebook_agent::model::form::one_of;
use casebook_protocol::{Move, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanForm {
    /// The one question of this round.
    pub question: String,
    /// The domains that it goes to, from the roster; empty for every Expert, as always in discovery.
    #[serde(default)]
    pub to: Vec<String>,
    /// Names, addresses, hashes, ids to follow, each exactly as the findings or the alert write it; at
    /// most 50.
    #[serde(default)]
    pub follow: Vec<String>,
    /// Ids of the open `leads` that the question takes up.
    #[serde(default)]
    pub takes_up: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideForm {
    #[schemars(schema_with = "one_of::<Move>")]
    pub next: Move,
    /// What is settled, what is open, and why another round would or would not help.
    pub reason: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportForm {
    #[schemars(schema_with = "one_of::<Verdict>")]
    pub verdict: Verdict,
    /// What happened, to what, by whom, since when, how sure; three to five sentences, times in UTC.
    pub summary: String,
    /// What set it off, as far as shown; otherwise "not determined" and how far it was traced.
    pub root_cause: String,
    /// What to do, most urgent first, one concrete step each.
    #[serde(default)]
    pub actions: Vec<String>,
    /// What stays open, and who or what could answer it.
    #[serde(default)]
    pub open_questions: Vec<String>,
    /// Ids of the findings that the verdict rests on, the weightiest first.
    pub findings: Vec<String>,
}
