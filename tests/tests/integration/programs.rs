//! The programs of the Hub and of the three roles as their operator sees them: settings, errors, health, and
//! how they end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use casebook_cli::cluster::process::{self, Process};
use casebook_runtime::service::health::Answer;
use casebook_tests::nats::Nats;
use casebook_tests::{run, wait};
use rustix::process::Signal;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// A server that is not there.
const NOWHERE: &str = "nats://127.0.0.1:9";

/// Runs `program` in `folder` to its end, with this environment alone.
fn output(program: &str, folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(run::program(program));
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter().copied());
    command.output().unwrap()
}

/// What is found in time; a failure shows the end of the log.
fn until<T>(what: &str, process: &Process, found: impl FnMut() -> Option<T>) -> T {
    wait::found(PATIENCE, found).unwrap_or_else(|| panic!("{what}: not in time; {:?}", process.last_lines()))
}

/// What a process answers about itself once it fits.
fn answer(what: &str, process: &Process, fits: impl Fn(&Answer) -> bool) -> Answer {
    until(what, process, || process.ready().filter(|answer| fits(answer)))
}

fn start(program: &str, name: &str, folder: &Path, arguments: &[&str]) -> Process {
    let mut command = process::serving(&run::program(program));
    Process::start(name, command.args(arguments), &folder.join(format!("{name}.log"))).unwrap()
}

fn drains(mut process: Process) {
    process.signal(Signal::TERM);
    let status = wait::found(PATIENCE, || process.ended());
    assert!(status.is_some_and(|status| status.success()), "{status:?}: {:?}", process.last_lines());
}

