//! The event log of an investigation: the truth from which all state is folded (design, section 5).
//! Stored as JSON with a version; each entry carries the hash of the one before it.

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::hash::{canonical_json, sha256_hex};
use crate::ruling::{Guard, Ruling};
use crate::{
    Alert, ArtifactId, Budget, Conclusion, Decision, Domain, Finding, FindingId, InvestigationId, JournalEntry, Member,
    ModelCall, Phase, Player, Question, Review, TaskId, TaskKind, Timeline, Timestamp, ToolCall, Usage,
};

/// The version of stored events that is written. Every earlier one is read.
pub const EVENT_VERSION: u16 = 1;

/// Something that happened in an investigation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// It began.
    Opened {
        alert: Alert,
        budget: Budget,
        roster: Vec<Member>,
        /// Where the evidence is, for whoever resumes on the same machine; empty when Experts bring
        /// their own.
        evidence: String,
    },
    /// A pass through a phase began.
    RoundStarted {
        phase: Phase,
        /// The round, from 1 over all phases.
        round: u32,
    },
    /// A task was requested; it is enqueued after this is stored (the log is the truth, the queue a
    /// hint).
    TaskRequested {
        task: TaskId,
        kind: TaskKind,
        domain: Option<Domain>,
        /// Its view, as an artifact: what the task was allowed to know, for the record.
        view: ArtifactId,
    },
    /// A tool call finished.
    CallRecorded {
        task: TaskId,
        call: ToolCall,
    },
    /// A call of a language model finished.
    ModelCalled {
        task: TaskId,
        call: ModelCall,
    },
    /// A task ended with an answer.
    TaskAnswered {
        task: TaskId,
        player: Player,
        usage: Usage,
    },
    /// A task ended without one; the flow goes on.
    TaskFailed {
        task: TaskId,
        reason: String,
        usage: Usage,
        /// Who played it, when somebody did.
        player: Option<Player>,
    },
    Journaled {
        entry: JournalEntry,
    },
    Asked {
        round: u32,
        /// The question, as it goes out.
        question: Question,
    },
    /// An Expert submitted a finding.
    FindingSubmitted {
        finding: Finding,
    },
    /// A finding was checked against the recorded bytes.
    FindingChecked {
        finding: FindingId,
        checked: Checked,
    },
    /// A rule capped, dropped or changed a proposal.
    Guarded {
        /// What and why.
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
    /// A limit is near; the Director is told.
    BudgetNear {
        limit: String,
    },
    /// The last Expert of a domain is gone, or one is there again.
    Attendance {
        domain: Domain,
        /// Why nobody can be asked; none when somebody can again.
        gone: Option<String>,
    },
    /// The flow goes to `conclude` for another reason than the Director's decision.
    Stopping {
        reason: String,
    },
    /// The Director concluded; the rules on verdicts are applied.
    Concluded {
        /// The conclusion as proposed.
        conclusion: Conclusion,
        /// The verdict that counts.
        ruling: Ruling,
    },
    Closed {},
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The version of this format.
    pub v: u16,
    pub investigation: InvestigationId,
    /// From 1, without a hole.
    pub seq: u64,
    pub at: Timestamp,
    /// The hash of the entry before; of the investigation's id for the first.
    pub prev: String,
    /// SHA-256 over version, investigation, sequence, time, previous hash and event, in canonical
    /// JSON.
    pub hash: String,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("event {found} stands where {expected} should")]
    Sequence { expected: u64, found: u64 },
    #[error("event {seq} was changed after it was recorded: its hash does not match its content")]
    Content { seq: u64 },
    #[error("event {seq} does not follow the event before it: the log was cut or replaced there")]
    Link { seq: u64 },
}

impl Recorded {
    /// The next entry of a log, after `last` (none for the first).
    #[must_use]
    pub fn next(investigation: &InvestigationId, last: Option<&Self>, at: Timestamp, event: Event) -> Self {
        Self::after(investigation, last.map(|l| (l.seq, l.hash.as_str())), at, event)
    }

    /// The next entry of a log whose last entry has this sequence number and hash.
    #[must_use]
    pub fn after(investigation: &InvestigationId, last: Option<(u64, &str)>, at: Timestamp, event: Event) -> Self {
        let seq = last.map_or(1, |(seq, _)| seq + 1);
        let prev = last.map_or_else(|| Self::genesis(investigation), |(_, hash)| hash.to_owned());
        let mut entry =
            Self { v: EVENT_VERSION, investigation: investigation.clone(), seq, at, prev, hash: String::new(), event };
        entry.hash = entry.content_hash();
        entry
    }

    /// What the first entry of a log has in the place of the hash before.
    pub fn genesis(investigation: &InvestigationId) -> String {
        sha256_hex(investigation.as_str().as_bytes())
    }

    fn content_hash(&self) -> String {
        /// What is hashed.
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

    /// Checks that `log` is whole, in order and unchanged from its first entry.
    pub fn verify(investigation: &InvestigationId, log: &[Self]) -> Result<(), ChainError> {
        let mut prev = Self::genesis(investigation);
        for (entry, expected) in log.iter().zip(1..) {
            if entry.seq != expected {
                return Err(ChainError::Sequence { expected, found: entry.seq });
            }
            if entry.prev != prev || entry.investigation != *investigation {
                return Err(ChainError::Link { seq: entry.seq });
            }
            if entry.content_hash() != entry.hash {
                return Err(ChainError::Content { seq: entry.seq });
            }
            prev.clone_from(&entry.hash);
        }
        Ok(())
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
