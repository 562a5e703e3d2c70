//! What pages show, computed from the log and its state. No clock, no I/O.

pub mod insights;
pub mod limits;
pub mod row;
pub mod spans;
pub mod told;
pub mod upload;
pub mod verified;
pub mod zone;
