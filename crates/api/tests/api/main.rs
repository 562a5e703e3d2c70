//! Pages as text, the API over real HTTP, and hostile texts in every page.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod golden;
mod hostile;
mod http;
mod kit;
mod long;
