//! The environment of workers and Hubs, and dead letters.

use std::sync::Arc;

use casebook_protocol::DeadLetter;

use crate::bus::{Bus, BusError};
use crate::clock::Clock;
use crate::store::{Store, StoreError};
use crate::telemetry::meter;

#[derive(Clone)]
pub struct Env {
    pub bus: Arc<dyn Bus>,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

#[derive(Debug, thiserror::Error)]
pub enum BuryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl Env {
    /// Stores `bytes` as an artifact and publishes `letter`, which names it, to `subject`.
    ///
    /// # Errors
    /// Nothing was published. The caller must not acknowledge the message, which would then be lost.
    pub async fn bury(&self, mut letter: DeadLetter, subject: &str, bytes: &[u8]) -> Result<(), BuryError> {
        letter.message = Some(self.store.put(bytes).await?);
        let unwritable = |e: serde_json::Error| BusError::Failed {
            doing: format!("write a letter to {subject}"),
            reason: e.to_string(),
        };
        let json = serde_json::to_vec(&letter).map_err(unwritable)?;
        self.bus.publish(subject, json).await?;
        meter::given_up(subject);
        Ok(())
    }
}
