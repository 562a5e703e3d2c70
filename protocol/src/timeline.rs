//! The Critic's Timeline: the story with its gaps. Each round rewrites it.

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::{Coherence, EventTime, FindingId, Score, closed};

/// The most gaps on a Timeline.
pub const MAX_GAPS: usize = 3;
/// The most events on a Timeline: what a person can read.
pub const MAX_EVENTS: usize = 60;

closed! {
    pub enum GapKind {
        Evidential = "evidential", "missing data that would strengthen the conclusion";
        Temporal = "temporal", "an unexplained period between events";
        Logical = "logical", "events that do not fit the story";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub kind: GapKind,
    /// What is missing, and what would close the gap.
    pub description: String,
}

/// An event as the Critic proposes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventDraft {
    /// One sentence that adds nothing to its findings.
    pub description: String,
    /// The findings that support it. The first one gives it its time.
    pub findings: Vec<FindingId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineDraft {
    pub narrative: String,
    /// In any order.
    pub events: Vec<EventDraft>,
    /// The most important first.
    pub gaps: Vec<Gap>,
    pub score: Score,
}

/// An event of the Timeline. Code takes its time, score and evidence from its findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineEvent {
    pub time: EventTime,
    pub description: String,
    pub findings: Vec<FindingId>,
    /// The best score among its findings.
    pub score: Score,
    pub evidence: Vec<RecordRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// From 1, increased at each rewrite.
    pub version: u32,
    pub round: u32,
    pub narrative: String,
    pub events: Vec<TimelineEvent>,
    pub gaps: Vec<Gap>,
    pub score: Score,
    pub label: Coherence,
}
