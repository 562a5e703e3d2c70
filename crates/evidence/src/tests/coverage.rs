use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn audit(host: &str, second: u32, kind: &str) -> String {
    format!(
        "node={host} type={kind} msg=audit(17723592{second:02}.100:{second}): pid=7 uid=0 comm=\"ls\" res=success\n"
    )
}

/// Two hosts and a log without hosts.
fn tools() -> (Folder, EvidenceTools) {
    let web = |host: &'static str| (0..30).map(move |n| audit(host, n, if n % 3 == 0 { "EXECVE" } else { "SYSCALL" }));
    let log: String = web("web1").chain(web("web2")).collect();
    let dpkg: String = (10..30).map(|n| format!("2026-03-01 10:00:{n} install vim:amd64 <none> 9.{n}\n")).collect();
    let folder = Folder::new(&[("audit.log", log.as_bytes()), ("dpkg.log", dpkg.as_bytes())]);
    let catalog = Arc::new(folder.open());
    let all: Vec<String> = catalog.sources().iter().map(|source| source.id.clone()).collect();
    let tools = EvidenceTools::new(catalog, &all);
    (folder, tools)
}

fn call(tools: &EvidenceTools, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&tools.call(tool, &arguments.to_string()).unwrap()).unwrap()
}

#[test]
fn coverage_counts_hosts_and_kinds() {
    let (_folder, tools) = tools();
    let found = call(&tools, "coverage", json!({}));
    let rows: Vec<(&str, &str, u64)> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["source"].as_str().unwrap(), row["host"].as_str().unwrap(), row["records"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, [("audit", "web1", 30), ("audit", "web2", 30), ("dpkg", "", 20)]);
    let first = &found["rows"][0];
    assert_eq!((&first["kinds"][0]["kind"], &first["kinds"][0]["records"]), (&json!("SYSCALL"), &json!(20)));
    assert_eq!(
        (&first["first_time"], &first["last_time"]),
        (&json!("2026-03-01T10:00:00.1Z"), &json!("2026-03-01T10:00:29.1Z"))
    );
    assert_eq!(call(&tools, "coverage", json!({"host": "WEB2.corp.example"}))["total"], 1);
    let none = call(&tools, "coverage", json!({"host": "db1"}));
    assert_eq!((&none["total"], &none["no_source_names_the_host"]), (&json!(0), &json!(true)));
}

#[test]
fn answer_that_found_nothing_says_what_was_covered() {
    let (_folder, tools) = tools();
    let one = |arguments: Value| call(&tools, "search", arguments);
    let found = one(json!({"terms": ["web1", "db7", "insmod"], "sources": ["audit"]}));
    assert_eq!(found["in_no_record"], json!(["db7", "insmod"]));
    assert_eq!(found["covered"][0]["hosts"][1]["host"], "web2");
    assert_eq!(found["hosts_of_other_sources"], json!([]));
    let found = one(json!({"terms": ["insmod"], "sources": ["dpkg"]}));
    assert_eq!((&found["in_no_record"], &found["hosts_of_other_sources"]), (&json!([]), &json!(["web1", "web2"])));
    assert_eq!(found["covered"][0]["hosts"][0]["host"], "");
    assert!(one(json!({"terms": ["web1"]}))["covered"].is_null());
    let counted = call(&tools, "count_by", json!({"field": "type", "where": [{"field": "node", "value": "db7"}]}));
    assert_eq!((&counted["total"], &counted["covered"][0]["source"]), (&json!(0), &json!("audit")));
}
