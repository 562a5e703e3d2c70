//! Two Hubs of which one dies in the middle of an append.

use std::process::Command;
use std::time::Duration;

use casebook_hub::investigation_id;
use casebook_protocol::subject;
use casebook_runtime::nats::streams;
use casebook_tests::chaos::run::{Survived, alert, check};
use casebook_tests::chaos::{Order, closing};
use casebook_tests::team::{Part, Team};

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The server stands still while the Hub's next append is on its way to it, the Hub is killed, and the
/// server goes on with what reached it. Nobody else dies, so no call may be made twice.
#[test]
fn of_two_hubs_one_dies_in_the_middle_of_an_append() {
    let order = Order::small(11);
    let mut shape = order.shape.clone();
    shape.parts = vec![(Part::Hub, 2), (Part::Director, 1), (Part::Critic, 1), (Part::Expert, 1)];
    shape.latency = Duration::from_millis(40);
    let mut team = Team::start(&shape).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let connection = runtime.block_on(team.connection()).unwrap();
    let store = connection.env().store;
    let mut expected = std::collections::BTreeSet::new();
    for n in 0..6 {
        let (alert, bytes) = alert(order.seed, n).unwrap();
        let id = investigation_id(&alert.id, 1);
        expected.insert(id.clone());
        runtime.block_on(connection.store(subject::ALERTS, bytes)).unwrap();
        let events = |least: usize| {
            while runtime.block_on(store.log(&id, 1)).unwrap().len() < least {
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        events(3 + 9 * n);
        let server = team.nats.broker.pid();
        signal(server, "-STOP");
        std::thread::sleep(Duration::from_millis(60));
        // Either may be the one that investigates.
        let hub = n % 2;
        team.kill(hub);
        signal(server, "-CONT");
        team.run(hub).unwrap();
        team.ready(hub, Duration::from_secs(60)).unwrap();
    }
    let mut open = vec![];
    for _ in 0..240 {
        open = runtime.block_on(closing::unfinished(&connection, &expected));
        if open.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    assert_eq!(open, Vec::<String>::new(), "{}", team.tails());
    let mut survived = Survived::default();
    let lease = i64::try_from(streams::LEASE.as_millis()).unwrap();
    runtime.block_on(check(&team, &connection, &expected, (&[], lease), &mut survived)).unwrap();
    assert!(survived.faults.is_empty(), "{survived}\n{}", team.tails());
    assert_eq!(survived.investigations, 6);
}
