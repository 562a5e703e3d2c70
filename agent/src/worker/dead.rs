//! Jobs that nobody could perform: their failure is recorded, and a letter says why.

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{ArtifactId, Outcome, Task, Usage};
use serde::{Deserialize, Serialize};

use super::{ATTEMPTS, Env, WorkError, Worker, queue_of};
use crate::mind::Past;
use crate::telemetry::meter;

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

impl Worker {
    /// The failure of a task that was begun too often; none while it may be tried.
    pub(super) async fn given_up(&self, task: &std::sync::Arc<Task>, bytes: &[u8], attempt: u32) -> Option<Outcome> {
        if attempt <= ATTEMPTS {
            return None;
        }
        let reason = format!(
            "given up: it was begun {ATTEMPTS} times, and each time its worker died, lost its lease, or could not \
             reach the store; the logs of the workers say which"
        );
        // The outcome says the same, and it is what the flow waits for: it does not depend on the letter.
        if let Err(error) = self.bury(&queue_of(task), Some(task), bytes, attempt, &reason).await {
            tracing::error!(%error, reason, "a dead letter was not written");
        }
        Some(Outcome {
            task: task.id.clone(),
            player: self.mind.player(task, &Past::default()),
            result: Err(reason),
            journal: Vec::new(),
            calls: Vec::new(),
            asked: Vec::new(),
            raised: Vec::new(),
            usage: Usage::default(),
        })
    }

    /// Writes a dead letter.
    ///
    /// # Errors
    /// As [`DeadLetter::send`].
    pub(super) async fn bury(
        &self,
        queue: &Queue,
        task: Option<&Task>,
        bytes: &[u8],
        attempts: u32,
        reason: &str,
    ) -> Result<(), WorkError> {
        let letter = DeadLetter {
            task: task.map(|t| t.id.to_string()),
            investigation: task.map(|t| t.investigation.to_string()),
            reason: reason.to_owned(),
            attempts,
            message: None,
        };
        letter.send(&self.env, &subject::dead(queue), bytes).await
    }
}

impl DeadLetter {
    /// Keeps `bytes` and publishes the letter to `subject`.
    ///
    /// # Errors
    /// [`WorkError`] when the store or the bus fails: there is no letter, and whoever acknowledged the message
    /// now would drop it in silence.
    pub async fn send(mut self, env: &Env, subject: &str, bytes: &[u8]) -> Result<(), WorkError> {
        self.message = Some(env.store.put(bytes).await?);
        let unwritable = |e: serde_json::Error| WorkError::Recorded { what: subject.to_owned(), reason: e.to_string() };
        let json = serde_json::to_vec(&self).map_err(unwritable)?;
        env.bus.publish(subject, json).await?;
        meter::given_up(subject);
        Ok(())
    }
}
