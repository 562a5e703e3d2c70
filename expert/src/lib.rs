//! Experts investigate, each in one domain with the tools of its sources, and cite what they saw.
//! - [`analyst`]: investigates without a language model
//! - [`roster`]: the Experts for a folder of evidence
//! - [`actor`]: the Expert as an actor
//! - [`profile`] and [`assignments`]: the work of a separate process
//! - [`scope`]: limits an Expert to the sources that it announced
//! - [`rules`]: the Sigma rules of a run
//! - [`evidence_server`]: the same tools over MCP

pub mod actor;
pub mod analyst;
pub mod assignments;
pub mod brief;
pub mod definition;
pub mod evidence_server;
pub mod formats;
pub mod offloaded;
pub mod profile;
mod raise;
pub mod reasoner;
pub mod roster;
pub mod rules;
pub mod scope;
pub mod settings;
pub mod sources;
pub mod team;
