//! The image, and the team of `deploy/compose`, in real containers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use casebook_runtime::process;
use casebook_tests::podman::{IMAGE, Podman, said};
use casebook_tests::{thirdparty, wait};
use serde_json::Value;

mod tools;

/// How long a team may take to be ready, and to end an investigation.
const PATIENCE: Duration = Duration::from_secs(180);
/// How a container is run: without rights, without a network, with nothing to write to.
const HARDENED: [&str; 8] =
    ["--rm", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--network", "none"];

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn hardened(podman: &Podman, entry: &str, options: &[&str], arguments: &[&str]) -> Output {
    let entry = ["run", "--entrypoint", entry];
    podman.run(&[&entry, &HARDENED[..], options, &[IMAGE], arguments].concat()).unwrap()
}

#[test]
fn image_holds_only_static_programs_that_run_without_rights() {
    let Some(podman) = Podman::new().unwrap() else { return };
    podman.build().unwrap();

    let found = hardened(&podman, "/bin/casebook", &[], &["--version"]);
    assert!(text(&found).starts_with("casebook 0."), "{}", text(&found));
    let printed = hardened(&podman, "/bin/casebook-hub", &["--env", "CASEBOOK_LEASE=20"], &["--print-config"]);
    assert!(text(&printed).contains("lease = 20  # environment CASEBOOK_LEASE"), "{}", text(&printed));

    let written = hardened(&podman, "/bin/casebook", &[], &["key", "/casebook.key"]);
    assert!(!written.status.success() && text(&written).contains("Read-only file system"), "{}", text(&written));
    let volume = ["--volume", "casebook-data:/var/lib/casebook"];
    let written = hardened(&podman, "/bin/casebook", &volume, &["key", "casebook.key"]);
    assert!(written.status.success(), "the folder of the user can be written: {}", text(&written));

    runs_as_its_own_user(&podman);
    holds_nothing_else(&podman);
}

/// A Hub without a server runs, is not healthy, and gives the reason without a shell.
fn runs_as_its_own_user(podman: &Podman) {
    let hub = ["run", "--detach", "--name", "hub", "--entrypoint", "/bin/casebook-hub"];
    let options = ["--env", "CASEBOOK_NATS=nats://127.0.0.1:1", "--env", "CASEBOOK_HEALTH=8400", IMAGE];
    podman.said(&[&hub[..], &HARDENED[1..], &options].concat()).unwrap();
    let healthy = || podman.run(&["exec", "hub", "/bin/casebook-hub", "--healthy"]).unwrap();
    let waits = || {
        let found = healthy();
        found.status.code() == Some(1) && text(&found).contains("cannot connect to NATS")
    };
    assert!(wait::holds(Duration::from_secs(30), waits), "{}", text(&healthy()));

    let pid = podman.said(&["inspect", "--format", "{{.State.Pid}}", "hub"]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!([value("Uid:"), value("Gid:")], ["65532", "65532"]);
    assert_eq!(value("CapEff:").trim_matches('0'), "");
    assert_eq!([value("NoNewPrivs:"), value("Seccomp:")], ["1", "2"]);
}

fn holds_nothing_else(podman: &Podman) {
    let place = podman.folder().join("files");
    std::fs::create_dir(&place).unwrap();
    let archive = place.join("all.tar");
    podman.said(&["create", "--name", "files", IMAGE]).unwrap();
    podman.said(&["export", "--output", archive.to_str().unwrap(), "files"]).unwrap();
    let all = said(Command::new("tar").arg("-tf").arg(&archive)).unwrap();
    let ours = |file: &&str| ["bin/", "usr/", "var/"].iter().any(|folder| file.starts_with(folder));
    let files: BTreeSet<&str> = all.lines().filter(|file| !file.ends_with('/')).filter(ours).collect();
    let expected = BTreeSet::from([
        "bin/casebook",
        "bin/casebook-api",
        "bin/casebook-critic",
        "bin/casebook-director",
        "bin/casebook-expert",
        "bin/casebook-hub",
        "usr/share/casebook/licences/LICENSE-APACHE",
        "usr/share/casebook/licences/LICENSE-MIT",
        "usr/share/casebook/licences/third-party.txt",
        "usr/share/casebook/sbom.cdx.json",
    ]);
    assert_eq!(files, expected);

    said(Command::new("tar").arg("-C").arg(&place).arg("-xf").arg(&archive).args(["usr", "etc"])).unwrap();
    let authorities = std::fs::read_to_string(place.join("etc/ssl/certs/ca-certificates.crt")).unwrap();
    assert!(authorities.contains("BEGIN CERTIFICATE"));
    let bom: Value =
        serde_json::from_slice(&std::fs::read(place.join("usr/share/casebook/sbom.cdx.json")).unwrap()).unwrap();
    let parts = bom["components"].as_array().unwrap();
    let named = |name: &str| parts.iter().find(|part| part["name"] == name);
    assert!(["tokio", "rusqlite", "casebook-hub", "glibc"].iter().all(|name| named(name).is_some()));
    assert!(named("casebook-tests").is_none() && named("expect-test").is_none(), "parts of tests are not in it");
    for part in parts.iter().filter(|part| part["purl"].is_string()) {
        assert!(part["licenses"][0]["expression"].is_string(), "{part}");
    }

    let size: u64 = podman.said(&["image", "inspect", "--format", "{{.Size}}", IMAGE]).unwrap().parse().unwrap();
    // Programs of the profile that users install are a third of these, which are not optimised.
    assert!(size < 400_000_000, "the image has {size} bytes");
}

#[test]
fn team_of_containers_investigates_the_demo() {
    let Some(podman) = Podman::new().unwrap() else { return };
    podman.build().unwrap();
    podman.build_nats().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    said(Command::new(root.join("deploy/compose/prepare")).arg(podman.secrets())).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    said(podman.compose(port).args(["up", "--detach"])).unwrap();
    let names = podman.said(&["ps", "--format", "{{.Names}}"]).unwrap();
    let processes: Vec<&str> = names.lines().filter(|name| !name.contains("_nats-")).collect();
    assert_eq!((processes.len(), names.lines().count()), (2 + 2 + 2 + 3 + 1, 13), "{names}");
    for name in &processes {
        let healthy = || podman.run(&["healthcheck", "run", name]).unwrap().status.success();
        let log = || text(&podman.run(&["logs", "--tail", "20", name]).unwrap());
        assert!(wait::holds(PATIENCE, healthy), "{name} is not healthy: {}", log());
    }
    let ports = podman.said(&["ps", "--format", "{{.Ports}}"]).unwrap();
    assert_eq!(ports.split_whitespace().collect::<Vec<_>>(), [format!("127.0.0.1:{port}->{port}/tcp")]);

    let id = said(podman.compose(port).args(["--profile", "commands", "run", "--rm", "-T", "alert"])).unwrap();
    let key = std::fs::read_to_string(podman.secrets().join("access.key")).unwrap();
    casebook_runtime::tls::install();
    let client = reqwest::Client::new();
    let ask = || async {
        let url = format!("http://127.0.0.1:{port}/api/v1/investigations");
        client.get(url).bearer_auth(&key).send().await.unwrap().text().await.unwrap()
    };
    let ended = wait::found(PATIENCE, || {
        let found: Value = serde_json::from_str(&process::run(ask()).unwrap()).unwrap();
        assert!(found["items"].as_array().is_some_and(|items| items.len() < 2), "{found}");
        Some(found["items"][0].clone()).filter(|one| one["verdict"] == "false_positive")
    });
    let ended = ended.expect("the investigation ends");
    assert!(id.contains(ended["id"].as_str().unwrap()), "{id}: {ended}");
    said(podman.compose(port).args(["down", "--volumes", "--timeout", "5"])).unwrap();
}

#[test]
fn compose_file_is_accepted_by_docker_compose() {
    if Command::new("docker-compose").arg("version").output().is_err() {
        let why = "docker-compose is not installed; apt-get install --no-install-recommends docker-compose";
        assert!(std::env::var_os("CASEBOOK_CONTAINERS").is_none_or(|wanted| wanted == "0"), "{why}");
        eprintln!("skipped: {why}");
        return;
    }
    let two = thirdparty::python(&[thirdparty::COMPOSE]).with_file_name("docker-compose");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy/compose");
    let version = said(Command::new(&two).arg("version")).unwrap();
    assert!(version.contains(" v2."), "{version}");
    // Version 2 writes each part of a port on its own line.
    let page = ["host_ip: 127.0.0.1", "target: 7420", "published: \"7420\""];
    for (compose, page) in [(Path::new("docker-compose"), "127.0.0.1:7420"), (&two, &page.join("\n        "))] {
        let mut command = Command::new(compose);
        command.args(["--profile", "observe", "--profile", "commands", "config"]).current_dir(&folder);
        let shown = said(&mut command).unwrap();
        assert!(shown.contains(page) && shown.contains("internal: true"), "{shown}");
    }
}
