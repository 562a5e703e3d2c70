//! What a worker or a Hub needs of the world, and where messages go that cannot be handled.

use std::sync::Arc;

use casebook_protocol::DeadLetter;

use crate::bus::{Bus, BusError};
use crate::clock::Clock;
use crate::store::{Store, StoreError};
use crate::telemetry::meter;

/// What a worker or a Hub needs of the world.
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
    /// Keeps `bytes` as an artifact and publishes `letter`, which names it, to `subject`.
    ///
    /// # Errors
    /// [`BuryError`] when the store or the bus fails: there is no letter, and to acknowledge the message now
    /// would lose it silently.
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
