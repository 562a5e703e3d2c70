//! What others learn about accepted alerts.

use casebook_protocol::subject;
use serde::{Deserialize, Serialize};

use super::{Accepted, Intake, Refused};
use crate::error::HubError;

/// The answer to `casebook.open`, JSON. An accepted one is also published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OpenAnswer {
    Accepted {
        /// The same alert always gets the same investigation.
        investigation: String,
        alert: String,
        severity: String,
    },
    Refused {
        error: String,
    },
}

impl From<&Accepted> for OpenAnswer {
    fn from(accepted: &Accepted) -> Self {
        Self::Accepted {
            investigation: accepted.investigation.to_string(),
            alert: accepted.alert.to_string(),
            severity: accepted.severity.name().to_owned(),
        }
    }
}

impl Intake {
    /// Publishes a fresh alert before it is queued, so that a crash between the two repeats the message.
    pub(super) async fn announce(&self, accepted: &Accepted) -> Result<(), Refused> {
        let (investigation, severity) = (&accepted.investigation, accepted.severity.name());
        tracing::info!(%investigation, alert = %accepted.alert, severity, "alert accepted");
        let json = serde_json::to_vec(&OpenAnswer::from(accepted)).map_err(|e| HubError::Defect(e.to_string()))?;
        let sent = self.env.bus.publish(subject::ACCEPTED, json).await;
        sent.map_err(|e| HubError::Bus(e.to_string()).into())
    }
}
