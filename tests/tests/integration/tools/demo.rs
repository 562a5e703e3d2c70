//! Whole investigations whose tools are behind real servers: the evidence over a child process and over
//! HTTP, and servers of third parties, used by an Expert of a YAML file against a scripted model.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use casebook_protocol::Report;
use casebook_report::compare::stable;
use casebook_tests::lab::Lab;
use casebook_tests::model::Request;
use casebook_tests::model::brain::{Brain, answer};
use casebook_tests::model::play::{Ask, Play, Reply, Script};
use casebook_tests::model::prompt;
use casebook_tests::run;
use casebook_tests::thirdparty::{FILESYSTEM_SERVER, SQLITE_SERVER, npm, python};
use serde_json::{Value, json};

/// `casebook investigate` of the demo's alert in `folder`; the report and what was printed.
fn investigate(folder: &Path, name: &str, more: &[&str]) -> (Report, String) {
    let mut command = Command::new(run::program("casebook"));
    command.arg("investigate");
    with(command, folder, name, more)
}

fn with(mut command: Command, folder: &Path, name: &str, more: &[&str]) -> (Report, String) {
    let out = folder.join(name);
    command.arg(run::demo().join("alert.json")).args(more).arg("--out").arg(&out);
    command.arg("--data").arg(folder.join(format!("{name}-data"))).current_dir(folder).stdin(Stdio::null());
    let output = command.env_remove("CASEBOOK_MODELS").env_remove("CASEBOOK_TEAM").output().unwrap();
    let said = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    assert!(output.status.success(), "{name}: {said}");
    let report = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    (report, said)
}

