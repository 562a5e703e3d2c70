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

/// Each assumption from the file to the notes that views and report have.
#[test]
fn each_assumption_about_a_source_is_a_note() {
    let clock = |minute: u32, second: u32| {
        format!(
            "{{\"time\":\"2024-03-04T05:{minute:02}:{second:02}\",\"@timestamp\":\"2024-03-04T03:{minute:02}:{second:02}Z\",\"host\":\"db\"}}\n"
        )
    };
    let off: String = (0..40).map(|n| clock(n, n)).collect();
    let year: String = (10..40)
        .map(|n| format!("Mar  4 05:{n}:00 web1 sshd[7]: Accepted password for mara from 10.0.0.1 port 22 ssh2\n"))
        .collect();
    let zone: String = (10..40).map(|n| format!("2024-03-04 05:{n}:00 worker started job {n}\n")).collect();
    let broken = (10..40).map(|n| format!("{{\"time\":\"2024-03-04T05:{n}:00Z\",\"a\":1}}\n")).collect::<String>();
    let untimed = "{\"a\":2}\n{\"time\": broken\n";
    let long = format!("{{\"time\":\"2024-03-04T05:59:00Z\",\"a\":\"{}\"}}\n", "x".repeat(2 << 20));
    let folder = Folder::new(&[
        ("off.json", off.as_bytes()),
        ("year.log", year.as_bytes()),
        ("zone.log", zone.as_bytes()),
        ("broken.json", (broken + untimed + &long).as_bytes()),
        ("disk.7z", b"7z\xbc\xaf\x27\x1crest"),
    ]);
    let notes = folder.open().files().notes;
    for (source, what) in [
        ("off", "makes it UTC"),
        ("year", "its times have no year: 2024 for the first record, by"),
        ("zone", "have no zone: they are read as UTC"),
        ("broken", "1 of 33 records are malformed"),
        ("broken", "of 33 records have no time"),
        ("broken", "1 of 33 records are too long"),
        ("disk.7z", "not loaded: 7z archive"),
    ] {
        assert!(
            notes.iter().any(|note| note.source == source && note.note.contains(what)),
            "{source} {what}: {notes:#?}"
        );
    }
}

#[test]
fn outcomes_are_counted_over_all_kinds_of_refusal() {
    let line = |n: u32, status: u32| {
        format!(
            "192.0.2.9 - - [01/Mar/2026:10:{:02}:{:02} +0000] \"GET /{n} HTTP/1.1\" {status} 9 \"-\" \"x\"\n",
            n / 60,
            n % 60
        )
    };
    let log: String = (0..602).map(|n| line(n, [401, 403, 404][n as usize % 3])).chain([line(602, 200)]).collect();
    let folder = Folder::of("access.log", &log);
    let tools = EvidenceTools::new(Arc::new(folder.open()), &["access".to_owned()]);
    let found = call(&tools, "count_by", json!({"field": "$outcome", "terms": ["192.0.2.9"]}));
    let of = |n: usize| (found["groups"][n]["value"].as_str().unwrap(), found["groups"][n]["count"].as_u64().unwrap());
    assert_eq!((of(0), of(1)), (("failure", 602), ("success", 1)));
    assert_eq!(found["groups"][1]["example"]["line"], 603);
    assert!(tools.call("count_by", r#"{"field":"$outcome"}"#).unwrap_err().contains("needs `terms` or `where`"));
}
