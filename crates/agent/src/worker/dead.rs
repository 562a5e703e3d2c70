//! Jobs that no worker could perform: their failure is recorded, and a dead letter gives the reason.

use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{DeadLetter, Outcome, Task, Usage};

use super::{ATTEMPTS, WorkError, Worker, queue_of};
use crate::reasoner::Past;

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
            player: self.reasoner.player(task, &Past::default()),
            result: Err(reason),
            journal: Vec::new(),
            calls: Vec::new(),
            asked: Vec::new(),
            raised: Vec::new(),
            usage: Usage::default(),
        })
    }

    /// Writes a dead letter.
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
