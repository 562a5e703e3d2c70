//! How a worker is let in by a Hub, and says that it is there.

use std::time::Duration;

use casebook_protocol::{Join, Joined, subject};

use super::{Connection, NatsError};

/// A worker says this often that it is there; a Hub waits five times as long before it misses it.
pub const HEARTBEAT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// Not now: no Hub is there, or others are in the way. To be tried again.
    #[error("not let in yet: {0}")]
    Later(String),
    /// Not as it is.
    #[error("the Hub refuses this process: {0}")]
    Refused(String),
}

impl Connection {
    /// Asks a Hub to let this worker in, once.
    ///
    /// # Errors
    /// [`JoinError::Later`] is to be tried again.
    pub async fn join(&self, join: &Join) -> Result<(), JoinError> {
        let later = |e: &dyn std::fmt::Display| JoinError::Later(e.to_string());
        let bytes = serde_json::to_vec(join).map_err(|e| later(&e))?;
        let answer = self.request(&subject::join(&join.queue()), bytes, Duration::from_secs(10)).await;
        let answer = answer.map_err(|e| match &e {
            NatsError::NoResponders { .. } => later(&"no Hub is there"),
            _ => later(&e),
        })?;
        let joined: Joined = serde_json::from_slice(&answer).map_err(|e| later(&e))?;
        match joined.refused {
            None => Ok(()),
            Some(reason) if joined.for_good => Err(JoinError::Refused(reason)),
            Some(reason) => Err(JoinError::Later(reason)),
        }
    }

    /// Says every few seconds that this worker is there, for as long as it is polled.
    pub async fn stay(&self, join: &Join) {
        loop {
            self.say(join).await;
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    /// Says that this worker takes no more work.
    pub async fn leave(&self, join: &Join) {
        self.say(&Join { leaves: true, ..join.clone() }).await;
    }

    async fn say(&self, join: &Join) {
        let said = match serde_json::to_vec(join) {
            Ok(bytes) => self.tell(&subject::presence(&join.queue()), bytes).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = said {
            tracing::warn!(error, "cannot say that this process is there");
        }
    }
}