#[test]
fn the_effective_settings_are_printed_with_their_origin() {
    let role = "drain = 5\nmodels = \"models.toml\"\nat_once = 2\n";
    let asked = ["--config", "settings.toml", "--print-config", "--at-once", "3"];
    let nats = ("CASEBOOK_NATS", "nats://elsewhere:4222");
    let printed = [
        "nats = \"nats://elsewhere:4222\"  # environment CASEBOOK_NATS\n",
        "drain = 5  # settings.toml:1\n",
        "models = \"models.toml\"  # settings.toml:2\n",
        "at_once = 3  # --at-once\n",
        "# credentials is not set: ",
    ];
    let hub = [
        "budget_cost = \"2.5\"  # settings.toml:1\n",
        "replicas = 3  # settings.toml:2\n",
        "at_once = 8  # environment CASEBOOK_AT_ONCE\n",
        "# budget_rounds is not set: ",
    ];
    let profiles = ["--profile", "a.toml", "--profile", "b.toml", "--print-config"];
    for (program, file, arguments, environment, expected) in [
        ("casebook-director", role, &asked[..], nats, &printed[..]),
        ("casebook-critic", role, &asked, nats, &printed),
        ("casebook-expert", role, &asked, nats, &printed),
        ("casebook-expert", "", &profiles, nats, &["profile = [\"a.toml\", \"b.toml\"]  # --profile\n"]),
        ("casebook-hub", "budget_cost = 2.5\nreplicas = 3\n", &asked[..3], ("CASEBOOK_AT_ONCE", "8"), &hub),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings.toml"), file).unwrap();
        let printed = output(program, folder.path(), arguments, &[environment]);
        assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
        let text = String::from_utf8_lossy(&printed.stdout);
        assert!(text.starts_with(&format!("# {program} 0.1.0 (messages ")), "{text}");
        for line in expected {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}

#[test]
fn a_wrong_setting_ends_each_program_with_its_place() {
    let roles = ["casebook-director", "casebook-critic", "casebook-expert"];
    let all = [&roles[..], &["casebook-hub"]].concat();
    let config = ["--config", "settings.toml"];
    let profile = ["--profile", "profile.toml"];
    for (programs, file, arguments, expected) in [
        (&all[..], "drain = 5\nmodel = \"x\"\n", &config[..], "settings.toml:2: model: unknown key; write "),
        (&all, "", &["--drain", "soon"], "--drain: expected a whole number from 0 to 3600, got \"soon\"\n"),
        (&roles[..2], "", &["--models", "nowhere.toml"], "cannot read the models file nowhere.toml: "),
        (&all, "", &["--nats", "nats://somebody:secret@127.0.0.1:4222"], "credentials"),
        (&roles[..2], "", &["--credentials", "nowhere"], "cannot use nowhere: "),
        (
            &all[3..],
            "\nreplicas = 7\n",
            &config,
            "settings.toml:2: replicas: expected a whole number from 1 to 5, got \"7\"\n",
        ),
        (&all[3..], "", &["--models", "x"], "unexpected argument '--models'"),
        (&roles[2..], "", &[], "expected a profile, got none; give --profile FILE\n"),
        (&roles[2..], "", &["--profile", "nowhere.toml"], "cannot read the profile nowhere.toml: "),
        (&roles[2..], "", &[profile, profile].concat(), "is in two profiles"),
        (&roles[2..], "domain = [\"network\"]", &profile, "profile.toml:3: domain: unknown key; write domains"),
        (
            &roles[2..],
            "domains = [\"kitchen\"]",
            &profile,
            "profile.toml: the evidence has no sources of domain kitchen; it has ",
        ),
    ] {
        for program in programs {
            let folder = place(if arguments.starts_with(&profile) { file } else { "" });
            std::fs::write(folder.path().join("settings.toml"), file).unwrap();
            let output = output(program, folder.path(), arguments, &[]);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{program} {arguments:?}: {output:?}");
            assert!(text.contains(expected) && !text.contains("secret"), "{program} {arguments:?}: {text}");
        }
    }
}

#[test]
fn a_role_without_a_server_lives_is_not_ready_and_ends_when_asked() {
    for name in ["director", "critic"] {
        let folder = tempfile::tempdir().unwrap();
        let process = start(&format!("casebook-{name}"), name, folder.path(), &["--nats", NOWHERE]);
        let cannot = |answer: &Answer| answer.reasons.iter().any(|reason| reason.contains("cannot connect"));
        let answer = answer("a reason", &process, cannot);
        assert_eq!((answer.role.as_str(), answer.ready, answer.connected), (name, false, false));
        assert_eq!(answer.queues, [name]);
        let reason = format!("{name}: cannot connect to NATS at {NOWHERE}: ");
        assert!(answer.reasons[0].starts_with(&reason), "{answer:?}");
        drains(process);
    }
}

#[test]
fn a_child_ends_with_its_parent() {
    let mut command = Command::new(run::program("casebook-director"));
    command.args(["--nats", NOWHERE, "--until-eof"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "it runs while its standard input is open");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_hub_is_ready_while_its_server_is_there() {
    let mut nats = Nats::start().unwrap();
    let hub = start("casebook-hub", "hub", nats.folder(), &["--nats", &nats.broker.url()]);
    answer("ready", &hub, |answer| answer.ready);
    nats.broker.kill();
    let gone = answer("not ready", &hub, |answer| !answer.ready);
    assert_eq!(gone.reasons, ["hub: no connection to the NATS server"]);
    nats.broker.restart().unwrap();
    answer("ready again", &hub, |answer| answer.ready);
    drains(hub);
}

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
fn two_experts_of_the_same_evidence_build_its_index_once_and_wait_for_a_hub() {
    let (nats, folder) = (Nats::start().unwrap(), place(""));
    let profile: PathBuf = folder.path().join("profile.toml");
    let arguments = ["--nats", &nats.broker.url(), "--profile", profile.to_str().unwrap()];
    let both = ["one", "two"].map(|name| start("casebook-expert", name, folder.path(), &arguments));
    for expert in &both {
        let waits = |reason: &&String| reason.contains("no Hub answers");
        let answer = answer("a reason", expert, |answer| answer.reasons.iter().filter(waits).count() == 2);
        assert_eq!((answer.connected, answer.joined, answer.ready), (true, false, false));
        assert_eq!(answer.queues, ["expert-identity", "expert-network"]);
    }
    let built = std::fs::read_dir(folder.path().join("index")).unwrap().flatten();
    assert_eq!(built.filter(|entry| entry.path().extension().is_some_and(|e| e == "sqlite")).count(), 1);
    both.into_iter().for_each(drains);
}
