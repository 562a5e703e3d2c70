//! The Critic's Timeline: the consolidated story with its gaps (rewritten each round; design,
//! section 2).

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::{Coherence, EventTime, FindingId, Score, closed};

/// At most so many gaps are named (seeds: the top three).
pub const MAX_GAPS: usize = 3;

closed! {
    /// What sort of hole a gap is.
    pub enum GapKind {
        Evidential = "evidential", "missing data that would strengthen the conclusion";
        Temporal = "temporal", "an unexplained period between events";
        Logical = "logical", "events that do not fit the story";
    }
}

/// A hole in the story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub kind: GapKind,
    /// What is missing, and what would close it.
    pub description: String,
}

/// An event as the Critic proposes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventDraft {
    /// What happened, in a sentence that says nothing its findings do not say.
    pub description: String,
    /// The findings that it stands on, the one that gives it its time first.
    pub findings: Vec<FindingId>,
}

/// The Timeline as the Critic proposes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineDraft {
    /// The story in a few sentences.
    pub narrative: String,
    /// Its events, in any order.
    pub events: Vec<EventDraft>,
    /// Its gaps, most significant first.
    pub gaps: Vec<Gap>,
    /// How well it holds together, by the coherence rubric.
    pub score: Score,
}

/// An event of the Timeline. Its time, score and evidence come from its findings, in code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// When, and how that is known.
    pub time: EventTime,
    pub description: String,
    /// The findings that it stands on.
    pub findings: Vec<FindingId>,
    /// The best score among them.
    pub score: Score,
    /// The records that their citations lead to.
    pub evidence: Vec<RecordRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// From 1; one more at each rewrite.
    pub version: u32,
    pub round: u32,
    pub narrative: String,
    /// Its events in order of time.
    pub events: Vec<TimelineEvent>,
    /// At most three gaps.
    pub gaps: Vec<Gap>,
    /// How well it holds together.
    pub score: Score,
    pub label: Coherence,
}
