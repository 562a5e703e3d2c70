//! What went wrong, in words that a person can act on, and how the program ends.

use std::fmt;
use std::path::Path;

use casebook_report::save::SaveError;

/// How the program ends: what its exit code says to a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// What was asked is done, whatever the verdict.
    Done = 0,
    /// The machine did not let us: a full disk, a locked data folder, evidence that changed.
    Failed = 1,
    /// The command or its input is wrong.
    Usage = 2,
    /// The investigation is not finished and can be resumed.
    Unfinished = 3,
    /// `verify` found that something is not what was recorded.
    NotIntact = 4,
    /// A replay had no answer for a request: what came of it is not the recorded run.
    NotReplayed = 5,
    /// `doctor` found a model that cannot be used.
    Unfit = 6,
    /// A defect of Casebook.
    Defect = 70,
}

impl Exit {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// Why a command did not do what was asked: one line that says what and where, one that says what to
/// do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// What was wrong, and where.
    pub what: String,
    /// What to do.
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

impl Failure {
    /// The command or its input is wrong.
    pub fn usage(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.to_string(), advice: advice.into() }
    }

    /// The machine did not let us.
    pub fn failed(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.to_string(), advice: advice.into() }
    }

    /// The investigation is not finished and can be resumed.
    pub fn unfinished(what: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { exit: Exit::Unfinished, what: what.to_string(), advice: advice.into() }
    }

    /// What must not happen.
    pub fn defect(what: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Defect,
            what: what.to_string(),
            advice: "this is a defect of casebook: what is recorded is safe; please report it".into(),
        }
    }

    /// A file or folder cannot be written.
    #[must_use]
    pub fn write(path: &Path, error: &std::io::Error) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "free some space on that disk, then run the same command again: what is recorded is safe"
            }
            std::io::ErrorKind::PermissionDenied => "choose a folder that you may write to",
            _ => "choose another place, or see to it that this one can be written",
        };
        Self::failed(format!("cannot write {}: {error}", path.display()), advice)
    }
}
