//! One binary for all tests across crates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

/// Runs `casebook` in `folder`, which must end well; what it printed.
fn casebook(folder: &Path, arguments: &[&str]) -> String {
    let program = casebook_tests::run::program("casebook");
    let output = std::process::Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// In how many places to kill: `unless_told`, or what CASEBOOK_KILLS says; `CASEBOOK_KILLS=all` kills
/// in every one, which takes an hour.
fn kills(unless_told: usize) -> usize {
    match std::env::var("CASEBOOK_KILLS").as_deref() {
        Ok("all") => 1_000_000,
        Ok(number) => number.parse().expect("CASEBOOK_KILLS is a number or all"),
        Err(_) => unless_told,
    }
}

mod architecture;
mod bench;
mod browser;
mod calibrate;
mod cases;
mod cited;
mod conformance;
mod deceive;
mod deploy;
mod files;
mod forms;
mod full;
mod fuzz;
mod hostile;
mod hosts;
mod image;
mod invocations_in_detail;
mod killed;
mod mcp;
mod models;
mod nats;
mod noise;
mod not_investigated;
mod point_in_time;
mod programs;
mod prompts;
mod readers;
mod requests;
mod scripted_model;
mod sensor;
mod serve;
mod sigma;
mod sim;
mod team;
mod telemetry;
mod tidy;
mod tools;
mod views;
mod windows;
