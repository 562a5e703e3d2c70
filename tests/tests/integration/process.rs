//! The real process, killed with `kill -9` after each line that it printed, and resumed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use casebook_protocol::Report;
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

    fn investigate(&self, data: &str, out: &str) -> Command {
        let mut command = Command::new(run::program("casebook"));
        command.arg("investigate").arg(self.at("alert.json"));
        command
            .arg("--evidence")
            .arg(self.at("evidence"))
            .arg("--data")
            .arg(self.at(data))
            .arg("--out")
            .arg(self.at(out))
            .arg("-v");
        command.stdin(Stdio::null());
        command
    }

    fn stable(&self, out: &str) -> String {
        let text = std::fs::read_to_string(self.at(out).join("report.json")).unwrap();
        let report: Report = serde_json::from_str(&text).unwrap();
        serde_json::to_string_pretty(&casebook_report::compare::stable(&report)).unwrap()
    }
}

fn ended_well(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", output.status);
}

/// Kills the process after it printed `lines` lines; says whether it was still running.
fn kill_after(mut command: Command, lines: usize) -> bool {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        if reader.read_line(&mut line).unwrap() == 0 {
            break;
        }
    }
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

fn id_in(data: &Path) -> Option<String> {
    let list = Command::new(run::program("casebook")).arg("list").arg("--data").arg(data).output().unwrap();
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    text.split_whitespace().find(|w| w.len() == 36 && w.matches('-').count() == 4).map(str::to_owned)
}

#[test]
fn killed_after_any_line_it_resumes_to_the_same_report_and_verifies() {
    let case = Case::new();
    ended_well(&case.investigate("whole", "expected").output().unwrap());
    let expected = case.stable("expected");
    let printed = case.investigate("count", "counted").output().unwrap().stdout;
    let lines = printed.iter().filter(|b| **b == b'\n').count();
    let step = (lines / super::kills(14)).max(1);
    let mut killed = 0;
    for at in (1..lines).step_by(step) {
        let (data, out) = (format!("data-{at}"), format!("out-{at}"));
        killed += usize::from(kill_after(case.investigate(&data, &out), at));
        // Killed before it was opened there is nothing to resume: then it is asked for again.
        let ended = match id_in(&case.at(&data)) {
            Some(id) => {
                let mut resume = Command::new(run::program("casebook"));
                resume.arg("resume").arg(&id).arg("--data").arg(case.at(&data)).arg("--out").arg(case.at(&out));
                resume.output().unwrap()
            }
            None => case.investigate(&data, &out).output().unwrap(),
        };
        ended_well(&ended);
        assert_eq!(case.stable(&out), expected, "killed after line {at} of {lines}");
        let id = id_in(&case.at(&data)).unwrap();
        let mut verify = Command::new(run::program("casebook"));
        verify.arg("verify").arg(&id).arg("--data").arg(case.at(&data)).arg("--evidence").arg(case.at("evidence"));
        ended_well(&verify.output().unwrap());
    }
    assert!(killed >= 5, "only {killed} kills hit a running process");
}

#[test]
fn two_processes_on_one_data_folder_are_refused_with_advice() {
    let case = Case::new();
    let mut first = case.investigate("data", "out").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let second =
        Command::new(run::program("casebook")).arg("list").arg("--data").arg(case.at("data")).output().unwrap();
    let running = first.try_wait().unwrap().is_none();
    first.kill().unwrap();
    first.wait().unwrap();
    if running {
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(!second.status.success());
        assert!(said.contains("data") && said.lines().count() >= 2, "says what and what to do: {said}");
    }
}

/// Runs `casebook` in `folder`; what it printed, which must have ended well.
pub(crate) fn casebook(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(run::program("casebook")).args(arguments).current_dir(folder).output().unwrap();
    ended_well(&output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
