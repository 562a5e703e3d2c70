use casebook_protocol::{ChainError, InvestigationId};
use casebook_runtime::store::StoreError;

use crate::decide::Rejection;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// What was acknowledged before the failure is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("investigation {0} not found")]
    Unknown(InvestigationId),
    #[error("investigation {0} is not finished and not running here; continue it with `casebook resume {0}`")]
    NotRunning(InvestigationId),
    /// No model answered an Expert. It goes on when it is resumed.
    #[error("investigation {investigation} is not investigated: {reason}")]
    NotInvestigated {
        investigation: InvestigationId,
        reason: String,
        /// How many rounds ended so.
        rounds: usize,
    },
    #[error("the log of {investigation} is not intact: {reason}")]
    Broken { investigation: InvestigationId, reason: ChainError },
    #[error("cannot reach the agents: {0}")]
    Bus(String),
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("the Hub is suspended; recorded results are safe, continue with `casebook resume`")]
    Suspended,
    #[error("other Hubs keep writing to the log of {0}; one of them is working on it")]
    Contended(InvestigationId),
    #[error("the Hub has stopped")]
    Stopped,
    #[error("defect in casebook: {0}")]
    Defect(String),
}
