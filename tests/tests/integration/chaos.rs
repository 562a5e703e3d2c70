//! A team of processes over NATS that is killed and paused at random, and killed after each model call.

use std::time::Duration;

use casebook_tests::chaos::Order;
use casebook_tests::chaos::each::each;
use casebook_tests::chaos::plan::{Blow, Strike, Target};
use casebook_tests::chaos::run::{run, run_with};

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

#[test]
fn killed_after_each_single_model_call_only_what_was_in_flight_is_made_again_and_no_tool_runs_twice() {
    let found = each(&Order::of_one_each(1), super::kills(8)).unwrap();
    let (calls, took) = found.whole;
    eprintln!("{calls} model calls, {took:?} undisturbed; then killed after the call that is named:");
    for killed in &found.killed {
        eprintln!("  {:>3} {:<10} over {:?} after the kill", killed.nth, killed.who, killed.to_the_end);
    }
    let survived = &found.survived;
    eprintln!("{survived}");
    assert_eq!(survived.faults, [""; 0]);
    assert!(calls >= 15 && found.killed.len() >= 5, "too few places: {calls} calls, {:?}", found.killed);
    assert!(survived.models.again > 0, "no kill hit a call in flight: the test shows nothing");
}

/// Longer than a Hub waits for a sign of life of an Expert.
#[test]
fn an_outage_of_the_server_or_a_hub_that_hangs_costs_no_task() {
    let mut order = Order::of_one_each(2);
    order.investigations = 5;
    order.length = Duration::from_secs(40);
    order.shape.latency = Duration::from_millis(600);
    let strike = |at, target, blow| {
        let away = Duration::from_secs(17);
        Strike { at: Duration::from_secs(at), target, blow, away }
    };
    let strikes = vec![strike(3, Target::Server, Blow::Pause), strike(25, Target::Member(0), Blow::Pause)];
    let (team, survived) = run_with(&order, strikes).unwrap();
    eprintln!("{survived}");
    assert!(survived.faults.is_empty(), "{survived}\n{}", team.tails());
}
