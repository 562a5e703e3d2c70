//! Where a client's alerts go: to the roles in this process, or to a team over NATS.

use casebook_protocol::{Alert, InvestigationId};
use casebook_runtime::nats::Connection;
use serde_json::Value;

use crate::embedded::standing::Standing;

/// Who investigates.
pub enum Desk {
    /// The roles in this process.
    Embedded(Box<Standing>),
    /// A team of processes.
    Team(Box<Connection>),
}

impl Desk {
    /// Has `alert` investigated and answers at once. The second half says whether a new investigation
    /// began; a team does not say.
    ///
    /// # Errors
    /// In words for the caller.
    pub async fn open(&self, alert: &Value) -> Result<(InvestigationId, Option<bool>), String> {
        let bytes = alert.to_string().into_bytes();
        let read = Alert::parse(&bytes).map_err(|e| e.to_string())?;
        match self {
            Self::Embedded(standing) => standing.open(read).await.map(|(id, fresh)| (id, Some(fresh))),
            Self::Team(connection) => crate::commands::alert::open(connection, bytes)
                .await
                .map(|id| (id, None))
                .map_err(|failure| format!("{}: {}", failure.what, failure.advice)),
        }
    }

    /// Whether somebody works on an unfinished investigation; a team does not say.
    pub async fn under_way(&self, id: &InvestigationId) -> Option<bool> {
        match self {
            Self::Embedded(standing) => Some(standing.under_way().await.contains(id)),
            Self::Team(_) => None,
        }
    }

    /// What is under way is left as it is recorded.
    pub async fn close(&self) {
        if let Self::Embedded(standing) = self {
            standing.suspend().await;
        }
    }
}
