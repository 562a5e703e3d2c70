//! `casebook evidence`

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use casebook_tests::{run, thirdparty};
use serde_json::{Value, json};

use super::script::{AUTO, Client, LEGACY, Server, demo, program, text};

fn used(client: &mut Client) {
    assert!(client.said["instructions"].as_str().unwrap().contains("Begin with list_sources"), "{}", client.said);
    let tools = client.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "list_sources",
            "coverage",
            "describe_source",
            "search",
            "count_by",
            "around",
            "related",
            "baseline",
            "get_record",
            "rule_hits",
            "sql"
        ]
    );
    for tool in &tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["inputSchema"]["properties"]["only"]["type"], "array", "{tool}");
    }
    let found = client.raw("search", &json!({"terms": ["depmod"], "limit": 2, "only": ["endpoint"]}));
    let answer: Value = serde_json::from_str(found["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&answer, &found["isError"]), (&found["structuredContent"], &json!(false)));
    assert!(answer["total"].as_u64().unwrap() > 0, "{answer}");
    assert!(answer["records"][0]["line"].as_u64().unwrap() > 0, "{answer}");
    let wrong = client.call("search", &json!({"terms": 5})).unwrap_err();
    assert!(wrong.starts_with("search: `terms` must be a list of strings"), "{wrong}");
    let unknown = client.call("delete", &json!({})).unwrap_err();
    assert!(unknown.starts_with("unknown tool \"delete\"; there are list_sources"), "{unknown}");
    let domain = client.call("list_sources", &json!({"only": ["space"]})).unwrap_err();
    assert!(domain.contains("`only` names \"space\", which is neither a domain"), "{domain}");
}

#[test]
fn a_python_client_uses_it_over_both_transports_in_both_lifecycles() {
    let data = tempfile::tempdir().unwrap();
    let (evidence, data) = (demo("evidence"), text(data.path()).to_owned());
    let over_http = ["evidence", text(&evidence), "--data", &data, "--http", "127.0.0.1:0"];
    let server = Server::start(&over_http);
    let program = program();
    let command = [&program, "evidence", text(&evidence), "--data", &data];
    for mode in [LEGACY, AUTO] {
        // All at once, over one index, and over one data folder.
        let mut both = [Client::stdio(&command, mode), Client::http(&server.url, mode)];
        let versions: Vec<&Value> = both.iter().map(|client| &client.said["protocol"]).collect();
        assert_eq!(versions[0], versions[1]);
        assert_eq!(*versions[0] == "2026-07-28", mode == AUTO, "{versions:?}");
        both.iter_mut().for_each(used);
    }
}

#[test]
fn only_the_domains_that_were_named_are_shown() {
    let data = tempfile::tempdir().unwrap();
    let (evidence, program) = (demo("evidence"), program());
    let command = [&program, "evidence", text(&evidence), "--data", text(data.path()), "--domain", "identity"];
    let mut client = Client::stdio(&command, LEGACY);
    let sources = client.json("list_sources", &json!({}));
    let sources = sources.as_array().unwrap();
    assert!(!sources.is_empty() && sources.iter().all(|source| source["domain"] == "identity"), "{sources:?}");
    let refused = Command::new(&program).args(&command[1..5]).args(["--domain", "space"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("no sources of domain space; it has "), "{said}");
    let refused = Command::new(&program).args(&command[1..5]).args(["--http", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("expected a loopback address"), "{said}");
}

#[test]
fn garbage_ends_nothing_and_the_end_of_the_input_ends_it_well() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(run::program("casebook"));
    command.arg("evidence").arg(demo("evidence")).arg("--data").arg(data.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut lines = from.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    to.write_all(b"garbage\n\xff\xfe\n{\n[[[[\n\"x\"\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n").unwrap();
    to.write_all(&[b'['; 200_000]).unwrap();
    let who = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    writeln!(to, "\n{}", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who})).unwrap();
    let first = lines.find(|answer| answer["id"] == 1).unwrap();
    assert_eq!(first["result"]["serverInfo"]["name"], "casebook-evidence");
    for bad in [json!({"name": 7}), json!({"arguments": []}), json!([]), json!(null)] {
        writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": bad})).unwrap();
    }
    let call = json!({"name": "list_sources", "arguments": {}});
    writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})).unwrap();
    let last = lines.find(|answer| answer["id"] == 3).unwrap();
    assert_eq!(last["result"]["isError"], false, "{last}");
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_official_inspector_lists_and_calls_it() {
    let Some(programs) = thirdparty::npm(&[thirdparty::INSPECTOR], 20) else { return };
    let data = tempfile::tempdir().unwrap();
    let inspect = |more: &[&str]| {
        let mut inspector = Command::new(programs.join("mcp-inspector"));
        inspector.args(["--cli", &program(), "evidence"]).arg(demo("evidence")).arg("--data").arg(data.path());
        let output = inspector.args(more).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str::<Value>(&said)
            .unwrap_or_else(|e| panic!("{e}: {said} {}", String::from_utf8_lossy(&output.stderr)))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert_eq!(listed["tools"][3]["name"], "search", "{listed}");
    let called =
        inspect(&["--method", "tools/call", "--tool-name", "list_sources", "--tool-arg", "only=[\"endpoint\"]"]);
    assert!(called["content"][0]["text"].as_str().unwrap().contains("endpoint_process"), "{called}");
}
