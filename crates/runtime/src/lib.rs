//! What a process of Casebook needs: the two seams [`bus`] and [`store`] with what is in between ([`wire`],
//! [`stored`]), time, the actor shell ([`process`]), the frame of a process that serves ([`service`]), NATS
//! ([`nats`]) and telemetry.

pub mod bus;
pub mod clock;
pub mod config;
pub mod env;
pub mod files;
pub mod nats;
pub mod near;
pub mod process;
pub mod service;
pub mod store;
pub mod stored;
pub mod telemetry;
pub mod tls;
pub mod wire;

pub use env::Env;
