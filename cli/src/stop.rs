//! Ctrl-C and SIGTERM: the first asks to stop, the second ends the process at once.

pub use casebook_runtime::service::signals::{Stop, Stopper};

use crate::failure::{Exit, Failure};

pub fn listen() -> Result<Stop, Failure> {
    Stop::listen(Exit::Unfinished.code().into()).map_err(failed)
}

#[allow(clippy::needless_pass_by_value)]
pub(crate) fn failed(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot listen for signals: {error}"), "")
}
