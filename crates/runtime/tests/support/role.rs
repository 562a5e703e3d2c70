//! A program of one role as whoever runs it sees it: its settings, its health, and how it ends.

use std::path::PathBuf;

use casebook_runtime::service::child::{Plan, Process, get, last_lines};

use crate::process::{PATIENCE, refused, run, until};

/// The effective settings are printed with where they came from.
pub(crate) fn settings_are_printed(program: &str, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("role.toml"), "drain = 5\nmodels = \"models.toml\"\nat_once = 2\n").unwrap();
    let printed = run(
        program,
        folder.path(),
        &["--config", "role.toml", "--print-config", "--at-once", "3"],
        &[("CASEBOOK_NATS", "nats://elsewhere:4222")],
    );
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
    for line in [
        format!("# casebook-{name} 0.1.0 (messages ").as_str(),
        "nats = \"nats://elsewhere:4222\"  # environment CASEBOOK_NATS\n",
        "drain = 5  # role.toml:1\n",
        "models = \"models.toml\"  # role.toml:2\n",
        "at_once = 3  # --at-once\n",
        "# credentials is not set: ",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

/// What is wrong is told with its place before anything is done.
pub(crate) fn what_is_wrong_is_told(program: &str, name: &str) {
    let program_name = format!("casebook-{name}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("role.toml"), "drain = 5\nmodel = \"x\"\n").unwrap();
    let text = refused(&run(program, folder.path(), &["--config", "role.toml"], &[]));
    assert!(
        text.starts_with(&format!("{program_name}: role.toml:2: there is no setting \"model\": there are nats, ")),
        "{text}"
    );
    let text = refused(&run(program, folder.path(), &["--drain", "soon"], &[]));
    assert_eq!(text, format!("{program_name}: --drain: \"soon\" is no whole number from 0 to 3600\n"));
    let text = refused(&run(program, folder.path(), &["--models", "nowhere.toml"], &[]));
    assert!(text.starts_with(&format!("{program_name}: cannot read the models file nowhere.toml: ")), "{text}");
    let text = refused(&run(program, folder.path(), &["--nats", "nats://somebody:secret@127.0.0.1:4222"], &[]));
    assert!(!text.contains("secret") && text.contains("credentials"), "{text}");
    let text = refused(&run(program, folder.path(), &["--credentials", "nowhere"], &[]));
    assert!(text.starts_with(&format!("{program_name}: cannot use nowhere: ")), "{text}");
}

/// The program with a server that is not there.
fn alone(program: &str, log: PathBuf) -> Process {
    let arguments = ["--nats", "nats://127.0.0.1:9"].map(Into::into).to_vec();
    Process::start(&Plan { program: program.into(), arguments, environment: Vec::new(), without: Vec::new(), log })
        .unwrap()
}

/// Without a server it lives, is not ready, and ends when asked.
pub(crate) fn without_a_server(program: &str, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("role.log");
    let mut process = alone(program, log.clone());
    let answer = until("a reason", &log, || {
        process.ready().filter(|answer| answer.reasons.iter().any(|r| r.contains("cannot connect")))
    });
    assert_eq!((answer.role.as_str(), answer.ready, answer.connected), (name, false, false));
    assert_eq!(answer.queues, [name]);
    assert!(
        answer.reasons[0].starts_with(&format!("{name}: cannot connect to NATS at nats://127.0.0.1:9: ")),
        "{answer:?}"
    );
    let health = process.health().unwrap();
    assert_eq!(get(health, "/ready").unwrap().0, 503);
    assert_eq!(get(health, "/live").unwrap().0, 200);
    process.terminate();
    assert!(process.wait(PATIENCE).unwrap().success(), "{}", last_lines(&log, 5));
}
