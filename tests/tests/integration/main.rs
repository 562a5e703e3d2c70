//! One binary for all tests across crates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

/// In how many places to kill: `unless_told`, or what CASEBOOK_KILLS says; `CASEBOOK_KILLS=all` kills
/// in every one, which takes an hour.
fn kills(unless_told: usize) -> usize {
    match std::env::var("CASEBOOK_KILLS").as_deref() {
        Ok("all") => 1_000_000,
        Ok(number) => number.parse().expect("CASEBOOK_KILLS is a number or all"),
        Err(_) => unless_told,
    }
}

mod append;
mod architecture;
mod calibrate;
mod cases;
mod chaos;
mod conformance;
mod deploy;
mod fuzz;
mod hostile;
mod killed;
mod mcp;
mod models;
mod nats;
mod process;
mod programs;
mod prompts;
mod scripted_model;
mod sim;
mod team;
mod telemetry;
mod tools;
