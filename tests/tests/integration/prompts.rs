//! Bytes of the prompts of whole investigations: linear in rounds, since every channel is bounded.

use casebook_protocol::Budget;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::{generate, run};

fn bytes(rounds: u32) -> usize {
    let case = generate::case().unwrap();
    let brain = Brain { rounds, expert_calls: 1, critic_calls: 1, journal: 3, ..Brain::default() };
    let lab = Lab::start(brain, FORMS[0]).unwrap();
    let report = lab.investigate(case.path(), Budget { rounds: rounds + 2, ..Budget::default() }).unwrap();
    run::no_task_failed(&report).unwrap();
    assert_eq!(report.usage.rounds, rounds);
    lab.server.log().captured().iter().map(|one| one.request.bytes.len()).sum()
}

#[test]
fn ten_times_the_rounds_take_ten_times_the_bytes() {
    let [five, twenty, fifty] = [5, 20, 50].map(bytes);
    let told = format!("5 rounds {five}, 20 rounds {twenty}, 50 rounds {fifty}: {:.2}", fifty as f64 / five as f64);
    println!("{told}");
    assert!(fifty * 10 <= five * 105, "{told}");
    assert!(twenty * 10 <= five * 42, "{told}");
}
