//! The event log of an investigation, from which all state is derived. Each entry is stored as JSON with a version and
//! the hash of the entry before it.

use serde::{Deserialize, Serialize};

use crate::checked::{Checked, RecordRef};
use crate::hash::{canonical_json, sha256_hex};
use crate::proof::{Files, RecordHash};
use crate::ruling::{Guard, Ruling};
use crate::{
    Acts, Alert, ArtifactId, Budget, Conclusion, Decision, Domain, Finding, FindingId, InvestigationId, JournalEntry,
    Member, ModelCall, Phase, Player, Question, Review, TaskId, TaskKind, Timeline, Timestamp, ToolCall, Usage,
};

/// The newest version of stored events, in which new events are written.
pub const EVENT_VERSION: u16 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened {
        alert: Alert,
        budget: Budget,
        roster: Vec<Member>,
        /// Where the evidence is, so that the same machine can resume. Empty if the Experts bring their own.
        evidence: String,
    },
    RoundStarted {
        phase: Phase,
        /// From 1, over all phases.
        round: u32,
    },
    /// A task was requested. It enters the queue only after this event is stored.
    TaskRequested {
        task: TaskId,
        kind: TaskKind,
        domain: Option<Domain>,
        view: ArtifactId,
    },
    CallRecorded {
        task: TaskId,
        call: ToolCall,
    },
    ModelCalled {
        task: TaskId,
        call: ModelCall,
    },
    TaskAnswered {
        task: TaskId,
        player: Player,
        usage: Usage,
        /// SHA-256 of its outcome as stored. Logs of older versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<String>,
        /// The findings that an Expert corrected after code returned them.
        #[serde(default, skip_serializing_if = "crate::task::is_zero")]
        corrected: u32,
        /// The limits that an Expert reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        limits: Vec<String>,
    },
    /// A task ended without an answer. The investigation continues.
    TaskFailed {
        task: TaskId,
        reason: String,
        usage: Usage,
        /// None if no worker had begun the task.
        player: Option<Player>,
        /// SHA-256 of its outcome as stored, if the failure is an outcome. Logs of older versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<String>,
    },
    Journaled {
        entry: JournalEntry,
    },
    Asked {
        round: u32,
        question: Question,
    },
    /// The evidence of an Expert shows these acts. A later list adds to it.
    ActsListed {
        domain: Domain,
        acts: Acts,
    },
    /// The evidence files that an Expert read, with their hashes. A later list adds to it.
    FilesListed {
        domain: Domain,
        files: Files,
    },
    FindingSubmitted {
        finding: Finding,
    },
    /// Code checked the citations of a finding against the stored results.
    FindingChecked {
        finding: FindingId,
        checked: Checked,
        /// The records of queries whose number it cites, if the queries returned all that they found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rows: Vec<RecordRef>,
        /// The records of its valid citations and of `rows`, as the tools returned them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hashes: Vec<RecordHash>,
    },
    Guarded {
        guard: Guard,
    },
    Reviewed {
        review: Review,
    },
    TimelineRewritten {
        timeline: Timeline,
    },
    Decided {
        round: u32,
        decision: Decision,
    },
    /// A limit is near, and the Director gets a warning.
    BudgetNear {
        limit: String,
    },
    /// The last Expert of a domain left, or one came back.
    Attendance {
        domain: Domain,
        /// Why the domain cannot be asked; none if it can be asked again.
        gone: Option<String>,
    },
    /// No Expert could examine anything, because no model answered them. The investigation pauses; the next round asks
    /// them again.
    NotInvestigated {
        reason: String,
    },
    /// The investigation concludes, but not by a decision of the Director.
    Stopping {
        reason: String,
    },
    Concluded {
        conclusion: Conclusion,
        /// The verdict after the rules.
        ruling: Ruling,
    },
    Closed {},
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub v: u16,
    pub investigation: InvestigationId,
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Timestamp,
    /// The hash of the entry before, or of the investigation id for the first entry.
    pub prev: String,
    /// SHA-256 of the canonical JSON of version, investigation, sequence, time, previous hash and event.
    pub hash: String,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("expected event {expected}, found event {found}: the log is missing an event or out of order")]
    Sequence { expected: u64, found: u64 },
    #[error("event {seq} was changed after it was recorded: its hash does not match its content")]
    Content { seq: u64 },
    #[error("event {seq} does not follow the event before it: the log was cut or replaced there")]
    Link { seq: u64 },
}

