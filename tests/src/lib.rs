//! The harness: scoring of whole investigations, generated logs, a scripted model behind real wire
//! formats, and what the integration tests share.

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
