//! The test harness: scores of investigations, generated logs, a scripted model with real wire formats, code
//! that integration tests share, and the measurements of `casebook-lab`.

pub mod browser;
pub mod calibrate;
pub mod chaos;
pub mod deceive;
pub mod disk;
pub mod fuzz;
pub mod generate;
pub mod hostile;
pub mod hosts;
pub mod lab;
pub mod load;
pub mod many;
pub mod model;
pub mod nats;
pub mod noise;
pub mod podman;
mod programs;
pub mod reply;
pub mod run;
pub mod score;
pub mod sensor;
pub mod team;
pub mod thirdparty;
pub mod wait;
pub mod web;

pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
