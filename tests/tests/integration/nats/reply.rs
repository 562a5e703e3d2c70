//! No user gets anything written through the address of an answer.

use casebook_tests::{nats, reply};

fn nothing_is_written(server: &std::path::Path) {
    let tried = reply::run(server).unwrap();
    assert!(tried.faults.is_empty(), "{:#?}", tried.faults);
    assert!(tried.messages > 10_000, "{} messages are too few", tried.messages);
}

#[test]
fn no_answer_reaches_a_forbidden_subject() {
    nothing_is_written(&nats::program().unwrap());
}

#[test]
fn no_answer_reaches_a_forbidden_subject_on_the_oldest_server() {
    nothing_is_written(&nats::oldest());
}
