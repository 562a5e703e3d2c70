//! A team of processes over NATS that is killed and paused at random, and killed after each model call.

use casebook_tests::chaos::Order;
use casebook_tests::chaos::run::run;

/// What CASEBOOK_CHAOS_SEED says, or a fixed seed.
fn seed() -> u64 {
    std::env::var("CASEBOOK_CHAOS_SEED").map_or(7, |seed| seed.parse().expect("CASEBOOK_CHAOS_SEED is a number"))
}

#[test]
fn whatever_is_killed_every_alert_becomes_one_investigation_and_no_finished_call_is_made_again() {
    let seed = seed();
    eprintln!("chaos with seed {seed}: CASEBOOK_CHAOS_SEED={seed} does the same again");
    let (team, survived) = run(&Order::small(seed)).unwrap();
    eprintln!("{survived}");
    assert!(survived.kills() >= 5, "too little was struck");
    assert!(survived.faults.is_empty(), "{survived}\n{}", team.tails());
}
