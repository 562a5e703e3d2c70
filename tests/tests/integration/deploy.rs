//! The files in `deploy/`: that they are what the code needs, and that a real server takes them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use casebook_evidence::DOMAINS;
use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role, subject};
use casebook_runtime::nats::{self, permit};
use casebook_runtime::process;
use casebook_runtime::service::environment;
use casebook_tests::nats::{Broker, program};
use casebook_tests::wait::{self, PATIENCE};
use casebook_tests::{hosts, run};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy").join(file)
}

const HEAD: &str = "\
# The users of a NATS server for Casebook, each with the permissions that its role needs. Generated from
# crates/runtime/src/nats/permit.rs; a test compares them. Remove the Experts that you do not have. The passwords
# are in passwords.conf, which make-passwords writes.

include \"./passwords.conf\"

";

/// The users as the code has them, with variables in place of passwords.
fn users() -> String {
    let domains: Vec<Domain> = DOMAINS.iter().map(|name| Domain::new(*name).unwrap()).collect();
    let users = casebook_cli::cluster::users::users(&domains);
    let variable = |user: &permit::User| format!("${}_PASSWORD", user.name().to_uppercase().replace('-', "_"));
    let users: Vec<_> = users.into_iter().map(|user| (user.clone(), variable(&user))).collect();
    format!("{HEAD}{}", permit::accounts(&users))
}

#[test]
fn the_users_on_file_are_those_of_the_code() {
    let path = deploy("nats/users.conf");
    if std::env::var_os("CASEBOOK_WRITE").is_some() {
        std::fs::write(&path, users()).unwrap();
    }
    let on_file = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(on_file == users(), "{} is not what the code says: write it with CASEBOOK_WRITE=1", path.display());
}

/// The files of a server in a folder of its own, with passwords.
fn prepared(folder: &Path) -> PathBuf {
    let place = folder.join("nats");
    std::fs::create_dir_all(&place).unwrap();
    for file in ["server.conf", "users.conf", "tls.conf", "cluster.conf"] {
        std::fs::copy(deploy("nats").join(file), place.join(file)).unwrap();
    }
    let made = Command::new("sh").arg(deploy("nats/make-passwords")).arg(&place).status().unwrap();
    assert!(made.success());
    // The store is where the test says.
    replace(&place.join("server.conf"), "store_dir: \"/var/lib/casebook-nats\"", "");
    place
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from:?} is not in {}", file.display());
    std::fs::write(file, text.replace(from, to)).unwrap();
}

fn start(folder: &Path, place: &Path) -> Broker {
    Broker::start(&folder.join("run"), Some(place.join("server.conf"))).unwrap()
}

#[test]
fn a_server_takes_the_files_and_lets_in_whom_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let place = prepared(folder.path());
    let before = std::fs::read_to_string(place.join("passwords.conf")).unwrap();
    assert!(Command::new("sh").arg(deploy("nats/make-passwords")).arg(&place).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(place.join("passwords.conf")).unwrap(), before, "who has a password keeps it");
    let broker = start(folder.path(), &place);
    process::run(async {
        let as_user = |user: &str, file: &str| nats::Options {
            url: broker.url(),
            credentials: Some(place.join("credentials").join(file)),
            user: user.to_owned(),
            ..nats::Options::default()
        };
        let hub = nats::connect(&as_user("hub", "hub")).await.unwrap();
        hub.prepare(nats::streams::Keeping::default()).await.unwrap();
        let network = Domain::new("network").unwrap();
        for queue in [Queue::new(Role::Critic, None), Queue::new(Role::Expert, Some(&network))] {
            hub.prepare_queue(&queue, nats::streams::Keeping::default()).await.unwrap();
            let worker = nats::connect(&as_user(&queue.name(), &queue.name())).await.unwrap();
            let tasks = subject::tasks(queue.role, queue.domain.as_ref());
            assert!(worker.env().bus.try_pull(&tasks).await.unwrap().is_none(), "it may look for jobs");
            let error = worker.store(subject::ALERTS, b"{}".to_vec()).await.unwrap_err().to_string();
            assert!(error.contains("Permissions Violation"), "{error}");
        }
        let publisher = nats::connect(&as_user("publisher", "publisher")).await.unwrap();
        publisher.store(subject::ALERTS, b"{}".to_vec()).await.unwrap();
        std::fs::write(place.join("credentials/wrong"), "hub:wrong").unwrap();
        let error = nats::connect(&as_user("hub", "wrong")).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("authorization violation"), "{error}");
        let anonymous = nats::Options { credentials: None, ..as_user("hub", "hub") };
        assert!(nats::connect(&anonymous).await.is_err(), "a password is required");
        let encrypted = nats::Options { url: broker.url().replace("nats://", "tls://"), ..as_user("hub", "hub") };
        let error = nats::connect(&encrypted).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("the server does not use TLS"), "{error}");
    })
    .unwrap();
}

