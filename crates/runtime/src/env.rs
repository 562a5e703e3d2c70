//! The environment of workers and Hubs, and dead letters.

use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::DeadLetter;

use crate::bus::{Bus, BusError};
use crate::clock::Clock;
use crate::store::{Store, StoreError};
use crate::telemetry::meter;

/// The longest wait for a dead letter.
const LETTER: Duration = Duration::from_secs(60);

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
    #[error("the dead letter was not stored within {} s", .0.as_secs())]
    Late(Duration),
}

impl Env {
    /// Stores `bytes` as an artifact and publishes `letter`, which names it, to `subject`. Gives up after a minute, since
    /// other messages wait.
    ///
    /// # Errors
    /// Nothing was published. The caller must not acknowledge the message, which would then be lost.
    pub async fn bury(&self, letter: DeadLetter, subject: &str, bytes: &[u8]) -> Result<(), BuryError> {
        tokio::time::timeout(LETTER, self.buried(letter, subject, bytes)).await.map_err(|_| BuryError::Late(LETTER))?
    }

    async fn buried(&self, mut letter: DeadLetter, subject: &str, bytes: &[u8]) -> Result<(), BuryError> {
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
