//! The program as whoever runs it sees it, against a real NATS server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use casebook_runtime::broker::{Broker, Options, Places};
use casebook_runtime::service::child::{Plan, Process, last_lines};

#[path = "../../crates/runtime/tests/support/process.rs"]
mod process;

use process::{PATIENCE, refused, run, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_casebook-expert");

const AUTH: &str = "Mar  1 02:03:04 web1 sshd[811]: Accepted password for eve from 192.0.2.7 port 4022 ssh2\n";
const NETWORK: &str = "{\"ts\":\"2026-03-01T02:03:05Z\",\"src_ip\":\"192.0.2.7\",\"dest_ip\":\"10.0.0.4\",\"dest_port\":22,\"proto\":\"tcp\",\"event_type\":\"flow\"}\n";

/// A folder with evidence of two domains and a profile that reads it, with `more` in it.
fn place(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("logs")).unwrap();
    std::fs::write(folder.path().join("logs/auth.log"), AUTH.repeat(20)).unwrap();
    std::fs::write(folder.path().join("logs/flow.ndjson"), NETWORK.repeat(20)).unwrap();
    let profile = format!("evidence = \"logs\"\nindex = \"index\"\n{more}\n");
    std::fs::write(folder.path().join("profile.toml"), profile).unwrap();
    folder
}

#[test]
fn its_settings_are_printed_and_what_is_wrong_is_told() {
    let folder = place("");
    let printed = run(PROGRAM, folder.path(), &["--profile", "a.toml", "--profile", "b.toml", "--print-config"], &[]);
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(text.contains("profile = [\"a.toml\", \"b.toml\"]  # --profile\n"), "{text}");
    let text = refused(&run(PROGRAM, folder.path(), &[], &[]));
    assert_eq!(text, "casebook-expert: there is nothing to read: name a profile with --profile FILE\n");
    let text = refused(&run(PROGRAM, folder.path(), &["--profile", "nowhere.toml"], &[]));
    assert!(text.starts_with("casebook-expert: cannot read the profile nowhere.toml: "), "{text}");
    let text = refused(&run(PROGRAM, folder.path(), &["--profile", "profile.toml", "--profile", "profile.toml"], &[]));
    assert!(text.contains("is in another profile, too"), "{text}");
    for (more, expect) in [
        ("domain = [\"network\"]", "casebook-expert: profile.toml:3: unknown field `domain`"),
        ("domains = [\"kitchen\"]", "profile.toml: the evidence has no sources of domain kitchen; it has "),
    ] {
        let folder = place(more);
        let text = refused(&run(PROGRAM, folder.path(), &["--profile", "profile.toml"], &[]));
        assert!(text.contains(expect), "{text}");
    }
}

#[test]
fn two_over_the_same_evidence_build_its_index_once_and_wait_for_a_hub() {
    let folder = place("");
    let program = Places::of_environment().find().unwrap().program;
    let options = Options { program, folder: folder.path().join("nats"), config: None, port: 0 };
    let broker = Broker::start(options).unwrap();
    let profile = folder.path().join("profile.toml").into_os_string();
    let mut both = ["one.log", "two.log"].map(|name| {
        let arguments = vec!["--nats".into(), broker.url().into(), "--profile".into(), profile.clone()];
        let log = folder.path().join(name);
        let plan =
            Plan { program: PROGRAM.into(), arguments, environment: Vec::new(), without: Vec::new(), log: log.clone() };
        (Process::start(&plan).unwrap(), log)
    });
    for (process, log) in &both {
        let answer = until("a reason", log, || {
            let waits = |why: &&String| why.contains("no Hub is there");
            process.ready().filter(|answer| answer.reasons.iter().filter(waits).count() == 2)
        });
        assert_eq!((answer.connected, answer.joined, answer.ready), (true, false, false));
        assert_eq!(answer.queues, ["expert-identity", "expert-network"]);
    }
    let built = std::fs::read_dir(folder.path().join("index")).unwrap().flatten();
    assert_eq!(built.filter(|entry| entry.path().extension().is_some_and(|e| e == "sqlite")).count(), 1);
    for (process, log) in &mut both {
        process.terminate();
        assert!(process.wait(PATIENCE).unwrap().success(), "{}", last_lines(log, 5));
    }
}
