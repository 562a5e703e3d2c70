//! The image `casebook-tools`: Experts in it start MCP servers in Python and Node as child processes.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use casebook_protocol::{CallStatus, Report};
use casebook_tests::lab::{KEY, Lab, models_file};
use casebook_tests::model::Request;
use casebook_tests::model::brain::{Brain, answer};
use casebook_tests::model::play::{Ask, Play, Reply, Script};
use casebook_tests::model::prompt;
use casebook_tests::podman::{Podman, TOOLS};
use casebook_tests::run;
use serde_json::{Value, json};

use super::{HARDENED, text};

const SERVERS: [&str; 2] = ["python", "node"];
const USER: u32 = 65532;

const EXPERT: &str = "\
name: code
description: Knows what the servers run on.
expects: Two servers.
instructions: Ask both servers.
tools: [python/*, node/*]
limits: { turns: 4 }
";

const POLICY: &str = "\
servers:
  python: { environment: [PATH, HOME] }
  node: { environment: [PATH, HOME] }
";

/// A model that, as the Expert of one domain, calls the tool of each server and cites what it gave.
struct Caller(Brain);

impl Script for Caller {
    fn reply(&self, request: &Request) -> Play {
        let question = prompt::json_section(request, "question").unwrap_or_default();
        if question.get("domain") != Some(&json!("code")) {
            return self.0.reply(request);
        }
        let shown = prompt::all_shown(request);
        if shown.is_empty() {
            let ask = |server| Ask { name: format!("{server}__runtime"), arguments: "{}".into() };
            return Play::Reply(Reply::calls(SERVERS.map(ask).into()));
        }
        let finding = |server: &str| {
            let tool = format!("{server}__runtime");
            let call = shown.iter().find(|one| one.tool == tool).map(|one| one.call);
            let quote = format!("{server} runs as user {USER}");
            json!({"kind": "state", "claim": format!("One server runs on `{server}`."), "time": null, "entities": [],
                "bearing": "neutral", "weight": "minor", "about_alert": false, "technique": null, "confidence": 0.8,
                "look_next": null, "citations": [{"kind": "literal", "call": call, "at": "line 1", "quote": quote,
                    "value": null, "from": null, "to": null}]})
        };
        Play::Reply(answer(request, &json!({"findings": SERVERS.map(finding)})))
    }
}

/// What `/case` in the container has: the demo, a team with the servers, and a models file.
fn prepare(case: &Path, url: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/image");
    let team = case.join("team");
    std::fs::create_dir_all(team.join("experts")).unwrap();
    std::fs::create_dir(case.join("evidence")).unwrap();
    for file in std::fs::read_dir(run::demo().join("evidence")).unwrap().flatten() {
        std::fs::copy(file.path(), case.join("evidence").join(file.file_name())).unwrap();
    }
    std::fs::copy(run::demo().join("alert.json"), case.join("alert.json")).unwrap();
    for script in ["server.py", "server.mjs"] {
        std::fs::copy(here.join(script), team.join(script)).unwrap();
    }
    let servers = json!({
        "python": {"command": "python3", "args": ["/case/team/server.py"]},
        "node": {"command": "node", "args": ["/case/team/server.mjs"]},
    });
    std::fs::write(team.join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    std::fs::write(team.join("tools.yaml"), POLICY).unwrap();
    std::fs::write(team.join("experts/code.yaml"), EXPERT).unwrap();
    std::fs::write(case.join("key"), KEY).unwrap();
    let models = models_file(url, ("anthropic", "native"), Path::new("/case/key"), "");
    std::fs::write(case.join("models.toml"), models).unwrap();
    // The first look at the servers pins their tools here.
    chown(&team, Some(USER), Some(USER)).unwrap();
}

#[test]
fn tools_image_runs_servers_in_python_and_node() {
    if std::env::var_os("CASEBOOK_TOOLS_IMAGE").is_none_or(|wanted| wanted != "1") {
        eprintln!("skipped: set CASEBOOK_TOOLS_IMAGE=1 for the test of casebook-tools");
        return;
    }
    let Some(podman) = Podman::in_memory().unwrap() else { return };
    let begun = Instant::now();
    podman.build_tools().unwrap();
    println!("built in {:.0} s", begun.elapsed().as_secs_f64());

    let rights = &HARDENED[..HARDENED.len() - 2];
    let run = |options: &[&str], arguments: &[&str]| -> Output {
        podman.run(&[&["run"], rights, options, &[TOOLS], arguments].concat()).unwrap()
    };
    // What `npx` and `uvx` start is not tried: it comes from registries.
    let programs = "npx --version && uvx --version && ! touch /x && id -u";
    let found = run(&["--network", "none", "--entrypoint", "/bin/sh"], &["-c", programs]);
    assert!(found.status.success() && text(&found).contains(&format!("\n{USER}\n")), "{}", text(&found));

    let lab = Lab::start(Caller(Brain { rounds: 1, ..Brain::default() }), ("anthropic", "native")).unwrap();
    let (case, data) = (podman.folder().join("case"), podman.folder().join("data"));
    prepare(&case, &lab.server.url());
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(USER), Some(USER)).unwrap();
    let volume = |folder: &Path, place: &str| format!("{}:{place}", folder.display());

    let writable = volume(&case, "/case");
    let listed = run(&["--network", "none", "--volume", &writable], &["tools", "--team", "/case/team", "--json"]);
    assert!(listed.status.success(), "{}", text(&listed));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    for server in listed["servers"].as_array().unwrap() {
        assert_eq!(
            (&server["tools"][0]["name"], &server["tools"][0]["pin"]),
            (&json!("runtime"), &json!("pinned now"))
        );
    }

    // The scripted model is on the loopback of this machine.
    let (kept, read) = (volume(&data, "/var/lib/casebook"), volume(&case, "/case:ro"));
    let options = ["--network", "host", "--volume", &kept, "--volume", &read];
    let investigate = ["investigate", "/case/alert.json", "--evidence", "/case/evidence", "--team", "/case/team"];
    let more = ["--models", "/case/models.toml", "--out", "/var/lib/casebook/report"];
    let investigated = run(&options, &[&investigate[..], &more].concat());
    assert!(investigated.status.success(), "{}", text(&investigated));
    let report: Report = serde_json::from_slice(&std::fs::read(data.join("report/report.json")).unwrap()).unwrap();
    for server in SERVERS {
        let call = report.calls.iter().find(|call| call.tool == format!("{server}__runtime")).unwrap();
        assert_eq!(call.status, CallStatus::Answered, "{server}");
        let finding = report.findings.iter().find(|one| one.finding.draft.claim.contains(server)).unwrap();
        assert!(finding.citations.iter().all(|c| c.holds) && !finding.citations.is_empty(), "{finding:?}");
    }
}
