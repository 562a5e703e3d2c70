//! How a worker joins a Hub and sends heartbeats.

use std::time::Duration;

use casebook_protocol::{Join, Joined, subject};

use super::{Connection, NatsError};

/// The interval of heartbeats. A Hub misses a worker after five of them.
pub const HEARTBEAT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// No Hub answers, or the Hub cannot accept the worker now. A retry may help.
    #[error("no Hub accepts this process yet: {0}")]
    Later(String),
    #[error("the Hub refuses this process: {0}")]
    Refused(String),
}

impl Connection {
    /// Asks a Hub once to accept this worker.
    pub async fn join(&self, join: &Join) -> Result<(), JoinError> {
        let later = |e: &dyn std::fmt::Display| JoinError::Later(e.to_string());
        let bytes = serde_json::to_vec(join).map_err(|e| later(&e))?;
        let answer = self.request(&subject::join(&join.queue()), bytes, Duration::from_secs(10)).await;
        let answer = answer.map_err(|e| match &e {
            NatsError::NoResponders { .. } => later(&"no Hub answers"),
            _ => later(&e),
        })?;
        let joined: Joined = serde_json::from_slice(&answer).map_err(|e| later(&e))?;
        match joined.refused {
            None => Ok(()),
            Some(reason) if joined.for_good => Err(JoinError::Refused(reason)),
            Some(reason) => Err(JoinError::Later(reason)),
        }
    }

    /// Sends heartbeats for as long as the future is polled.
    pub async fn stay(&self, join: &Join) {
        loop {
            self.announce(join).await;
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    pub async fn leave(&self, join: &Join) {
        self.announce(&Join { leaves: true, ..join.clone() }).await;
    }

    async fn announce(&self, join: &Join) {
        let sent = match serde_json::to_vec(join) {
            Ok(bytes) => self.tell(&subject::presence(&join.queue()), bytes).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::warn!(error, "could not send a heartbeat");
        }
    }
}
