//! Experts investigate: each in one domain, with the tools of its sources, and cite what they saw.
//!
//! [`evidence`] is the built-in toolset over a folder of logs, [`analyst`] what thinks when no language
//! model is configured, [`roster`] who there is for a folder, [`actor`] the process shell.

pub mod actor;
pub mod analyst;
pub mod brief;
pub mod evidence;
pub mod roster;
