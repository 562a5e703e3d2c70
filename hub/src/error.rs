//! Why the Hub did not do what was asked: the messages are for a person.

use casebook_protocol::{ChainError, InvestigationId};
use casebook_runtime::store::StoreError;

use crate::decide::Rejection;

/// Why the Hub did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The store failed. What it acknowledged before is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No log has this id.
    #[error("there is no investigation {0}: `casebook list` shows those that there are")]
    Unknown(InvestigationId),
    /// Nobody works on it in this process.
    #[error("investigation {0} is not finished and nobody works on it here: `casebook resume {0}` goes on with it")]
    NotRunning(InvestigationId),
    /// The log is not what was recorded.
    #[error("the log of {investigation} is not intact: {reason}")]
    Broken {
        investigation: InvestigationId,
        /// Where and how.
        reason: ChainError,
    },
    /// The bus failed.
    #[error("cannot reach the agents: {0}")]
    Bus(String),
    /// The state does not allow it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// No more work is handed out.
    #[error("the hub is suspended: what is recorded is safe, and `casebook resume` goes on from there")]
    Suspended,
    /// Other Hubs kept winning.
    #[error("other hubs kept writing to the log of {0}: one of them works on it")]
    Contended(InvestigationId),
    /// The Hub's actor is gone.
    #[error("the hub has stopped")]
    Stopped,
    /// What must not happen.
    #[error("{0}: this is a defect of casebook; what is recorded is safe")]
    Defect(String),
}
