//! The harness: scoring of whole investigations, generated logs, a scripted model behind real wire
//! formats, what the integration tests share, and what `casebook-lab` measures.

pub mod calibrate;
pub mod chaos;
pub mod fuzz;
pub mod generate;
pub mod hostile;
pub mod lab;
pub mod load;
pub mod model;
pub mod nats;
mod programs;
pub mod run;
pub mod score;
pub mod team;
pub mod thirdparty;

/// What a measurement gives, or what a person reads of why it could not be made.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
