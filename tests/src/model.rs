//! A scripted model behind the real wire formats of the providers, for tests and benchmarks.
//!
//! A request comes in over HTTP ([`server`]), is read and refused as strictly as the provider would
//! ([`wire`]), and is played by a [`Script`](play::Script): the [`brain`] that plays every role from
//! the prompt alone, or [`faults`] around it. Every request is captured ([`capture`]) and can be
//! checked for what must hold of all of them ([`invariants`]).

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
