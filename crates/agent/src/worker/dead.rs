//! Gives up jobs that no worker could perform, with a dead letter.

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{DeadLetter, Outcome, Task};

use super::{ATTEMPTS, WorkError, Worker, queue_of};
use crate::reasoner::Past;

impl Worker {
    /// The failure of a task after too many attempts.
    pub(super) async fn given_up(&self, task: &std::sync::Arc<Task>, bytes: &[u8], attempt: u32) -> Option<Outcome> {
        if attempt <= ATTEMPTS {
            return None;
        }
        let reason = format!(
            "given up after {ATTEMPTS} attempts: each time the worker crashed, lost its lease, or could not reach the \
             store; see the logs of the workers"
        );
        // The investigation waits for the outcome, which must not depend on the letter.
        let queue = queue_of(task);
        if let Err(error) = self.bury(&queue, Some(task), bytes, attempt, &reason).await {
            tracing::error!(%error, reason, "could not write a dead letter");
        }
        Some(Outcome::new(task.id.clone(), self.reasoner.player(task, &Past::default()), Err(reason)))
    }

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
        Ok(self.env.bury(letter, &subject::dead(queue), bytes).await?)
    }
}
