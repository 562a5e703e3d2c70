//! `casebook cluster`: the real processes, each with the rights of its role, over a real NATS server.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use casebook_protocol::Report;
use casebook_report::compare::stable;
use casebook_tests::{generate, run};

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        generate::write(&folder.path().join("evidence"), 200_000, 3).unwrap();
        std::fs::write(folder.path().join("alert.json"), generate::ALERT).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(run::program("casebook"));
        command.arg("cluster").args(arguments).args(["--evidence", "evidence", "--port", "0"]);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("CASEBOOK_NATS");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn logs(&self, end: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.at(".casebook/cluster/logs")).unwrap().flatten();
        let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.to_string_lossy().ends_with(end)).collect();
        all.sort();
        all
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_team_investigates_an_alert_with_least_rights_to_the_report_of_one_process() {
    let case = Case::new();
    let output = case.run(&["alert.json", "--out", "report"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    let report: Report = serde_json::from_str(&text(&case.at("report/report.json"))).unwrap();
    let embedded = run::investigate(&case.at("alert.json"), &case.at("evidence")).unwrap();
    let comparable = |report: &Report| serde_json::to_string_pretty(&stable(report)).unwrap();
    assert_eq!(comparable(&report), comparable(&embedded));
    let experts = case.logs(".out").iter().filter(|p| p.to_string_lossy().contains("/expert-")).count();
    assert!(experts >= 3, "{experts}");
    let server = text(&case.at(".casebook/cluster/nats/nats-server.log"));
    assert!(!server.contains("Violation"), "each may do what it has to:\n{server}");
    assert!(server.contains("Server Exiting"), "it was stopped, and last");
    for log in case.logs(".log") {
        let log = text(&log);
        assert!(!log.contains("ERROR"), "{log}");
    }
}

/// A team that serves.
struct Team {
    child: Child,
    said: BufReader<ChildStderr>,
    seen: String,
}

impl Team {
    fn start(case: &Case) -> Self {
        let mut child = case.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said, seen: String::new() }
    }

    /// Reads on until a line has `what` in it.
    fn until(&mut self, what: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended without {what:?}:\n{}", self.seen);
            self.seen.push_str(&line);
            if line.contains(what) {
                return line;
            }
        }
    }

    fn signal(pid: &str, signal: &str) {
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // It has ended where the test went well; else its processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_dies_is_started_again_and_a_signal_stops_all_of_it() {
    let case = Case::new();
    let mut team = Team::start(&case);
    team.until("restarts  state");
    let server = team.until("nats-server");
    let director = team.until("director");
    let pid = |row: &str| row.split_whitespace().nth(1).unwrap().to_owned();
    Team::signal(&pid(&director), "-KILL");
    let ended = team.until("director ended (signal: 9");
    assert!(ended.contains("it is started again in 1 s"), "{ended}");
    team.until("director is ready again");
    Team::signal(&pid(&server), "-KILL");
    team.until("nats-server ended (signal: 9");
    team.until("nats-server runs again");
    let own = team.child.id().to_string();
    Team::signal(&own, "-INT");
    team.until("stops: what is under way is finished first");
    assert!(team.child.wait().unwrap().success(), "{}", team.seen);
    let mut out = String::new();
    team.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(out.contains("casebook alert ALERT.json --nats nats://127.0.0.1:"), "{out}");
    let port = out.split("nats://127.0.0.1:").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the server is gone");
}

#[test]
fn what_a_killed_team_left_over_ends_and_the_next_one_goes_on() {
    let case = Case::new();
    let mut team = Team::start(&case);
    team.until("restarts  state");
    let server = team.until("nats-server").split_whitespace().nth(1).unwrap().to_owned();
    let hub = team.until("hub").split_whitespace().nth(1).unwrap().to_owned();
    let runs = |pid: &str| Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success();
    drop(team);
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while runs(&hub) {
        assert!(std::time::Instant::now() < end, "the processes end with whoever started them");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(runs(&server), "the server does not know that it was left over");
    let output = case.run(&["alert.json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!runs(&server), "it was ended before the next one was started");
}

#[test]
fn what_is_wrong_is_told_before_anything_is_started() {
    let case = Case::new();
    std::fs::write(case.at("models.toml"), "[models.x]\n").unwrap();
    let refused = |arguments: &[&str]| {
        let output = case.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&["--models", "models.toml"]);
    assert!(said.contains("models.toml:1"), "{said}");
    let said = refused(&["nowhere.json"]);
    assert!(said.contains("cannot read the alert from nowhere.json"), "{said}");
    assert!(!case.at(".casebook/cluster/nats/nats-server.log").exists());
}
