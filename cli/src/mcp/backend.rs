//! Where alerts of a client go: to the roles in this process, or to a team over NATS.

use casebook_hub::intake::Source;
use casebook_protocol::InvestigationId;
use casebook_runtime::nats::Connection;
use serde_json::Value;

use crate::embedded::service::Service;

pub enum Backend {
    Embedded(Box<Service>),
    Team(Box<Connection>),
    /// Another process investigates in the data folder: what it records can be read.
    Reading {
        why: String,
    },
}

impl Backend {
    /// Sends `alert` and returns at once. The second value is whether the investigation is new; a team does not
    /// report that.
    pub async fn open(&self, alert: &Value) -> Result<(InvestigationId, Option<bool>), String> {
        let bytes = alert.to_string().into_bytes();
        match self {
            Self::Embedded(service) => {
                let accepted = service.intake.accept(&bytes, Source::Mcp).await.map_err(|e| e.to_string())?;
                Ok((accepted.investigation, Some(accepted.fresh)))
            }
            Self::Team(connection) => crate::commands::alert::open(connection, bytes)
                .await
                .map(|id| (id, None))
                .map_err(|failure| format!("{}: {}", failure.what, failure.advice)),
            Self::Reading { why } => {
                Err(format!("{why}; this server only reads. Start it again when that process ends"))
            }
        }
    }

    /// Whether an unfinished investigation is running; a team does not report that.
    pub async fn under_way(&self, id: &InvestigationId) -> Option<bool> {
        match self {
            Self::Embedded(service) => Some(service.under_way().await.contains(id)),
            Self::Team(_) | Self::Reading { .. } => None,
        }
    }

    pub async fn close(&self) {
        if let Self::Embedded(service) = self {
            service.suspend().await;
        }
    }
}
