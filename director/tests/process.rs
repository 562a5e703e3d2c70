//! The program as whoever runs it sees it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::process::{Command, Stdio};
use std::time::Duration;

#[path = "../../crates/runtime/tests/support/process.rs"]
mod process;
#[path = "../../crates/runtime/tests/support/role.rs"]
mod role;

const PROGRAM: &str = env!("CARGO_BIN_EXE_casebook-director");

#[test]
fn the_effective_settings_are_printed_with_where_they_came_from() {
    role::settings_are_printed(PROGRAM, "director");
}

#[test]
fn what_is_wrong_is_told_with_its_place_before_anything_is_done() {
    role::what_is_wrong_is_told(PROGRAM, "director");
}

#[test]
fn without_a_server_it_lives_is_not_ready_and_ends_when_asked() {
    role::without_a_server(PROGRAM, "director");
}

#[test]
fn a_child_ends_with_whoever_started_it() {
    let mut command = Command::new(PROGRAM);
    command.args(["--nats", "nats://127.0.0.1:9", "--until-eof"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "it runs for as long as its standard input is open");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
