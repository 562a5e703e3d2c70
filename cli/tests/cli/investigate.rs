//! Whole investigations: from the library, stopped anywhere and resumed; and as a person types them.

use std::path::Path;
use std::process::Command;

use casebook_cli::embedded::{self, Begun, NoObserver, Observer, Options};
use casebook_cli::failure::{Exit, Failure};
use casebook_cli::home::Home;
use casebook_cli::stop::{Stop, Stopper};
use casebook_protocol::{Alert, Budget, InvestigationId, Recorded, Report};
use serde_json::{Value, json};

pub(crate) const ALERT: &str = r#"{"id":"kmod-7","rule":{"title":"Kernel module tool used","level":"high"},"time":"2026-03-01T02:14:07.120Z","host":"web-03","process":{"pid":4711,"name":"modprobe","command_line":"modprobe --show-depends overlay"},"user":"deploy"}"#;

/// A small case: process events and a login, with the alerted one among them.
pub(crate) fn evidence(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let mut processes = String::new();
    for n in 0..40 {
        let (pid, command) = if n == 20 {
            (4711, "modprobe --show-depends overlay".to_owned())
        } else {
            (4700 + n, format!("/usr/bin/dpkg --step {n}"))
        };
        let image = command.split(' ').next().unwrap().to_owned();
        let event = json!({"time": format!("2026-03-01T02:14:{:02}.120Z", n.min(59)), "host": "web-03", "user": "deploy", "pid": pid, "ppid": 4000, "image": image, "command_line": command});
        processes += &format!("{event}\n");
    }
    std::fs::write(folder.join("endpoint_process.ndjson"), processes).unwrap();
    let auth = "2026-03-01T02:13:59.000Z web-03 sshd[811]: Accepted publickey for deploy from 10.0.4.17 port 51122 ssh2\n2026-03-01T02:13:59.400Z web-03 sshd[811]: pam_unix(sshd:session): session opened for user deploy\n";
    std::fs::write(folder.join("auth.log"), auth).unwrap();
}

fn options(folder: &Path) -> Options {
    Options {
        alert: Alert::parse(ALERT.as_bytes()).unwrap(),
        sources: folder.join("logs").into(),
        data: folder.join("data"),
        budget: Budget::default(),
        reasoners: casebook_cli::reasoners::Reasoners::analyst(),
    }
}

/// Asks to stop at an event.
struct StopAt {
    at: u64,
    stopper: Stopper,
    seen: Vec<u64>,
    begun: Vec<Begun>,
}

impl Observer for StopAt {
    fn begun(&mut self, _: &InvestigationId, how: Begun) {
        self.begun.push(how);
    }

    fn recorded(&mut self, entry: &Recorded) {
        self.seen.push(entry.seq);
        if entry.seq == self.at {
            self.stopper.stop();
        }
    }
}

fn run<T>(main: impl Future<Output = T>) -> T {
    casebook_runtime::process::run(main).unwrap()
}

fn whole(folder: &Path) -> Report {
    let (_stopper, mut stop) = Stop::by_hand();
    run(embedded::investigate(options(folder), &mut NoObserver, &mut stop)).unwrap()
}

fn stopped(folder: &Path, at: u64) -> (Result<Report, Failure>, StopAt) {
    let (stopper, mut stop) = Stop::by_hand();
    let mut observer = StopAt { at, stopper, seen: vec![], begun: vec![] };
    let result = run(embedded::investigate(options(folder), &mut observer, &mut stop));
    (result, observer)
}

#[test]
fn stopped_anywhere_it_goes_on_to_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    evidence(&folder.path().join("logs"));
    let (straight, observer) = stopped(folder.path(), u64::MAX);
    let straight = casebook_report::compare::stable(&straight.unwrap());
    assert_eq!(observer.begun, [Begun::Fresh]);
    let last = *observer.seen.last().unwrap();
    assert_eq!(observer.seen, (1..=last).collect::<Vec<_>>(), "each event once, in order");
    for at in [1, 2, 5, last / 2, last - 3] {
        let data = folder.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        let (result, _) = stopped(folder.path(), at);
        let failure = match result {
            Err(failure) => failure,
            Ok(report) => {
                assert!(at > last / 2, "it ended before anyone could stop it at event {at} of {last}");
                assert_eq!(casebook_report::compare::stable(&report), straight);
                continue;
            }
        };
        assert_eq!(failure.exit, Exit::Unfinished, "{failure}");
        assert!(
            failure.advice.contains("casebook resume ")
                && failure.advice.contains(&format!("--data {}", data.display())),
            "{failure:?}"
        );
        let (result, observer) = stopped(folder.path(), u64::MAX);
        assert_eq!(observer.begun, [Begun::Continued]);
        assert_eq!(casebook_report::compare::stable(&result.unwrap()), straight, "stopped at event {at} of {last}");
    }
}

#[test]
fn stopped_investigation_goes_on_over_its_own_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    evidence(&logs);
    let failure = stopped(folder.path(), 3).0.unwrap_err();
    assert_eq!(failure.exit, Exit::Unfinished);
    std::fs::write(logs.join("more.log"), "2026-03-01T02:14:00Z web-03 cron[1]: x\n").unwrap();
    let (report, observer) = stopped(folder.path(), u64::MAX);
    assert_eq!(observer.begun, [Begun::Continued]);
    let proof = report.unwrap().proof.unwrap();
    assert!(!proof.snapshots.is_empty());
    let home = Home::open(&folder.path().join("data")).unwrap();
    assert_eq!(run(async { home.store.investigations().await }).unwrap().len(), 1);
}

