//! The server over real HTTP, with a client that knows nothing of it but the public formats.

mod client;
mod counts;
mod faults;
mod formats;
mod refusals;
mod roles;
