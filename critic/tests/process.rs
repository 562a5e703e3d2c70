//! The program as whoever runs it sees it: its settings, its health, and how it ends.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::PathBuf;

use casebook_agent::service::child::{Plan, Process, get, last_lines};

#[path = "../../agent/tests/support/process.rs"]
mod process;

use process::{PATIENCE, refused, run, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_casebook-critic");

#[test]
fn the_effective_settings_are_printed_with_where_they_came_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("critic.toml"), "drain = 5\nmodels = \"models.toml\"\nat_once = 2\n").unwrap();
    let printed = run(
        PROGRAM,
        folder.path(),
        &["--config", "critic.toml", "--print-config", "--at-once", "3"],
        &[("CASEBOOK_NATS", "nats://elsewhere:4222")],
    );
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
    for line in [
        "# casebook-critic 0.1.0 (messages ",
        "nats = \"nats://elsewhere:4222\"  # environment CASEBOOK_NATS\n",
        "drain = 5  # critic.toml:1\n",
        "models = \"models.toml\"  # critic.toml:2\n",
        "at_once = 3  # --at-once\n",
        "# credentials is not set: ",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("critic.toml"), "drain = 5\nmodel = \"x\"\n").unwrap();
    let text = refused(&run(PROGRAM, folder.path(), &["--config", "critic.toml"], &[]));
    assert!(
        text.starts_with("casebook-critic: critic.toml:2: there is no setting \"model\": there are nats, "),
        "{text}"
    );
    let text = refused(&run(PROGRAM, folder.path(), &["--drain", "soon"], &[]));
    assert_eq!(text, "casebook-critic: --drain: \"soon\" is no whole number from 0 to 3600\n");
    let text = refused(&run(PROGRAM, folder.path(), &["--models", "nowhere.toml"], &[]));
    assert!(text.starts_with("casebook-critic: cannot read the models file nowhere.toml: "), "{text}");
    let text = refused(&run(PROGRAM, folder.path(), &["--nats", "nats://critic:secret@127.0.0.1:4222"], &[]));
    assert!(!text.contains("secret") && text.contains("credentials"), "{text}");
    let text = refused(&run(PROGRAM, folder.path(), &["--credentials", "nowhere"], &[]));
    assert!(text.starts_with("casebook-critic: cannot use nowhere: "), "{text}");
}

/// The program with a server that is not there.
fn alone(log: PathBuf) -> Process {
    let arguments = ["--nats", "nats://127.0.0.1:9"].map(Into::into).to_vec();
    Process::start(&Plan { program: PROGRAM.into(), arguments, environment: Vec::new(), without: Vec::new(), log })
        .unwrap()
}

#[test]
fn without_a_server_it_lives_is_not_ready_and_ends_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("critic.log");
    let mut process = alone(log.clone());
    let answer = until("a reason", &log, || {
        process.ready().filter(|answer| answer.reasons.iter().any(|r| r.contains("cannot connect")))
    });
    assert_eq!((answer.role.as_str(), answer.ready, answer.connected), ("critic", false, false));
    assert_eq!(answer.queues, ["critic"]);
    assert!(answer.reasons[0].starts_with("critic: cannot connect to NATS at nats://127.0.0.1:9: "), "{answer:?}");
    let health = process.health().unwrap();
    assert_eq!(get(health, "/ready").unwrap().0, 503);
    assert_eq!(get(health, "/live").unwrap().0, 200);
    process.terminate();
    assert!(process.wait(PATIENCE).unwrap().success(), "{}", last_lines(&log, 5));
}
