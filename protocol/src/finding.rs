use serde::{Deserialize, Serialize};

use crate::{CallId, Domain, EventTime, FindingId, Score, Timestamp, closed};

closed! {
    /// The kind of a claim. An aggregate or an absence is as legitimate as an occurrence. An instruction is reported,
    /// never followed (rule "hostile evidence").
    pub enum FindingKind {
        Occurrence = "occurrence", "it happened at a time";
        Aggregate = "aggregate", "a number over many records";
        Absence = "absence", "searched for and not there";
        State = "state", "how things are";
        Instruction = "instruction", "text in the evidence that addresses the analyst";
    }
}

closed! {
    pub enum Bearing {
        Incriminating = "incriminating", "towards an attack";
        Exonerating = "exonerating", "towards a harmless explanation";
        Neutral = "neutral", "neither by itself";
    }
}

closed! {
    /// How much a finding would say if it is true. Its credibility is scored separately.
    pub enum Weight {
        Weak = "weak", "common in ordinary work";
        Moderate = "moderate", "unusual";
        Strong = "strong", "rarely legitimate";
        Decisive = "decisive", "practically never legitimate";
    }
}

closed! {
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

/// What findings are about. Common entities connect findings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entity {
    pub kind: EntityKind,
    /// As the evidence writes it.
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locator {
    /// An RFC 6901 JSON pointer. The empty pointer is the whole artifact.
    Pointer(String),
    /// A line of the artifact's text, from 1.
    Line(u64),
}

/// What a finding is based on. Code checks each kind before the Critic sees it (rule "citation check").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Citation {
    /// The text `quote` occurs at `at` in the result of `call`.
    Literal { call: CallId, at: Locator, quote: String },
    /// The query of `call` counts `value` records. Code checks it by calling again.
    Count {
        call: CallId,
        at: Locator,
        value: u64,
        /// The call that code made again for the check.
        again: Option<CallId>,
    },
    /// The query of `call` gives `value`. Code checks it by calling again.
    Aggregate {
        call: CallId,
        at: Locator,
        value: String,
        /// The call that code made again for the check.
        again: Option<CallId>,
    },
    /// The query of `call` finds nothing in the window that it covered.
    Absence {
        call: CallId,
        at: Locator,
        /// The start of the claimed window; none for all of the evidence.
        from: Option<Timestamp>,
        /// The end of the claimed window; none for all of the evidence.
        to: Option<Timestamp>,
        /// The call that code made again for the check.
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

    /// The cited place in the result of [`Self::call`].
    pub const fn at(&self) -> &Locator {
        match self {
            Self::Literal { at, .. }
            | Self::Count { at, .. }
            | Self::Aggregate { at, .. }
            | Self::Absence { at, .. } => at,
        }
    }

    /// The call that code made again; none if the stored result is enough for the check.
    pub const fn again(&self) -> Option<&CallId> {
        match self {
            Self::Literal { .. } => None,
            Self::Count { again, .. } | Self::Aggregate { again, .. } | Self::Absence { again, .. } => again.as_ref(),
        }
    }

    /// Sets the call that code made again. Has no effect on a literal citation.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingDraft {
    pub kind: FindingKind,
    /// One sentence, with names from the evidence in `backquotes`. Times, addresses, hashes, quoted names and counts
    /// must occur in what is cited.
    pub claim: String,
    /// Set for an occurrence.
    pub time: Option<EventTime>,
    pub entities: Vec<Entity>,
    pub bearing: Bearing,
    pub weight: Weight,
    /// True if the claim is about the activity that raised the alert.
    pub about_alert: bool,
    /// A MITRE ATT&CK technique id, if one fits.
    pub technique: Option<String>,
    pub confidence: Score,
    pub citations: Vec<Citation>,
    /// What a person or a later question should examine, if something stays open.
    pub look_next: Option<String>,
}

impl FindingDraft {
    /// A weak, neutral finding about the alert, without time, entities and citations.
    #[must_use]
    pub fn neutral(kind: FindingKind, claim: String) -> Self {
        Self {
            kind,
            claim,
            time: None,
            entities: Vec::new(),
            bearing: Bearing::Neutral,
            weight: Weight::Weak,
            about_alert: true,
            technique: None,
            confidence: Score::clamped(0.8),
            citations: Vec::new(),
            look_next: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Made from round, domain and number.
    pub id: FindingId,
    pub domain: Domain,
    pub round: u32,
    #[serde(rename = "finding")]
    pub draft: FindingDraft,
}
