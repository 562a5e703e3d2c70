//! Experts investigate: each in one domain, with the tools of its sources, and cite what they saw.
//!
//! [`analyst`] is what thinks when no language
//! model is configured, [`roster`] who there is for a folder, [`actor`] the process shell;
//! [`profile`] and [`assignments`] are what a process of its own works on, [`scope`] what holds it to what it announced;
//! [`evidence_server`] is the same toolset for clients of other kinds.

pub mod actor;
pub mod analyst;
pub mod assignments;
pub mod brief;
pub mod definition;
pub mod evidence_server;
pub mod offloaded;
pub mod profile;
pub mod reasoner;
pub mod roster;
pub mod scope;
pub mod settings;
pub mod team;
