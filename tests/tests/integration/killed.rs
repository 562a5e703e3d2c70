//! Real processes, killed with `kill -9`: `casebook` alone after each line that it printed, and a team
//! over NATS at random, after each model call, and in the middle of an append.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use casebook_hub::investigation_id;
use casebook_protocol::{Report, subject};
use casebook_report::compare::stable;
use casebook_runtime::nats::streams;
use casebook_tests::chaos::each::each;
use casebook_tests::chaos::plan::{Blow, Strike, Target};
use casebook_tests::chaos::run::{Survived, alert, check, run, run_with};
use casebook_tests::chaos::{Order, closing, scale};
use casebook_tests::generate;
use casebook_tests::team::{Part, Team};
use casebook_tests::wait;

use super::casebook;

/// A folder with an alert and its evidence.
struct Case(tempfile::TempDir);

impl Case {
    fn new() -> Self {
        Self(generate::case().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The process that investigates with this data folder.
    fn process(&self, data: &str) -> Command {
        let mut command = Command::new(casebook_tests::run::program("casebook"));
        command.args(investigate(data)).current_dir(self.path()).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(Stdio::piped());
        command
    }

    fn report(&self, data: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.path().join(format!("{data}-out/report.json"))).unwrap();
        stable(&serde_json::from_str::<Report>(&text).unwrap())
    }
}

fn investigate(data: &str) -> Vec<String> {
    let arguments = format!("investigate alert.json --evidence evidence --data {data} --out {data}-out -v");
    arguments.split(' ').map(str::to_owned).collect()
}

fn arguments(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Kills the process after it printed `lines` lines; says whether it was still running.
fn kill_after(mut command: Command, lines: usize) -> bool {
    let mut child = command.spawn().unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap()).lines().take(lines).count();
    let running = printed == lines && child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

#[test]
fn kill_after_any_line_resumes_to_the_same_report() {
    let case = Case::new();
    let folder = case.path();
    let lines = casebook(folder, &arguments(&investigate("whole"))).lines().count();
    let expected = case.report("whole");
    let mut killed = 0;
    for at in (1..lines).step_by((lines / super::kills(14)).max(1)) {
        let data = format!("data-{at}");
        killed += usize::from(kill_after(case.process(&data), at));
        let id = || {
            let list = casebook(folder, &["list", "--data", &data]);
            list.split_whitespace().find(|w| w.len() == 36 && w.matches('-').count() == 4).map(str::to_owned)
        };
        // Killed before it was opened there is nothing to resume: then it is asked for again.
        match id() {
            Some(id) => casebook(folder, &["resume", &id, "--data", &data, "--out", &format!("{data}-out")]),
            None => casebook(folder, &arguments(&investigate(&data))),
        };
        assert_eq!(case.report(&data), expected, "killed after line {at} of {lines}");
        casebook(folder, &["verify", &id().unwrap(), "--data", &data, "--evidence", "evidence"]);
    }
    assert!(killed >= 5, "only {killed} kills hit a running process");
}

#[test]
fn second_process_on_a_data_folder_is_refused() {
    let case = Case::new();
    let mut first = case.process("data").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let program: PathBuf = casebook_tests::run::program("casebook");
    let mut second = Command::new(program);
    let second = second.args(investigate("data")).current_dir(case.path()).output().unwrap();
    let running = first.try_wait().unwrap().is_none();
    first.kill().unwrap();
    first.wait().unwrap();
    if running {
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(!second.status.success());
        assert!(said.contains("data") && said.lines().count() >= 2, "says what and what to do: {said}");
    }
}

/// What CASEBOOK_CHAOS_SEED says, or a fixed seed.
fn seed() -> u64 {
    std::env::var("CASEBOOK_CHAOS_SEED").map_or(7, |seed| seed.parse().expect("CASEBOOK_CHAOS_SEED is a number"))
}

/// Every alert became one investigation, and no finished call was made again.
fn survived((team, survived): (Team, Survived)) -> Survived {
    eprintln!("{survived}");
    assert!(survived.faults.is_empty(), "{survived}\n{}", team.tails());
    survived
}

#[test]
fn team_killed_and_paused_at_random_loses_nothing() {
    let seed = seed();
    eprintln!("chaos with seed {seed}: CASEBOOK_CHAOS_SEED={seed} does the same again");
    let survived = survived(run(&Order::small(seed)).unwrap());
    assert!(survived.kills() >= 5, "too little was struck");
}

#[test]
fn kill_after_each_model_call_repeats_only_calls_in_flight() {
    let found = each(&Order::of_one_each(1), super::kills(8)).unwrap();
    let (calls, took) = found.whole;
    eprintln!("{calls} model calls, {took:?} undisturbed; then killed: {:#?}\n{}", found.killed, found.survived);
    assert_eq!(found.survived.faults, [""; 0]);
    assert!(calls >= 15 && found.killed.len() >= 5, "too few places: {calls} calls, {:?}", found.killed);
    assert!(found.survived.models.again > 0, "no kill hit a call in flight: the test shows nothing");
}

/// Longer than a Hub waits for a sign of life of an Expert.
#[test]
fn outage_of_server_or_hub_fails_no_task() {
    let mut order = Order::of_one_each(2);
    order.investigations = 5;
    order.length = Duration::from_secs(40);
    order.shape.latency = Duration::from_millis(600);
    let strike = |at, target, blow| {
        let away = Duration::from_secs(17);
        Strike { at: Duration::from_secs(at), target, blow, away }
    };
    let strikes = vec![strike(3, Target::Server, Blow::Pause), strike(25, Target::Member(0), Blow::Pause)];
    survived(run_with(&order, strikes).unwrap());
}

/// The server stands still while the Hub's next append is on its way to it, the Hub is killed, and the
/// server goes on with what reached it. Nothing else dies, so no call may be made twice.
#[test]
fn hub_killed_during_an_append_loses_nothing() {
    let order = Order::small(11);
    let mut shape = order.shape.clone();
    shape.parts = vec![(Part::Hub, 2), (Part::Director, 1), (Part::Critic, 1), (Part::Expert, 1)];
    shape.latency = Duration::from_millis(40);
    let mut team = Team::start(&shape).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let connection = runtime.block_on(team.connection()).unwrap();
    let store = connection.env().store;
    let mut expected = BTreeSet::new();
    for n in 0..6 {
        let (alert, bytes) = alert(order.seed, n).unwrap();
        let id = investigation_id(&alert.id, 1);
        expected.insert(id.clone());
        runtime.block_on(connection.store(subject::ALERTS, bytes)).unwrap();
        while runtime.block_on(store.log(&id, 1)).unwrap().len() < 3 + 9 * n {
            std::thread::sleep(Duration::from_millis(2));
        }
        let server = team.nats.broker.pid().to_string();
        let signal = |name: &str| assert!(Command::new("kill").args([name, &server]).status().unwrap().success());
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(60));
        // Either may be the one that investigates.
        let hub = n % 2;
        team.kill(hub);
        signal("-CONT");
        team.run(hub).unwrap();
        team.ready(hub, Duration::from_secs(60)).unwrap();
    }
    let open = || runtime.block_on(closing::unfinished(&connection, &expected));
    assert!(wait::holds(Duration::from_secs(60), || open().is_empty()), "{:?}\n{}", open(), team.tails());
    let mut found = Survived::default();
    let lease = i64::try_from(streams::LEASE.as_millis()).unwrap();
    runtime.block_on(check(&team, &connection, &expected, (&[], lease), &mut found)).unwrap();
    assert_eq!(survived((team, found)).investigations, 6);
}

/// `casebook-lab scale` in short.
#[test]
fn experts_of_a_domain_share_their_queue_and_lose_nothing() {
    let mut order = Order::small(3);
    order.shape.latency = Duration::from_millis(300);
    let scaled = scale::run(&order, 2).unwrap();
    assert_eq!((scaled.lost, scaled.made[1], &scaled.faults), (0, 0, &vec![]), "{scaled}");
    let all: usize = scaled.calls.iter().sum();
    assert!(all > 0 && scaled.calls.iter().all(|calls| calls * 4 >= all), "each has a quarter at least: {scaled}");
}
