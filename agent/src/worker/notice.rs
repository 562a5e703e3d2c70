//! What a worker tells the Hubs: hints, since all of it is recorded first.

use casebook_protocol::{InvestigationId, ModelCall, Task, TaskId, ToolCall, subject};

use super::{WorkError, Worker, queue_of};
use crate::bus::BusError;
use crate::wire;

/// A finished step of a task.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Step {
    /// A call of a tool.
    Tool(ToolCall),
    /// A call of a language model.
    Model(ModelCall),
}

impl Step {
    /// It is a step of `task`.
    #[must_use]
    pub fn is_of(&self, task: &TaskId) -> bool {
        match self {
            Self::Tool(call) => call.id.is_of(task),
            Self::Model(call) => call.id.is_of(task),
        }
    }
}

/// A finished step on its way to the Hub.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StepNotice {
    /// The investigation.
    pub investigation: InvestigationId,
    /// The task.
    pub task: TaskId,
    /// The step.
    pub step: Step,
}

/// A recorded outcome on its way to the Hub.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OutcomeNotice {
    /// The investigation.
    pub investigation: InvestigationId,
    /// The task.
    pub task: TaskId,
}

impl Worker {
    /// Tells the Hubs of a finished step. Nobody has to hear it: it comes again with the outcome.
    ///
    /// # Errors
    /// [`BusError::Closed`]: this process ends.
    pub(super) async fn tell(&self, task: &Task, step: Step) -> Result<(), WorkError> {
        let notice = StepNotice { investigation: task.investigation.clone(), task: task.id.clone(), step };
        let told = match wire::encode(&notice) {
            Ok(bytes) => self.env.bus.publish(&subject::steps(&queue_of(task)), bytes).await.map_err(WorkError::from),
            Err(error) => Err(error.into()),
        };
        match told {
            Err(error) if !matches!(error, WorkError::Bus(BusError::Closed)) => {
                tracing::warn!(%error, task = %task.id, "a step is recorded and was not told");
                Ok(())
            }
            told => told,
        }
    }
}
