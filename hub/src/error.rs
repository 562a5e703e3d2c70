//! Why the Hub did not do what was asked: the messages are for a person.

use casebook_protocol::{ChainError, InvestigationId};
use casebook_runtime::store::StoreError;

use crate::decide::Rejection;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The store failed. What it acknowledged before is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no investigation {0}: `casebook list` shows those that there are")]
    Unknown(InvestigationId),
    #[error("investigation {0} is not finished and nobody works on it here: `casebook resume {0}` goes on with it")]
    NotRunning(InvestigationId),
    #[error("the log of {investigation} is not intact: {reason}")]
    Broken { investigation: InvestigationId, reason: ChainError },
    #[error("cannot reach the agents: {0}")]
    Bus(String),
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("the hub is suspended: what is recorded is safe, and `casebook resume` goes on from there")]
    Suspended,
    #[error("other hubs kept writing to the log of {0}: one of them works on it")]
    Contended(InvestigationId),
    #[error("the hub has stopped")]
    Stopped,
    #[error("{0}: this is a defect of casebook; what is recorded is safe")]
    Defect(String),
}
