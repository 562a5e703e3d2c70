//! The program as whoever runs it sees it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../../crates/runtime/tests/support/process.rs"]
mod process;
#[path = "../../crates/runtime/tests/support/role.rs"]
mod role;

const PROGRAM: &str = env!("CARGO_BIN_EXE_casebook-critic");

#[test]
fn the_effective_settings_are_printed_with_where_they_came_from() {
    role::settings_are_printed(PROGRAM, "critic");
}

#[test]
fn what_is_wrong_is_told_with_its_place_before_anything_is_done() {
    role::what_is_wrong_is_told(PROGRAM, "critic");
}

#[test]
fn without_a_server_it_lives_is_not_ready_and_ends_when_asked() {
    role::without_a_server(PROGRAM, "critic");
}