impl Recorded {
    #[must_use]
    pub fn next(investigation: &InvestigationId, last: Option<&Self>, at: Timestamp, event: Event) -> Self {
        Self::after(investigation, last.map(|l| (l.seq, l.hash.as_str())), at, event)
    }

    #[must_use]
    pub fn after(investigation: &InvestigationId, last: Option<(u64, &str)>, at: Timestamp, event: Event) -> Self {
        let seq = last.map_or(1, |(seq, _)| seq + 1);
        let prev = last.map_or_else(|| Self::genesis(investigation), |(_, hash)| hash.to_owned());
        let mut entry =
            Self { v: EVENT_VERSION, investigation: investigation.clone(), seq, at, prev, hash: String::new(), event };
        entry.hash = entry.content_hash();
        entry
    }

    /// The previous hash of the first entry.
    pub fn genesis(investigation: &InvestigationId) -> String {
        sha256_hex(investigation.as_str().as_bytes())
    }

    fn content_hash(&self) -> String {
        #[derive(Serialize)]
        struct Content<'a> {
            at: Timestamp,
            event: &'a Event,
            investigation: &'a InvestigationId,
            prev: &'a str,
            seq: u64,
            v: u16,
        }
        let Self { v, investigation, seq, at, prev, event, .. } = self;
        let content = Content { at: *at, event, investigation, prev, seq: *seq, v: *v };
        sha256_hex(canonical_json(&content).as_bytes())
    }

    /// Checks that this is the unchanged entry `expected` of the log, after the entry with the hash `prev`.
    pub fn follows(&self, investigation: &InvestigationId, expected: u64, prev: &str) -> Result<(), ChainError> {
        let seq = self.seq;
        if seq != expected {
            return Err(ChainError::Sequence { expected, found: seq });
        }
        if self.prev != prev || self.investigation != *investigation {
            return Err(ChainError::Link { seq });
        }
        if self.content_hash() != self.hash {
            return Err(ChainError::Content { seq });
        }
        Ok(())
    }

    /// Checks a part of a log, which follows the entry `last`.
    pub fn verify_after(investigation: &InvestigationId, last: Option<&Self>, part: &[Self]) -> Result<(), ChainError> {
        let first = last.map_or(1, |last| last.seq + 1);
        let mut prev = last.map_or_else(|| Self::genesis(investigation), |last| last.hash.clone());
        for (entry, expected) in part.iter().zip(first..) {
            entry.follows(investigation, expected, &prev)?;
            prev.clone_from(&entry.hash);
        }
        Ok(())
    }

    /// Checks that `log` is complete, in order and unchanged.
    pub fn verify(investigation: &InvestigationId, log: &[Self]) -> Result<(), ChainError> {
        Self::verify_after(investigation, None, log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (InvestigationId, Vec<Recorded>) {
        let id = InvestigationId::new("inv-1").unwrap();
        let mut log: Vec<Recorded> = Vec::new();
        for n in 1..=4 {
            let event = Event::Stopping { reason: format!("reason {n}") };
            log.push(Recorded::next(&id, log.last(), Timestamp::from_second(n).unwrap(), event));
        }
        (id, log)
    }

    #[test]
    fn any_change_of_the_log_is_found() {
        let (id, whole) = log();
        assert_eq!(Recorded::verify(&id, &whole), Ok(()));
        let mut changed = whole.clone();
        changed[1].event = Event::Stopping { reason: "other".into() };
        assert_eq!(Recorded::verify(&id, &changed), Err(ChainError::Content { seq: 2 }));
        changed[1].hash = changed[1].content_hash();
        assert_eq!(Recorded::verify(&id, &changed), Err(ChainError::Link { seq: 3 }));
        let mut cut = whole.clone();
        cut.remove(2);
        assert_eq!(Recorded::verify(&id, &cut), Err(ChainError::Sequence { expected: 3, found: 4 }));
        let mut swapped = whole;
        swapped.swap(0, 1);
        assert_eq!(Recorded::verify(&id, &swapped), Err(ChainError::Sequence { expected: 1, found: 2 }));
    }
}