#[test]
fn growth_of_the_logs_does_not_change_a_stopped_investigation() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    evidence(&logs);
    let (straight, observer) = stopped(folder.path(), u64::MAX);
    let straight = casebook_report::compare::stable(&straight.unwrap());
    let last = *observer.seen.last().unwrap();
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    assert_eq!(stopped(folder.path(), last / 2).0.unwrap_err().exit, Exit::Unfinished);
    for log in std::fs::read_dir(&logs).unwrap().flatten() {
        let text = std::fs::read(log.path()).unwrap();
        std::fs::write(log.path(), [text.as_slice(), b"\n", text.as_slice()].concat()).unwrap();
    }
    let (continued, observer) = stopped(folder.path(), u64::MAX);
    assert_eq!(observer.begun, [Begun::Continued]);
    assert_eq!(casebook_report::compare::stable(&continued.unwrap()), straight);
}

#[test]
fn evidence_without_a_source_of_before_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    evidence(&logs);
    assert_eq!(stopped(folder.path(), 3).0.unwrap_err().exit, Exit::Unfinished);
    let first = std::fs::read_dir(&logs).unwrap().flatten().next().unwrap();
    std::fs::remove_file(first.path()).unwrap();
    let failure = stopped(folder.path(), u64::MAX).0.unwrap_err();
    assert!(
        failure.what.contains("the evidence changed since investigation") && failure.what.contains("is gone"),
        "{failure}"
    );
}

#[test]
fn the_same_input_gives_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    evidence(&folder.path().join("logs"));
    let first = casebook_report::compare::stable(&whole(folder.path()));
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    assert_eq!(first, casebook_report::compare::stable(&whole(folder.path())));
}

#[test]
fn what_a_person_types_from_alert_to_verified_report() {
    let folder = tempfile::tempdir().unwrap();
    evidence(&folder.path().join("logs"));
    std::fs::write(folder.path().join("alert.json"), ALERT).unwrap();
    let casebook = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        let output = command
            .args(arguments)
            .current_dir(folder.path())
            .env_remove("CASEBOOK_DATA")
            .env_remove("CASEBOOK_LOG")
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {out}\n{err}");
        assert!(!out.contains('\u{1b}'), "no colours where there is no terminal");
        out
    };
    let live = casebook(&["investigate", "alert.json", "--evidence", "logs", "--out", "report"]);
    for needed in [
        "Alert     Kernel module tool used",
        "Round 1   discovery",
        "endpoint      4 findings",
        "Report report/report.html",
    ] {
        assert!(live.contains(needed), "{needed} is not in\n{live}");
    }
    let file = |name: &str| std::fs::read_to_string(folder.path().join("report").join(name)).unwrap();
    let json: Value = serde_json::from_str(&file("report.json")).unwrap();
    let id = json["investigation"].as_str().unwrap();
    assert!(casebook(&["list"]).contains(id));
    assert!(casebook(&["show", &id[..8]]).contains("Used"));
    assert_eq!(casebook(&["export", id]), file("report.json"));
    assert_eq!(casebook(&["export", id, "--format", "md"]), file("report.md"));
    casebook(&["export", id, "--format", "html", "--output", "page.html"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("page.html")).unwrap(), file("report.html"));
    assert!(crate::html::tags(&file("report.html")).is_ok());
    assert!(casebook(&["resume", id]).contains("Report"), "one that is finished gives its report");
    assert!(casebook(&["verify", id, "--evidence", "logs"]).contains("no difference was found"));
}

#[test]
fn resumed_in_the_middle_of_a_round_it_counts_the_whole_round() {
    let folder = tempfile::tempdir().unwrap();
    evidence(&folder.path().join("logs"));
    let failure = stopped(folder.path(), 12).0.unwrap_err();
    assert_eq!(failure.exit, Exit::Unfinished);
    let data = folder.path().join("data");
    let home = Home::open(&data).unwrap();
    let id = run(async { home.store.investigations().await }).unwrap().remove(0);
    drop(home);
    let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
    command.args(["resume", id.as_str(), "--data"]).arg(&data).current_dir(folder.path());
    let output = command.env_remove("CASEBOOK_LOG").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Round ")).collect();
    assert!(lines[0].starts_with("Round 1   discovery: "), "{text}");
    assert!(!text.contains("Round 0"), "{text}");
}

#[test]
fn demo_prints_at_most_sixty_lines_and_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |verbose: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        command.arg("demo").args(verbose).args(["--budget-rounds", "2"]).current_dir(folder.path());
        let output = command.env_remove("CASEBOOK_DATA").env_remove("CASEBOOK_LOG").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let calm = demo(&[]);
    assert!(calm.lines().count() <= 60, "{calm}");
    assert!(calm.contains("Round 1   discovery: ") && calm.ends_with("Report report/report.html\n"), "{calm}");
    assert!(folder.path().join("report/report.html").exists());
    let steps = demo(&["-v"]);
    assert!(steps.contains("Round 1, discovery") && steps.contains("more calls"), "{steps}");
    assert!(steps.lines().count() > 60);
    let calls = demo(&["-vv"]);
    assert!(!calls.contains("more calls") && calls.lines().count() > steps.lines().count());
}
