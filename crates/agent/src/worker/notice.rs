//! Announces finished steps to the Hubs.

use casebook_protocol::{Step, StepNotice, Task, subject};
use casebook_runtime::bus::BusError;
use casebook_runtime::wire;

use super::{WorkError, Worker, queue_of};

impl Worker {
    /// Announces a finished step. The announcement may be lost, since the outcome contains the step. Fails only if the
    /// bus is closed.
    pub(super) async fn announce(&self, task: &Task, step: Step) -> Result<(), WorkError> {
        let notice = StepNotice { investigation: task.investigation.clone(), task: task.id.clone(), step };
        let sent = match wire::encode(&notice) {
            Ok(bytes) => self.env.bus.publish(&subject::steps(&queue_of(task)), bytes).await.map_err(WorkError::from),
            Err(error) => Err(error.into()),
        };
        match sent {
            Err(error) if !matches!(error, WorkError::Bus(BusError::Closed)) => {
                tracing::warn!(%error, task = %task.id, "could not announce a recorded step");
                Ok(())
            }
            sent => sent,
        }
    }
}
