//! The harness: scoring of whole investigations, generated logs, and what the integration tests share.

pub mod fuzz;
pub mod generate;
pub mod run;
pub mod score;
