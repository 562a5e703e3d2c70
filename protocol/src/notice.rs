//! Messages from workers to the Hubs that only announce what is recorded, and dead letters.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, InvestigationId, ModelCall, TaskId, ToolCall};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    Tool(ToolCall),
    Model(#[serde(with = "as_json")] ModelCall),
}

impl Step {
    pub fn is_of(&self, task: &TaskId) -> bool {
        match self {
            Self::Tool(call) => call.id.is_of(task),
            Self::Model(call) => call.id.is_of(task),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNotice {
    pub investigation: InvestigationId,
    pub task: TaskId,
    pub step: Step,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeNotice {
    pub investigation: InvestigationId,
    pub task: TaskId,
}

/// Why a message was given up: JSON under `casebook.dead.…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// None if the message could not be read.
    pub task: Option<String>,
    /// None if the message could not be read.
    pub investigation: Option<String>,
    pub reason: String,
    pub attempts: u32,
    /// The message itself, as an artifact.
    pub message: Option<ArtifactId>,
}

/// A stored type leaves out fields that are not set, which the wire codec cannot read.
mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(value).map_err(S::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
