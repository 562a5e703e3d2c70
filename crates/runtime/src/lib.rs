//! What every process of Casebook needs: [`bus`] and [`store`] with their formats ([`wire`], [`stored`]), time, actors
//! ([`process`]), long-running services ([`service`]), NATS ([`nats`]) and telemetry.

pub mod bus;
pub mod clock;
pub mod config;
pub mod env;
pub mod files;
pub mod nats;
pub mod near;
pub mod process;
pub mod random;
pub mod service;
pub mod store;
pub mod stored;
pub mod telemetry;
pub mod tls;
pub mod wire;

pub use env::Env;
