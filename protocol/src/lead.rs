//! Leads: what the Critic noticed in the results of tools and no finding mentions. A lead is not a finding: it has no
//! score and no place on the Timeline. The next question takes it up, or the Journal says why not.

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::{CallId, Domain, FindingId, LeadId, Locator, closed};

/// The most leads of one Review.
pub const MAX_LEADS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadDraft {
    /// What is there, in one sentence.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// The tool call whose result shows it.
    pub call: CallId,
    pub at: Locator,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    pub id: LeadId,
    pub round: u32,
    /// The Expert that made the call and did not mention what it shows.
    pub domain: Domain,
    pub draft: LeadDraft,
    /// The record at that place, if it is one.
    pub records: Vec<RecordRef>,
}

closed! {
    /// What became of a lead.
    pub enum Fate {
        Open = "open", "not decided yet";
        TakenUp = "taken_up", "the next question follows it";
        Declined = "declined", "the Journal says why it is not followed";
        NotTakenUp = "not_taken_up", "neither a question nor the Journal takes it up";
    }
}

/// A lead and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadState {
    pub lead: Lead,
    pub fate: Fate,
    /// The round whose question takes it up.
    pub round: Option<u32>,
    /// The Journal entry that says why not.
    pub entry: Option<u32>,
    /// Later findings that cite its record.
    pub findings: Vec<FindingId>,
}