#[test]
fn with_the_certificates_that_the_script_makes_tls_is_spoken_and_nothing_else() {
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        eprintln!("openssl is missing: certificates are not tested");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = prepared(folder.path());
    let tls = place.join("tls");
    for authority in [&tls, &folder.path().join("other")] {
        let mut script = Command::new("sh");
        script.arg(deploy("nats/make-certificates")).arg(authority).args(["localhost", "127.0.0.1"]);
        let made = script.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    replace(&place.join("tls.conf"), "/etc/casebook/nats/tls", &tls.display().to_string());
    replace(&place.join("server.conf"), "# include \"./tls.conf\"", "include \"./tls.conf\"");
    let mut broker = start(folder.path(), &place);
    let with = |port: u16, ca: Option<PathBuf>, cert: bool| nats::Options {
        url: format!("tls://127.0.0.1:{port}"),
        credentials: Some(place.join("credentials/hub")),
        ca,
        cert: cert.then(|| tls.join("server.pem")),
        key: cert.then(|| tls.join("server-key.pem")),
        user: "hub".into(),
        mac_key: Some(place.join("mac.key")),
    };
    process::run(async {
        let hub = nats::connect(&with(broker.port(), Some(tls.join("ca.pem")), false)).await.unwrap();
        hub.prepare(nats::streams::Keeping::default()).await.unwrap();
        for ca in [None, Some(folder.path().join("other/ca.pem"))] {
            let error = nats::connect(&with(broker.port(), ca, false)).await.map(drop).unwrap_err().to_string();
            assert!(error.contains("certificate"), "a server of another authority is not trusted: {error}");
        }
        // Where the server asks for certificates, too.
        replace(&place.join("tls.conf"), "verify: false", "verify: true");
        broker.restart().unwrap();
        nats::connect(&with(broker.port(), Some(tls.join("ca.pem")), true)).await.unwrap();
        assert!(nats::connect(&with(broker.port(), Some(tls.join("ca.pem")), false)).await.is_err());
        // All certificates are replaced by those of another authority. The process reads its files as it connects again.
        let (trusted, other) = (folder.path().join("trusted.pem"), folder.path().join("other"));
        std::fs::copy(tls.join("ca.pem"), &trusted).unwrap();
        let hub = nats::connect(&with(broker.port(), Some(trusted.clone()), true)).await.unwrap();
        for (file, place) in [("server.pem", tls.join("server.pem")), ("server-key.pem", tls.join("server-key.pem"))] {
            std::fs::copy(other.join(file), place).unwrap();
        }
        std::fs::copy(other.join("ca.pem"), tls.join("ca.pem")).unwrap();
        broker.restart().unwrap();
        let old = hub.prepare(nats::streams::Keeping::default()).await;
        assert!(old.is_err(), "the old authority is still trusted");
        std::fs::copy(other.join("ca.pem"), &trusted).unwrap();
        let prepared = async || hub.prepare(nats::streams::Keeping::default()).await.ok();
        wait::soon(PATIENCE, prepared).await.expect("the new certificates are read");
    })
    .unwrap();
    // And the files for three servers hold, with the same certificates.
    let cluster = place.join("cluster.conf");
    replace(&cluster, "/etc/casebook/nats/tls", &tls.display().to_string());
    let checked = Command::new(program().unwrap()).args(["-t", "-c"]).arg(&cluster).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn the_settings_on_file_are_understood() {
    let folder = run::program("casebook").parent().unwrap().to_path_buf();
    for file in ["hub", "director", "critic", "expert", "expert-endpoint", "api"] {
        let role = file.split('-').next().unwrap_or(file);
        let mut command = Command::new(folder.join(format!("casebook-{role}")));
        command.arg("--config").arg(deploy(&format!("config/{file}.toml"))).arg("--print-config").env_clear();
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            printed.contains("log = \"json\"  # ") && printed.contains("tls://nats-1.example.org:4222"),
            "{printed}"
        );
    }
    for profile in ["expert-profile", "expert-endpoint-profile"] {
        let profile = deploy(&format!("config/{profile}.toml"));
        let text = std::fs::read_to_string(&profile).unwrap();
        casebook_expert::profile::Profile::parse(&profile, &text).unwrap();
    }
}

#[test]
fn files_fit_together_and_start_a_team() {
    if hosts::skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut sandbox = Command::new("unshare");
    sandbox.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
    sandbox.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/fit.sh"));
    sandbox.arg(deploy("")).arg(folder.path()).arg(program().unwrap()).arg(run::program("casebook").parent().unwrap());
    sandbox.arg(run::demo().join("evidence")).arg(run::demo().join("alert.json"));
    let output = sandbox.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
fn variables_that_help_names_are_known_and_misspelled_ones_are_told() {
    let folder = run::program("casebook").parent().unwrap().to_path_buf();
    let mut named = 0;
    for program in
        ["casebook", "casebook-hub", "casebook-director", "casebook-critic", "casebook-expert", "casebook-api"]
    {
        let help = Command::new(folder.join(program)).arg("--help").env_clear().output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for after in help.split("CASEBOOK_").skip(1) {
            let name: String = after.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
            assert!(environment::NAMES.contains(&name.as_str()), "{program} reads {name}, which NAMES does not have");
            named += 1;
        }
    }
    assert!(named > 40, "help names {named}");
    let place = tempfile::tempdir().unwrap();
    let mut list = Command::new(folder.join("casebook"));
    list.arg("list").arg("--data").arg(place.path()).env_clear().env("CASEBOOK_NATZ", "nats://127.0.0.1:1");
    let told = String::from_utf8(list.output().unwrap().stderr).unwrap();
    assert!(told.contains("CASEBOOK_NATZ; did you mean CASEBOOK_NATS?"), "{told}");
}

#[test]
fn units_are_valid_and_sandboxed() {
    if !run::has("systemd-analyze", "systemd") {
        return;
    }
    let units = std::fs::read_dir(deploy("systemd")).unwrap().flatten().map(|entry| entry.path());
    let units: Vec<PathBuf> = units.filter(|path| path.extension().is_some_and(|e| e == "service")).collect();
    assert_eq!(units.len(), 6);
    for unit in units {
        // The unit exposes at most 2.5 of 10, as `systemd-analyze security` counts.
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--threshold=25", "--no-pager"])
            .arg(&unit)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{}: {said}", unit.display());
    }
}
