//! What may be believed. Pure rules over what the agents propose and the recorded bytes: the check of every
//! citation ([`check`]) and claim ([`claim`]), score caps, the Timeline and the verdict ([`rule`]), fields whose
//! text the recorded party chooses ([`chosen`]), and text that addresses the investigator ([`injection`]).
//!
//! No clock, no IO, no async: the same input gives the same answer in a Hub, in a test and in a replay.

pub mod check;
pub mod chosen;
pub mod claim;
pub mod injection;
pub mod rule;

pub use check::Exhibits;
pub use rule::Docket;
