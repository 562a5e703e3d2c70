//! A scripted model behind the real wire formats of the providers, for tests and benchmarks.
//!
//! [`server`] receives a request over HTTP, and [`wire`] parses and validates it as strictly as the provider. A
//! [`Script`](play::Script) replies: [`brain`] plays every role from the prompt alone, and [`faults`] adds
//! failures. [`capture`] stores all requests, and [`invariants`] checks them.

pub mod brain;
pub mod cache;
pub mod capture;
pub mod faults;
pub mod fooled;
pub mod invariants;
pub mod play;
pub mod prompt;
pub mod request;
pub mod server;
pub mod wire;

pub use play::{Play, Reply, Script, Stop};
pub use request::{Provider, Request};
pub use server::{Options, Server};
