//! One binary for all tests across crates.

mod architecture;
mod sim;
