//! The memory of Casebook: it keeps the log of every investigation, folds it into [`state`], checks
//! what agents propose ([`decide`]), says what comes next ([`flow`]) and what each task may know
//! ([`view`]). All of that is pure; [`advance`] joins it into one pass from commands to events and
//! tasks. [`ledger`] performs a pass on a store and a bus, [`batch`] gathers the work of one
//! investigation, and [`actor`] is the shell with the public [`HubHandle`]. [`intake`] is the one door for alerts. What is recorded is read
//! again by [`archive`], [`report`] and [`verify`], and run again from any round by [`branch`]. The embedded home of all of it is
//! [`SqliteStore`].

pub mod error;
pub mod state;

pub mod decide;
pub mod flow;
pub mod view;

pub mod advance;
pub mod ledger;
mod measure;

pub mod actor;
pub mod batch;

pub mod intake;
pub mod program;
pub mod roster;
pub mod service;

pub mod archive;
pub mod branch;
pub mod report;
pub mod verify;

pub mod memory;
pub mod sqlite;

pub use actor::{HubHandle, HubObservation, InvestigationObservation};
pub use archive::Summary;
pub use branch::{Branch, BranchError};
pub use error::HubError;
pub use intake::{Intake, investigation_id};
pub use memory::MemoryStore;
pub use sqlite::{OpenError, SqliteStore};
pub use state::{Case, Progress, Round, State, TaskState};
pub use verify::Verification;

#[cfg(test)]
mod tests {
    pub(crate) mod away;
    pub(crate) mod script;
    mod work;
}
