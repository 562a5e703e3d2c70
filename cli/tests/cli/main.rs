//! Tests from outside: what the library renders and what the program answers.

// The exception that clippy.toml makes for tests does not reach their helper functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod check;
mod commands;
mod errors;
mod fixture;
mod formats;
mod html;
mod investigate;
mod models;
mod render;
mod rules;
mod verify;