fn team(folder: &Path, name: &str, servers: &Value, policy: &str) -> String {
    let team = folder.join(name);
    std::fs::create_dir_all(team.join("experts")).unwrap();
    std::fs::write(team.join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    std::fs::write(team.join("tools.yaml"), policy).unwrap();
    team.display().to_string()
}

/// A process that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The findings are the same. Code cannot list the acts of evidence that only a server has, so nothing is dismissed.
fn served(report: &Report, embedded: &Report) {
    let (report, embedded) = (stable(report), stable(embedded));
    assert_eq!((&report["findings"], &report["timeline"]), (&embedded["findings"], &embedded["timeline"]));
    assert_eq!((&report["verdict"], &embedded["verdict"]), (&json!("inconclusive"), &json!("false_positive")));
    assert!(report["ruling"]["missing"].to_string().contains("a list of the acts"), "{}", report["ruling"]);
}

#[test]
fn evidence_over_mcp_gives_the_report_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let evidence = run::demo().join("evidence").display().to_string();
    let declared = run::demo().join("team").display().to_string();
    let (embedded, _) = investigate(folder.path(), "embedded", &["--evidence", &evidence, "--team", &declared]);
    let casebook = run::program("casebook").display().to_string();
    let data = folder.path().join("served").display().to_string();
    let arguments = ["evidence", &evidence, "--team", &declared, "--data", &data];

    let policy = "servers:\n  evidence:\n    kind: evidence\n";
    let child = json!({"evidence": {"command": casebook, "args": arguments}});
    let over_child = team(folder.path(), "child", &child, policy);
    std::fs::remove_dir(folder.path().join("child/experts")).unwrap();
    let (report, said) = investigate(folder.path(), "over-child", &["--team", &over_child]);
    assert!(said.contains("from server evidence"), "{said}");
    served(&report, &embedded);
    let (report, _) = with(run::cluster().unwrap(), folder.path(), "over-nats", &["--team", &over_child]);
    served(&report, &embedded);

    let mut server = Command::new(&casebook);
    server.args(arguments).args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Killed(server.spawn().unwrap());
    let mut line = String::new();
    let mut said = std::io::BufReader::new(server.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    let url = line.trim().rsplit(' ').next().unwrap();
    let over_http = team(folder.path(), "http", &json!({"evidence": {"url": url}}), policy);
    std::fs::remove_dir(folder.path().join("http/experts")).unwrap();
    let (report, _) = investigate(folder.path(), "over-http", &["--team", &over_http]);
    served(&report, &embedded);
}

/// A model that, as the Expert of one domain, calls tools of servers and cites what they gave.
struct Caller {
    brain: Brain,
    folder: String,
}

impl Script for Caller {
    fn reply(&self, request: &Request) -> Play {
        let question = prompt::json_section(request, "question").unwrap_or_default();
        if question.get("domain") != Some(&json!("code")) {
            return self.brain.reply(request);
        }
        assert!(request.system.contains("Look at the deployments first."), "{}", request.system);
        let sources = prompt::json_section(request, "sources").unwrap_or_default().to_string();
        assert!(sources.contains("not available: server gone cannot be reached"), "{sources}");
        let shown = prompt::all_shown(request);
        let ask = |name: &str, arguments: Value| Ask { name: name.into(), arguments: arguments.to_string() };
        if shown.is_empty() {
            return Play::Reply(Reply::calls(vec![
                ask("db__read_query", json!({"query": "SELECT who, what FROM deployments WHERE what LIKE 'kmod%'"})),
                ask("files__read_text_file", json!({"path": format!("{}/deploy.log", self.folder)})),
                ask("files__write_file", json!({"path": format!("{}/x", self.folder), "content": "owned"})),
            ]));
        }
        let call = |tool: &str| shown.iter().find(|one| one.tool == tool).map(|one| one.call).unwrap_or_default();
        let finding = |kind: &str, claim: &str, time: Value, call: &str, at: &str, quote: &str| {
            json!({"kind": kind, "claim": claim, "time": time, "entities": [], "bearing": "incriminating",
                "weight": "moderate", "about_alert": true, "technique": null, "confidence": 0.8, "look_next": null,
                "citations": [{"kind": "literal", "call": call, "at": at, "quote": quote, "value": null, "from": null, "to": null}]})
        };
        let time = json!("2026-11-22T10:00:05Z");
        let findings = json!({"findings": [
            finding("state", "The table names `mallory` as who deployed `kmod-x`.", Value::Null, call("db__read_query"), "line 1", "mallory"),
            finding("occurrence", "A deployment by `mallory` ran at 10:00:05.", time, call("files__read_text_file"), "line 2", "mallory deployed kmod-x"),
        ]});
        Play::Reply(answer(request, &findings))
    }
}

const EXPERT: &str = "\
name: code
description: Knows what was deployed, by whom, and when.
expects: The table of deployments and the log of the deployer.
instructions: |
  Look at the deployments first.
tools:
  - db/read_query
  - files/*
  - gone/*
limits:
  turns: 6
";

const ENDPOINT: &str = "\
name: endpoint
description: Reads what the machine recorded.
expects: Logs of the machine.
instructions: Begin with the alerted process.
tools: [evidence/*]
sources: ['*']
";

#[test]
fn expert_of_a_file_uses_and_cites_third_party_servers() {
    let Some(programs) = npm(&[FILESYSTEM_SERVER], 18) else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let files = root.join("files");
    std::fs::create_dir(&files).unwrap();
    let log = "2026-11-22T09:59:01Z alice deployed web-1\n2026-11-22T10:00:05Z mallory deployed kmod-x\n";
    std::fs::write(files.join("deploy.log"), log).unwrap();
    let interpreter = python(&SQLITE_SERVER);
    let database = root.join("deployments.db");
    let fill = format!(
        "import sqlite3\ndb = sqlite3.connect({:?})\ndb.execute('create table deployments(who, what)')\n\
         db.execute(\"insert into deployments values ('mallory', 'kmod-x'), ('alice', 'web-1')\")\ndb.commit()",
        database.display().to_string()
    );
    assert!(Command::new(&interpreter).args(["-c", &fill]).status().unwrap().success());
    let servers = json!({
        "db": {"command": interpreter.with_file_name("mcp-server-sqlite"), "args": ["--db-path", database]},
        "files": {"command": programs.join("mcp-server-filesystem"), "args": ["${ROOT:-.}/files"], "type": "stdio",
            "env": {"PATH": "${PATH}"}, "autoApprove": []},
        "gone": {"command": "no-such-program"},
    });
    let servers: Value =
        serde_json::from_str(&servers.to_string().replace("${ROOT:-.}", &root.display().to_string())).unwrap();
    let policy = "servers:\n  db:\n    about: Deployments of this month\n    read_only: [read_query, list_tables, describe_table]\n  \
                  files:\n    about: Logs of the deployer\n    environment: [HOME]\n";
    let team = team(&root, "team", &servers, policy);
    std::fs::write(root.join("team/experts/code.yaml"), EXPERT).unwrap();
    std::fs::write(root.join("team/experts/endpoint.yaml"), ENDPOINT).unwrap();

    let script = Caller { brain: Brain { rounds: 1, ..Brain::default() }, folder: files.display().to_string() };
    let lab = Lab::start(script, ("anthropic", "native")).unwrap();
    let models = root.join("models.toml");
    std::fs::write(&models, &lab.file).unwrap();
    let models = models.display().to_string();
    let evidence = run::demo().join("evidence").display().to_string();
    let with = ["--team", &team, "--evidence", &evidence, "--models", &models];
    let (report, said) = investigate(&root, "third-party", &with);
    assert!(said.contains("server db is seen for the first time"), "{said}");
    assert!(said.contains("server gone is not available"), "{said}");
    let ours: Vec<_> = report.findings.iter().filter(|f| f.finding.domain.as_str() == "code").collect();
    assert_eq!(ours.len(), 4, "two in each round: {:?}", report.findings);
    for finding in &ours {
        assert!(finding.citations.iter().all(|c| c.holds) && finding.faults.is_empty(), "{finding:?}");
        assert!(finding.score.unwrap().get() <= 0.89, "one source only: {finding:?}");
    }
    let refused = report.calls.iter().find(|call| call.tool == "files__write_file").unwrap();
    assert_eq!(refused.status, casebook_protocol::CallStatus::Failed);
    assert!(!files.join("x").exists(), "a tool that may write is not offered, whatever a model asks for");

    let (id, data) = (report.investigation.as_str(), root.join("third-party-data").display().to_string());
    let cited = ours[1].citations[0].citation.call().as_str();
    let recorded = crate::casebook(&root, &["show", id, "--data", &data, "--call", cited]);
    assert!(recorded.contains("files__read_text_file") && recorded.ends_with(log), "{recorded}");

    let listed = Command::new(run::program("casebook"))
        .args(["tools", "--team", "team", "--json"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert_eq!(listed.status.code(), Some(1), "one of the servers is gone");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let tool = |server: &str, name: &str| {
        let servers = listed["servers"].as_array().unwrap();
        let server = servers.iter().find(|s| s["name"] == server).unwrap();
        server["tools"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone()
    };
    assert_eq!(tool("db", "read_query")["experts"], json!(["code"]));
    assert_eq!(tool("db", "read_query")["pin"], "pinned");
    assert!(tool("db", "write_query")["held_back"].as_str().unwrap().contains("expected a tool that only reads"));
    assert!(tool("files", "write_file")["held_back"].is_string());
    assert!(tool("files", "read_text_file")["held_back"].is_null());
}
