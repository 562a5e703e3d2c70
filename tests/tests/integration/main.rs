//! One binary for all tests across crates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod architecture;
mod cases;
mod process;
mod sim;
