//! The program as whoever runs it sees it, against a real NATS server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use casebook_runtime::broker::{Broker, Options, Places};
use casebook_runtime::service::child::{Plan, Process, last_lines};

#[path = "../../crates/runtime/tests/support/process.rs"]
mod process;

use process::{PATIENCE, refused, run, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_casebook-hub");

#[test]
fn its_settings_are_printed_and_what_is_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hub.toml"), "budget_cost = 2.5\nreplicas = 3\n").unwrap();
    let printed =
        run(PROGRAM, folder.path(), &["--config", "hub.toml", "--print-config"], &[("CASEBOOK_AT_ONCE", "8")]);
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success(), "{printed:?}");
    for line in [
        "budget_cost = \"2.500000\"  # hub.toml:1\n",
        "replicas = 3  # hub.toml:2\n",
        "at_once = 8  # environment CASEBOOK_AT_ONCE\n",
        "# budget_rounds is not set: ",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    std::fs::write(folder.path().join("hub.toml"), "\nreplicas = 7\n").unwrap();
    let text = refused(&run(PROGRAM, folder.path(), &["--config", "hub.toml"], &[]));
    assert_eq!(text, "casebook-hub: hub.toml:2: replicas: \"7\" is no whole number from 1 to 5\n");
    let text = refused(&run(PROGRAM, folder.path(), &["--models", "x"], &[]));
    assert!(text.contains("unexpected argument '--models'"), "a Hub asks no model: {text}");
}

#[test]
fn it_is_ready_while_its_server_is_there_comes_back_with_it_and_drains() {
    let folder = tempfile::tempdir().unwrap();
    let program = Places::of_environment().find().unwrap().program;
    let options = Options { program, folder: folder.path().join("nats"), config: None, port: 0 };
    let mut broker = Broker::start(options).unwrap();
    let log = folder.path().join("hub.log");
    let arguments = ["--nats", &broker.url()].map(Into::into).to_vec();
    let plan =
        Plan { program: PROGRAM.into(), arguments, environment: Vec::new(), without: Vec::new(), log: log.clone() };
    let mut hub = Process::start(&plan).unwrap();
    until("ready", &log, || hub.ready().filter(|answer| answer.ready));
    broker.kill();
    let gone = until("not ready", &log, || hub.ready().filter(|answer| !answer.ready));
    assert_eq!(gone.reasons, ["hub: no connection to the NATS server"]);
    broker.restart().unwrap();
    until("ready again", &log, || hub.ready().filter(|answer| answer.ready));
    hub.terminate();
    assert!(hub.wait(PATIENCE).unwrap().success(), "{}", last_lines(&log, 5));
}
