//! `casebook mcp`

use std::path::Path;

use casebook_protocol::{Report, one_line};
use casebook_tests::{generate, run};
use serde_json::{Value, json};

use super::script::{AUTO, Client, LEGACY, Server, demo, program, text};

fn alert(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn stable(report: &Value) -> Value {
    let mut report: Report = serde_json::from_value(report.clone()).unwrap();
    // A client gets arguments of at most this length.
    for call in &mut report.calls {
        call.arguments = one_line(&call.arguments, 400);
    }
    casebook_report::compare::stable(&report)
}

#[test]
fn a_client_investigates_reads_all_of_it_down_to_the_bytes_and_finds_it_again() {
    let data = tempfile::tempdir().unwrap();
    let (evidence, team, program) = (demo("evidence"), demo("team"), program());
    let command = [&program, "mcp", "--evidence", text(&evidence), "--team", text(&team), "--data", text(data.path())];
    let mut client = Client::stdio(&command, AUTO);
    assert!(client.said["instructions"].as_str().unwrap().contains("open_investigation"));
    for tool in client.tools() {
        assert_eq!(tool["annotations"]["readOnlyHint"], tool["name"] != "open_investigation", "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 60, "{tool}");
    }
    let alert = json!({"alert": alert(&demo("alert.json"))});
    let opened = client.json("open_investigation", &alert);
    assert_eq!(opened["new"], true);
    let id = opened["id"].as_str().unwrap().to_owned();
    let one = json!({"id": id});
    let standing = client.closed(&id);
    assert!(standing["verdict"].is_string() && standing["usage"]["total"]["tool_calls"].as_u64() > Some(0));
    let again = client.json("open_investigation", &alert);
    assert_eq!((&again["id"], &again["new"]), (&json!(id), &json!(false)));

    let timeline = client.json("get_timeline", &one);
    assert!(timeline["timeline"]["events"][0]["evidence"][0]["line"].as_u64().unwrap() > 0, "{timeline}");
    assert!(client.json("get_review", &one)["review"]["findings"].is_array());
    assert!(!client.json("get_journal", &one)["journal"].as_array().unwrap().is_empty());
    let report = client.json("get_report", &json!({"id": id, "format": "json", "full": true}));
    let expected = run::investigate(&demo("alert.json"), &evidence).unwrap();
    let embedded = serde_json::to_value(&expected).unwrap();
    assert_eq!(stable(&report["report"]), stable(&embedded), "the same report as of `casebook investigate`");
    let markdown = client.json("get_report", &one);
    assert!(markdown["markdown"].as_str().unwrap().starts_with('#'), "{markdown}");

    short_and_whole(&mut client, &id);
    let findings = client.json("get_findings", &json!({"id": id, "full": true}));
    let citation = findings["findings"][0]["citations"][0].clone();
    assert_eq!(citation["holds"], true, "{citation}");
    cited(&mut client, &id, &citation);
    let word = findings["findings"][0]["finding"]["finding"]["claim"].as_str().unwrap().split(' ').next().unwrap();
    let found = client.json("search_investigations", &json!({"text": word.to_uppercase()}));
    assert_eq!((&found["total"], &found["investigations"][0]["id"]), (&json!(1), &json!(id)), "{found}");
    assert_eq!(client.json("search_investigations", &json!({"text": "zebra-crossing"}))["total"], 0);
    let list = client.json("list_investigations", &json!({"limit": 1}));
    assert_eq!((&list["investigations"][0]["investigation"], &list["next_before"]), (&json!(id), &Value::Null));
}

/// Answers fit a model, and their pages give all of it.
fn short_and_whole(client: &mut Client, id: &str) {
    let whole = client.json("get_report", &json!({"id": id, "full": true}));
    let (mut text, mut cursor) = (String::new(), json!(0));
    while !cursor.is_null() {
        let page = client.call("get_report", &json!({"id": id, "cursor": cursor})).unwrap();
        assert!(page.len() <= 8 * 1024, "{} bytes", page.len());
        let page: Value = serde_json::from_str(&page).unwrap();
        text.push_str(page["markdown"].as_str().unwrap());
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(text, whole["markdown"].as_str().unwrap());
    let answer = client.call("get_report", &json!({"id": id, "format": "json"})).unwrap();
    assert!(answer.len() <= 8 * 1024 && answer.contains("\"verdict\""), "{answer}");
    let all = client.json("get_findings", &json!({"id": id, "full": true}));
    let (mut ids, mut cursor) = (Vec::new(), json!(0));
    while !cursor.is_null() {
        let page = client.call("get_findings", &json!({"id": id, "cursor": cursor, "limit": 7})).unwrap();
        assert!(page.len() <= 8 * 1024, "{} bytes", page.len());
        let page: Value = serde_json::from_str(&page).unwrap();
        let findings = page["findings"].as_array().unwrap();
        assert!((1..=7).contains(&findings.len()) && page["total"] == json!(all["findings"].as_array().unwrap().len()));
        ids.extend(findings.iter().map(|finding| finding["id"].clone()));
        cursor = page["next_cursor"].clone();
    }
    let expected: Vec<Value> = all["findings"].as_array().unwrap().iter().map(|f| f["finding"]["id"].clone()).collect();
    assert_eq!(ids, expected);
}

/// The recorded bytes behind a citation are there, and no others.
fn cited(client: &mut Client, id: &str, citation: &Value) {
    let artifact = citation["artifact"].as_str().unwrap();
    let whole = client.json("get_evidence", &json!({"id": id, "artifact": artifact}));
    assert_eq!((&whole["artifact"], &whole["seen"]["offset"]), (&json!(artifact), &json!(0)));
    let call = whole["call"].as_str().unwrap();
    let raw = citation["records"][0]["file"].as_str().unwrap();
    let found = client.json("get_evidence", &json!({"id": id, "call": call, "search": raw}));
    assert!(!found["seen"]["hits"].as_array().unwrap().is_empty(), "{found}");
    for (arguments, expect) in [
        (json!({"id": id, "artifact": "0".repeat(64)}), "no call of this investigation has the result"),
        (json!({"id": id, "call": "r9.x"}), "this investigation has no call r9.x"),
        (json!({"id": id}), "give either `call` or `artifact`"),
        (json!({"id": "no-such"}), "no investigation has an id that begins with"),
        (json!({"id": id, "call": call, "pointer": "/no/such"}), "does not exist"),
        (json!({"id": id, "call": call, "path": "/etc/passwd"}), "unknown field `path`"),
    ] {
        let refused = client.call("get_evidence", &arguments).unwrap_err();
        assert!(refused.contains(expect), "{arguments}: {refused}");
    }
    let refused = client.call("open_investigation", &json!({"alert": "text"})).unwrap_err();
    assert!(refused.contains("cannot read the arguments"), "{refused}");
}

#[test]
fn killed_in_the_middle_it_goes_on_when_it_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let (evidence, data) = (folder.path().join("evidence"), folder.path().join("data"));
    generate::write(&evidence, 3_000_000, 3).unwrap();
    let start =
        || Server::start(&["mcp", "--evidence", text(&evidence), "--data", text(&data), "--http", "127.0.0.1:0"]);
    let mut server = start();
    let mut client = Client::http(&server.url, LEGACY);
    let alert: Value = serde_json::from_str(generate::ALERT).unwrap();
    let opened = client.json("open_investigation", &json!({"alert": alert}));
    let id = opened["id"].as_str().unwrap().to_owned();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    drop(client);
    let server = start();
    let mut client = Client::http(&server.url, LEGACY);
    let ended = client.closed(&id);
    let report = client.json("get_report", &json!({"id": id, "format": "json", "full": true}));
    let file = folder.path().join("alert.json");
    std::fs::write(&file, generate::ALERT).unwrap();
    let expected = serde_json::to_value(run::investigate(&file, &evidence).unwrap()).unwrap();
    assert_eq!(stable(&report["report"]), stable(&expected), "{ended}");
}
