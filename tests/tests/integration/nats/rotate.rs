//! Changed credentials, restarts and an outage, while a team of real processes works, and what it logs.

use std::ops::Range;

use casebook_protocol::Timestamp;
use casebook_tests::chaos::books::Away;
use casebook_tests::chaos::closing::unfinished;
use casebook_tests::chaos::run::{Survived, alert, check};
use casebook_tests::chaos::{Order, books::Ms};
use casebook_tests::team::{Part, Processes, READY, Team as RealTeam};
use rustix::process::Signal;
use tokio::runtime::Runtime;

use super::*;

fn now() -> Ms {
    Timestamp::now().as_millisecond()
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// A team with the investigations that it must end.
struct Rig {
    order: Order,
    team: RealTeam,
    runtime: Runtime,
    expected: BTreeSet<InvestigationId>,
}

impl Rig {
    fn start(order: Order) -> Self {
        let team = RealTeam::start(&order.shape).unwrap();
        Self { order, team, runtime: Runtime::new().unwrap(), expected: BTreeSet::new() }
    }

    fn send(&mut self, numbers: Range<usize>) {
        let publisher = self.runtime.block_on(self.team.publisher()).unwrap();
        for n in numbers {
            let (alert, bytes) = alert(self.order.seed, n).unwrap();
            self.expected.insert(casebook_hub::investigation_id(&alert.id, 1));
            self.runtime.block_on(publisher.store(subject::ALERTS, bytes)).unwrap();
        }
    }

    /// Waits until all has ended, and checks it.
    fn end(&mut self, away: &[Away]) -> Survived {
        let hub = self.runtime.block_on(self.team.connection()).unwrap();
        let open = || self.runtime.block_on(unfinished(&hub, &self.expected));
        assert!(wait::holds(PATIENCE, || open().is_empty()), "{:?}\n{}", open(), self.team.tails());
        let mut survived = Survived::default();
        let lease = Ms::try_from(self.order.shape.lease * 1_000).unwrap();
        let checked = check(&self.team, &hub, &self.expected, (away, lease), &mut survived);
        self.runtime.block_on(checked).unwrap();
        survived.faults.extend(self.team.ended());
        assert_eq!(survived.faults, Vec::<String>::new(), "{}", self.team.tails());
        survived
    }
}

/// Waits until each process is ready.
fn ready(team: &mut Processes) {
    (0..team.members.len()).for_each(|i| team.ready(i, READY).unwrap());
}

/// The processes whose health gives this reason.
fn complaining(team: &Processes, reason: &str) -> usize {
    let said = |i: usize| team.health(i).is_some_and(|answer| answer.reasons.iter().any(|why| why.contains(reason)));
    (0..team.members.len()).filter(|i| said(*i)).count()
}

fn ids(team: &Processes) -> Vec<Option<u32>> {
    team.members.iter().map(casebook_tests::team::Member::id).collect()
}

/// Lines of all logs that have this text.
fn lines(team: &Processes, text: &str) -> usize {
    team.logs().iter().map(|(_, log)| log.lines().filter(|line| line.contains(text)).count()).sum()
}

#[test]
fn changed_passwords_need_no_restart() {
    let mut rig = Rig::start(Order::of_one_each(41));
    let began = ids(&rig.team);
    rig.send(0..2);
    pause(500);
    let from = now();
    rig.team.nats.change_passwords("new").unwrap();
    let all = rig.team.members.len();
    let refused = || complaining(&rig.team, "refuses the credentials (authorization violation)") == all;
    assert!(wait::holds(READY, refused), "{}", rig.team.tails());
    assert_eq!(complaining(&rig.team, "does not store writes"), 0, "this write is not refused");
    rig.team.nats.write_credentials("new").unwrap();
    ready(&mut rig.team);
    let away = [Away { who: None, from, until: now(), ..Away::default() }];
    rig.send(2..4);
    rig.end(&away);
    assert_eq!(ids(&rig.team), began, "no process was started again");
    let told = lines(&rig.team, "refuses this process");
    assert!((all..all + 8).contains(&told), "one line for each connection, got {told}");
    assert_eq!(lines(&rig.team, "\"target\":\"async_nats"), 0, "the library logs each attempt");
}

#[test]
fn hangup_reads_credentials_again_and_ends_nothing() {
    let mut rig = Rig::start(Order::of_one_each(42));
    let began = ids(&rig.team);
    rig.send(0..3);
    pause(300);
    let from = now();
    (0..rig.team.members.len()).for_each(|i| rig.team.signal(i, Signal::HUP));
    let read = || lines(&rig.team, "read the credentials again") >= rig.team.members.len();
    assert!(wait::holds(READY, read), "{}", rig.team.tails());
    let away = [Away { who: None, from, until: now() + 1_000, ..Away::default() }];
    rig.end(&away);
    // A file that cannot be used changes nothing.
    let hub = rig.team.members.iter().position(|member| member.part == Part::Hub).unwrap();
    let file = rig.team.nats.credentials().join("hub");
    let kept = std::fs::read(&file).unwrap();
    std::fs::write(&file, "broken").unwrap();
    rig.team.signal(hub, Signal::HUP);
    let unusable = || lines(&rig.team, "cannot use the new credentials") > 0;
    assert!(wait::holds(READY, unusable), "{}", rig.team.tails());
    assert!(rig.team.health(hub).unwrap().ready);
    std::fs::write(&file, kept).unwrap();
    rig.send(3..4);
    rig.end(&away);
    assert_eq!(ids(&rig.team), began);
}

#[test]
fn experts_of_one_domain_restart_one_by_one_without_repeating_a_call() {
    let mut order = Order::small(43);
    order.shape.parts = vec![(Part::Hub, 1), (Part::Director, 1), (Part::Critic, 1), (Part::Expert, 2)];
    order.shape.domain = Some("network".into());
    // No lease is lost on a busy machine.
    order.shape.lease = 10;
    order.shape.latency = Duration::from_millis(250);
    let mut rig = Rig::start(order);
    let experts: Vec<usize> =
        (0..rig.team.members.len()).filter(|i| rig.team.members[*i].part == Part::Expert).collect();
    let mut sent = 0;
    for _ in 0..2 {
        for expert in &experts {
            rig.send(sent..sent + 3);
            sent += 3;
            pause(700);
            let status = rig.team.stop(*expert, Duration::from_secs(40)).unwrap();
            assert!(status.success(), "{status}: {}", rig.team.tails());
            rig.team.run(*expert).unwrap();
            rig.team.ready(*expert, READY).unwrap();
        }
    }
    let survived = rig.end(&[]);
    assert_eq!((survived.models.again, survived.tools.again), (0, 0), "{survived}");
    assert_eq!(survived.investigations, 12);
}

/// The lines of all processes, each as its fields with `service`.
fn told(team: &Processes) -> Vec<serde_json::Value> {
    let logs = team.logs();
    let lines = logs.iter().flat_map(|(_, log)| log.lines());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn team_logs_one_line_for_each_step_and_for_an_outage() {
    let mut rig = Rig::start(Order::of_one_each(44));
    rig.send(0..3);
    pause(300);
    let from = now();
    rig.team.nats.broker.kill();
    pause(3_000);
    rig.team.nats.broker.restart().unwrap();
    let away = [Away { who: None, from, until: now(), late: 1_000 }];
    rig.send(3..4);
    rig.end(&away);
    let all = told(&rig.team);
    let with = |message: &str| all.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    let mut messages: std::collections::BTreeMap<(String, String), usize> = std::collections::BTreeMap::new();
    for line in all.iter().filter(|line| line["level"] != "DEBUG") {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        *messages.entry((text("service"), text("message"))).or_default() += 1;
    }
    for line in &all {
        assert!(line["service"].as_str().unwrap().starts_with("casebook-"), "{line}");
        assert!(!line["instance"].as_str().unwrap().is_empty(), "{line}");
    }
    for id in &rig.expected {
        for (message, most) in [("alert accepted", 2), ("begun", 2), ("concluded", 1)] {
            let lines = with(message).iter().filter(|line| line["investigation"] == id.to_string()).count();
            // The outage may repeat the first two.
            assert!((1..=most).contains(&lines), "{message} {lines} times: {messages:#?}");
        }
    }
    for line in with("a tool runs") {
        assert!(line["task"].is_string() && line["investigation"].is_string(), "{line}");
    }
    let (begins, ends) = (
        with("no connection to the NATS server; work waits until it is back"),
        with("connected to NATS again; work goes on"),
    );
    assert_eq!(begins.len(), with("connected to NATS").len(), "{messages:#?}");
    assert_eq!(ends.len(), begins.len(), "{messages:#?}");
    // A few lines for each investigation and each connection, and none for a span.
    let connections = begins.len();
    let most = rig.expected.len() * 5 + connections * 5 + 10;
    let count: usize = messages.values().sum();
    assert!(count <= most, "{count} lines, at most {most}: {messages:#?}");
}
