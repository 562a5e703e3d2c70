//! What workers send to the Hubs beside the record, and why a message was given up.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, InvestigationId, ModelCall, TaskId, ToolCall};

/// A finished step of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    Tool(ToolCall),
    Model(ModelCall),
}

impl Step {
    /// It is a step of `task`.
    pub fn is_of(&self, task: &TaskId) -> bool {
        match self {
            Self::Tool(call) => call.id.is_of(task),
            Self::Model(call) => call.id.is_of(task),
        }
    }
}

/// A finished step on its way to the Hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNotice {
    pub investigation: InvestigationId,
    pub task: TaskId,
    pub step: Step,
}

/// A recorded outcome on its way to the Hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeNotice {
    pub investigation: InvestigationId,
    pub task: TaskId,
}

/// Why a message was given up, JSON under `casebook.dead.…`: the message itself is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The task, where the message could be read.
    pub task: Option<String>,
    /// The investigation, where the message could be read.
    pub investigation: Option<String>,
    /// Why it was given up.
    pub reason: String,
    /// How often it was delivered.
    pub attempts: u32,
    /// The message as it was, in the store.
    pub message: Option<ArtifactId>,
}
