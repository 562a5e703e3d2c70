//! What the program answers to what a person may get wrong.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("CASEBOOK_DATA")
            .env_remove("CASEBOOK_LOG")
            .env_remove("CASEBOOK_MODELS");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Exit code and standard error, which is one line of what and one of what to do.
    fn check(&self, arguments: &[&str], code: i32, expect: &[&str]) {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        for needed in expect {
            assert!(text.contains(needed), "{arguments:?}: {needed:?} is not in\n{text}");
        }
        assert!(text.lines().count() <= 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn an_alert_that_is_too_large_or_not_text_is_refused_before_anything_is_made() {
    let place = Place::new();
    place.file("logs/a.ndjson", "{\"time\":\"2026-03-01T00:00:00Z\",\"x\":1}\n");
    place.file("big.json", format!("{{\"x\":\"{}\"}}", "a".repeat(2 << 20)));
    place.file("binary.json", [0_u8, 159, 146, 150]);
    let check = |alert: &str, expect: &[&str]| place.check(&["investigate", alert, "--evidence", "logs"], 2, expect);
    check("big.json", &["larger than 1048576 bytes", "leave the evidence in files"]);
    check("binary.json", &["binary.json: alert is not JSON"]);
    assert!(!place.path().join(".casebook").exists(), "nothing is made for input that is refused");
}

#[test]
fn an_alert_from_standard_input_is_read_no_further_than_it_may_be_long() {
    let place = Place::new();
    place.file("logs/a.log", "x\n");
    let mut child = place
        .command(&["investigate", "-", "--evidence", "logs"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Endless input: the program goes away before it is written.
    let mut written = 0;
    while written < 64 << 20 {
        match stdin.write(&[b' '; 65536]) {
            Ok(n) => written += n,
            Err(_) => break,
        }
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(written < 8 << 20, "{written}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("standard input: the alert is larger"));
}

#[test]
fn a_server_of_pages_says_what_it_needs() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    std::fs::create_dir(place.path().join("d")).unwrap();
    place.check(&["serve", "--data", "d", "--port", &port], 2, &["cannot listen at 127.0.0.1", "--port 0"]);
}

#[test]
fn an_unknown_id_or_data_folder_is_named() {
    let place = Place::new();
    place.check(&["list"], 2, &["data folder .casebook does not exist", "--data DIR"]);
    assert!(!place.path().join(".casebook").exists());
    std::fs::create_dir(place.path().join(".casebook")).unwrap();
    for command in ["show", "export", "resume", "verify"] {
        place.check(
            &[command, "12ab"],
            2,
            &["no investigation has an id that begins with \"12ab\"", "no investigations are stored yet"],
        );
    }
    let list = place.run(&["list"]);
    assert!(
        list.status.success() && String::from_utf8(list.stdout).unwrap().contains("no investigations in .casebook")
    );
    place.file(".casebook/cluster/users/reader", "");
    let list = String::from_utf8(place.run(&["list"]).stdout).unwrap();
    assert!(
        list.contains("stores its investigations")
            && list.contains("casebook list --nats URL --credentials .casebook/cluster/users/reader"),
        "{list}"
    );
}

#[test]
fn help_says_what_an_exit_code_means_and_gives_examples() {
    let place = Place::new();
    let help = place.run(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert_eq!(help.status.code(), Some(0));
    for needed in ["Exit codes", "casebook investigate alert.json --evidence logs/", "CASEBOOK_DATA", "verify"] {
        assert!(text.contains(needed), "{needed} is not in\n{text}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    std::fs::create_dir(place.path().join(".casebook")).unwrap();
    let mut child =
        place.command(&["list"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

const LINES: &str = "{\"time\":\"2026-03-01T00:00:00Z\",\"x\":1}\n{\"time\":\"2026-03-01T00:00:01Z\",\"x\":2}\n";

#[test]
fn sources_are_drafted_outside_the_evidence_and_replace_nothing() {
    let place = Place::new();
    place.file("logs/a.ndjson", LINES);
    place.file(
        "logs/sources.toml",
        "[[source]]\nfiles = \"**\"\nsensor = \"s\"\non_alerted_host = false\nconfirmed = true\n",
    );
    let draft = |file: &str| ["sources", "--evidence", "logs", "--write", file].map(str::to_owned);
    let run = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let refused = |file: &str, code: i32, expect: &[&str]| {
        let arguments = draft(file);
        place.check(&arguments.each_ref().map(String::as_str), code, expect);
    };
    refused("logs/draft.toml", 2, &["is inside the evidence folder", "--write team/sources.toml"]);
    refused("none/draft.toml", 1, &["none/draft.toml"]);
    std::fs::create_dir(place.path().join("team")).unwrap();
    assert!(run(&draft("team/sources.toml").each_ref().map(String::as_str)).contains("drafts 2 sources"));
    refused("team/sources.toml", 2, &["team/sources.toml exists", "name a new file"]);
    let drafted = std::fs::read_to_string(place.path().join("team/sources.toml")).unwrap();
    assert!(drafted.starts_with("# What wrote each file of the evidence") && drafted.contains("confirmed = false"));

    let guess = run(&["sources", "--evidence", "logs"]);
    assert!(guess.contains("a guess: written by") && !guess.contains("not on the host"), "{guess}");
    let confirmed =
        drafted.replace("on_alerted_host = true\nconfirmed = false", "on_alerted_host = false\nconfirmed = true");
    place.file("team/sources.toml", confirmed);
    let shown = run(&["sources", "--evidence", "logs", "--team", "team"]);
    assert!(!shown.contains("a guess") && shown.contains(", not on the host that it describes"), "{shown}");
    // A team folder inside the evidence could be an attacker's.
    place.check(
        &["sources", "--evidence", "logs", "--team", "logs"],
        2,
        &["is inside the evidence folder", "keep team folders and rules elsewhere"],
    );
}
