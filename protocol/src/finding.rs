//! What an Expert claims, and the typed citations that the claim rests on.

use serde::{Deserialize, Serialize};

use crate::{CallId, Domain, EventTime, FindingId, Score, Timestamp, closed};

closed! {
    /// What sort of claim a finding is. An aggregate and an absence are legitimate: do not punish them (rule 3.2). An
    /// instruction is raised, never obeyed (rule 3.7).
    pub enum FindingKind {
        Occurrence = "occurrence", "it happened at a time";
        Aggregate = "aggregate", "a number over many records";
        Absence = "absence", "searched for and not there";
        State = "state", "how things are";
        Instruction = "instruction", "text in the evidence that addresses the analyst";
    }
}

closed! {
    /// Which way a finding points.
    pub enum Bearing {
        Incriminating = "incriminating", "towards an attack";
        Exonerating = "exonerating", "towards a harmless explanation";
        Neutral = "neutral", "neither by itself";
    }
}

closed! {
    /// How much a finding would say if it is true, apart from how far it can be believed.
    pub enum Weight {
        Weak = "weak", "common in ordinary work";
        Moderate = "moderate", "unusual";
        Strong = "strong", "seldom legitimate";
        Decisive = "decisive", "practically never legitimate";
    }
}

closed! {
    /// What kind of thing an entity is.
    pub enum EntityKind {
        Host = "host", "machine by name";
        User = "user", "account or principal";
        Address = "address", "IP address";
        Process = "process", "image or program";
        File = "file", "path, key, bucket, object";
        Hash = "hash", "hash of content";
        Name = "name", "DNS name or URL";
        Session = "session", "session, connection or process instance by id";
        Other = "other", "anything else";
    }
}

/// Something that findings are about and that ties them together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entity {
    pub kind: EntityKind,
    /// As the evidence writes it.
    pub value: String,
}

/// Where in an artifact to look.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locator {
    /// An RFC 6901 JSON pointer; the empty one is the whole artifact.
    Pointer(String),
    /// A line of the artifact's text, from 1.
    Line(u64),
}

/// What a finding rests on. Each kind is checked by code before the Critic sees it (rule 3.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Citation {
    /// The text `quote` stands at `at` in the result of `call`.
    Literal {
        call: CallId,
        /// Where in the result.
        at: Locator,
        quote: String,
    },
    /// The query of `call` counts `value` records; recomputed by calling again.
    Count {
        call: CallId,
        /// Where in the result the number stands.
        at: Locator,
        value: u64,
        /// The same call made again by code, for the check.
        again: Option<CallId>,
    },
    /// The query of `call` gives `value`; recomputed by calling again.
    Aggregate {
        call: CallId,
        /// Where in the result the value stands.
        at: Locator,
        value: String,
        /// The same call made again by code, for the check.
        again: Option<CallId>,
    },
    /// The query of `call` finds nothing in the window that it covered.
    Absence {
        call: CallId,
        /// Where in the result the number of hits stands.
        at: Locator,
        /// The start of the window that the claim is about; none for all of the evidence.
        from: Option<Timestamp>,
        /// The end of the window that the claim is about; none for all of the evidence.
        to: Option<Timestamp>,
        /// The same call made again by code, for the check.
        again: Option<CallId>,
    },
}

impl Citation {
    pub const fn call(&self) -> &CallId {
        match self {
            Self::Literal { call, .. }
            | Self::Count { call, .. }
            | Self::Aggregate { call, .. }
            | Self::Absence { call, .. } => call,
        }
    }

    /// The call made again for the check; none where the bytes on record are enough.
    pub const fn again(&self) -> Option<&CallId> {
        match self {
            Self::Literal { .. } => None,
            Self::Count { again, .. } | Self::Aggregate { again, .. } | Self::Absence { again, .. } => again.as_ref(),
        }
    }

    /// The citation with its check call filled in. No effect on a literal one.
    #[must_use]
    pub fn called_again_as(mut self, id: CallId) -> Self {
        match &mut self {
            Self::Literal { .. } => {}
            Self::Count { again, .. } | Self::Aggregate { again, .. } | Self::Absence { again, .. } => {
                *again = Some(id)
            }
        }
        self
    }
}

/// A finding as an Expert submits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingDraft {
    pub kind: FindingKind,
    /// One sentence. Names taken from the evidence stand in `backquotes`; times, addresses, hashes,
    /// quoted names and counts in it must occur in what is cited.
    pub claim: String,
    /// When, for an occurrence.
    pub time: Option<EventTime>,
    /// What it is about.
    pub entities: Vec<Entity>,
    pub bearing: Bearing,
    /// How much it would say.
    pub weight: Weight,
    /// It is about the very activity that raised the alert, not about something else that happened.
    pub about_alert: bool,
    /// A MITRE ATT&CK technique id, where one fits.
    pub technique: Option<String>,
    /// How sure the Expert is.
    pub confidence: Score,
    pub citations: Vec<Citation>,
    /// What a person or a later question should look at, where something stays open.
    pub look_next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Deterministic: round, domain, place.
    pub id: FindingId,
    pub domain: Domain,
    pub round: u32,
    #[serde(rename = "finding")]
    pub draft: FindingDraft,
}
