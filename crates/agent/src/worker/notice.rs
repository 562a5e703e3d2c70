//! What a worker reports to the Hubs: hints, since all of it is recorded first.

use casebook_protocol::{Step, StepNotice, Task, subject};
use casebook_runtime::bus::BusError;
use casebook_runtime::wire;

use super::{WorkError, Worker, queue_of};

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
