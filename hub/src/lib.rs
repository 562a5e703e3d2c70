//! The Hub keeps the log of every investigation, folds it into [`state`], checks proposals ([`decide`]), and
//! chooses the next step ([`flow`], [`examination`]) and the content of each task ([`view`]). These are pure
//! functions, and [`advance`] combines them into one pass. [`ledger`] performs a pass on a store and a bus, [`batch`] groups
//! the inputs of one investigation, and [`actor`] provides [`HubHandle`]. [`intake`] accepts alerts.
//! [`archive`], [`report`] and [`verify`] read recorded investigations, and [`branch`] runs one again from any
//! round.

pub mod error;
pub mod state;

pub mod decide;
pub mod examination;
pub mod flow;
pub mod view;

pub mod advance;
pub(crate) mod lead;
pub mod ledger;
mod measure;
mod parts;

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
