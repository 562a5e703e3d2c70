//! Errors for the user, with advice, and exit codes.

use std::fmt;
use std::path::Path;

use casebook_hub::decide::Rejection;
use casebook_hub::{HubError, OpenError};
use casebook_index::IndexError;
use casebook_report::save::SaveError;
use casebook_runtime::nats::{self, NatsError};
use casebook_runtime::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded, whatever the verdict.
    Done = 0,
    /// The environment prevented it: a full disk, a locked data folder, evidence that changed.
    Failed = 1,
    Usage = 2,
    /// The investigation can be resumed.
    Unfinished = 3,
    /// `verify` found differences from what was recorded.
    NotIntact = 4,
    /// A replay had no answer for a request, so its result differs from the recorded run.
    NotReplayed = 5,
    /// `doctor` found a model that cannot be used, or a server that does not store.
    Unfit = 6,
    /// No model answered, so no log was read. The investigation can be resumed.
    NotInvestigated = 7,
    Defect = 70,
}

impl Exit {
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub what: String,
    pub advice: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Write { path, source } => Self::write(&path, &source),
            SaveError::Json(error) => Self::defect(error),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::failed(&error, error.advice())
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => error.into(),
            IndexError::Cursor(_) => Self::usage(error, "run the same command without --cursor"),
            IndexError::Database { .. } => Self::failed(error, "the index holds nothing that is not in the store"),
            IndexError::Full(_) => Self::failed(error, "free some space, then try again"),
            IndexError::Stalled(_) => Self::failed(error, "then run the same command again"),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let advice = match &error {
            StoreError::Corrupt { .. } => {
                return Self {
                    exit: Exit::NotIntact,
                    what: error.to_string(),
                    advice: "restore the data folder from a backup; `casebook verify` shows how much is damaged".into(),
                };
            }
            StoreError::Newer { .. } => "use a newer casebook; nothing is damaged",
            StoreError::ReadOnly { .. } => return Self::defect(error),
            StoreError::Unavailable { reason, .. } if reason.contains(nats::FORBIDDEN) => {
                "use credentials that allow reading: --credentials FILE (of the user `reader`)"
            }
            StoreError::Unavailable { reason, .. } if reason.contains("stream not found") => {
                "no Hub has created the streams on this server; start one (casebook-hub)"
            }
            StoreError::Unavailable { .. } | StoreError::Conflict { .. } => {
                "recorded results are safe; correct this, then run the same command again"
            }
        };
        Self::failed(error, advice)
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        let (exit, advice) = match error {
            HubError::Store(error) => return error.into(),
            HubError::Defect(_) => return Self::defect(error),
            HubError::Rejected(Rejection::BudgetTooSmall(_)) => {
                (Exit::Usage, "raise --budget-tokens, --budget-cost or --budget-model-calls, or use a cheaper model")
            }
            HubError::Unknown(_) | HubError::NotRunning(_) | HubError::Rejected(_) => {
                (Exit::Usage, "`casebook list` shows all investigations")
            }
            HubError::Broken { .. } => (Exit::NotIntact, "do not rely on it; restore the data folder from a backup"),
            HubError::NotInvestigated { ref investigation, .. } => {
                return Self::not_investigated(&error, format!("casebook resume {investigation}"));
            }
            HubError::Suspended | HubError::Stopped | HubError::Contended(_) | HubError::Bus(_) => {
                (Exit::Unfinished, "continue with `casebook resume ID`")
            }
        };
        Self { exit, what: error.to_string(), advice: advice.into() }
    }
}

impl From<NatsError> for Failure {
    fn from(error: NatsError) -> Self {
        let advice = match error {
            NatsError::Connect { .. } => {
                "check that the server runs and that --nats, --credentials and --ca are correct"
            }
            NatsError::File { .. } => {
                "name a file with our credentials, certificate or key: --credentials, --ca, --cert, --key"
            }
            NatsError::NoResponders { .. } | NatsError::Failed { .. } => {
                "check that a Hub is running (`casebook cluster` or casebook-hub) and that `--credentials` names the right user"
            }
            NatsError::Old { .. } | NatsError::Unfit { .. } | NatsError::Different(_) => "",
        };
        let exit = if matches!(error, NatsError::File { .. }) { Exit::Usage } else { Exit::Failed };
        Self { exit, what: error.to_string(), advice: advice.into() }
    }
}

impl Failure {
    pub fn usage(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.to_string(), advice: advice.into() }
    }

    pub fn failed(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.to_string(), advice: advice.into() }
    }

    /// For an investigation that can be resumed.
    pub fn unfinished(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Unfinished, what: what.to_string(), advice: advice.into() }
    }

    /// `command` goes on.
    pub fn not_investigated(what: impl fmt::Display, command: impl fmt::Display) -> Self {
        let advice = format!("no log was read; correct this, then go on with: {command}");
        Self { exit: Exit::NotInvestigated, what: what.to_string(), advice }
    }

    pub fn defect(what: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Defect,
            what: what.to_string(),
            advice: "this is a defect of casebook; recorded results are safe; please report it".into(),
        }
    }

    /// The system has no random numbers.
    pub fn random(error: &std::io::Error) -> Self {
        Self::failed(error, "make it readable for casebook")
    }

    #[must_use]
    pub fn write(path: &Path, error: &std::io::Error) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "free some space on that disk, then run the same command again; recorded results are safe"
            }
            std::io::ErrorKind::PermissionDenied => "choose a folder that you may write to",
            _ => "choose another path, or make this one writable",
        };
        Self::failed(format!("cannot write {}: {error}", path.display()), advice)
    }
}
