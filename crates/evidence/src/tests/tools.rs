use super::*;

fn sample() -> Folder {
    let endpoint: Vec<String> = (0..50)
        .map(|i| format!(r#"{{"time":"2024-01-01T00:00:{i:02}Z","Image":"C:\\Windows\\p{}.exe","pid":{i},"ppid":1,"cmdline":"run {i}","ips":["10.0.0.{i}","1.1.1.1"]}}"#, i % 3))
        .collect();
    let network: Vec<String> = (0..10)
        .map(|i| {
            format!(
                r#"{{"ts":{}.5,"uid":"C{i}","id.orig_h":"10.0.0.{i}","id.resp_h":"192.168.2.6"}}"#,
                1_704_067_200 + i
            )
        })
        .collect();
    Folder::new(&[
        ("proc.ndjson", endpoint.join("\n").as_bytes()),
        ("net/conn.log", network.join("\n").as_bytes()),
        ("policy.yaml", b"a: b\nc:\n  - d\n"),
    ])
}

fn fails(tool: &str, arguments: &str, expect: &str) {
    let folder = sample();
    let tools = folder.tools();
    let error = tools.call(tool, arguments).unwrap_err();
    assert!(error.contains(expect), "{tool} {arguments}: {error}");
}

#[test]
fn arguments_are_checked_by_name_and_kind() {
    fails("find", "{}", "unknown tool \"find\"; there are list_sources");
    fails("search", "{", "no JSON");
    fails("search", "[]", "must be a JSON object, got a list");
    fails("search", r#"{"term":"x"}"#, "unknown argument `term`; known: terms, mode");
    fails("search", r#"{"terms":"x"}"#, "`terms` must be a list of strings, none of them empty, got \"x\"");
    fails("search", r#"{"limit":501}"#, "`limit` must be a whole number from 0 to 500, got 501");
    fails("search", r#"{"limit":"5"}"#, "`limit` must be a whole number");
    fails("search", r#"{"from":"yesterday"}"#, "RFC 3339");
    fails("search", r#"{"from":"2024-01-02T00:00:00Z","to":"2024-01-01T00:00:00Z"}"#, "`from` is later than `to`");
    fails("search", r#"{"sources":["nope"]}"#, "no source \"nope\"; there are net/conn, policy, proc");
    fails("search", r#"{"where":[{"field":"a","op":"like","value":"x"}]}"#, "`op` must be one of eq, ne");
    fails("search", r#"{"where":[{"field":"a","op":"regex","value":"("}]}"#, "regular expression");
    fails("search", r#"{"where":[{"field":"a"}]}"#, "needs a `value`");
    fails("search", r#"{"mode":"some"}"#, "one of all, any");
    fails("count_by", "{}", "`field` is missing");
    fails("around", "{}", "either `time`, or `file` and `line`");
    fails("get_record", r#"{"file":"proc.ndjson"}"#, "`line` is missing");
    fails("get_record", r#"{"file":"proc.ndjson","line":51}"#, "lines 1 to 50");
    fails("list_sources", r#"{"x":1}"#, "it takes none");
}

#[test]
fn schemas_are_json_and_name_the_arguments() {
    let folder = sample();
    let toolset = folder.tools().toolset();
    assert_eq!(toolset.tools.len(), 7);
    for tool in toolset.tools {
        let schema: Value = serde_json::from_str(&tool.input_schema).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        assert!(tool.repeatable && tool.description.len() > 80);
    }
}

#[test]
fn search_by_terms_fields_and_time() {
    let folder = sample();
    let tools = folder.tools();
    let total = |arguments: &str| call(&tools, "search", arguments)["total"].as_u64().unwrap();
    assert_eq!(total("{}"), 63);
    assert_eq!(total(r#"{"terms":["192.168.2.6"]}"#), 10);
    assert_eq!(total(r#"{"terms":["C:\\Windows\\P1.exe"]}"#), 17);
    assert_eq!(total(r#"{"terms":["p1.exe","run 4"]}"#), 5);
    assert_eq!(total(r#"{"terms":["p1.exe","192.168.2.6"],"mode":"any"}"#), 27);
    assert_eq!(total(r#"{"where":[{"field":"image","op":"ends_with","value":"\\p2.exe"}]}"#), 16);
    assert_eq!(total(r#"{"where":[{"field":"pid","op":"gt","value":44}]}"#), 5);
    assert_eq!(total(r#"{"where":[{"field":"ips","value":"10.0.0.7"}]}"#), 1);
    assert_eq!(total(r#"{"from":"2024-01-01T00:00:10Z","to":"2024-01-01T00:00:12Z"}"#), 3);
    assert_eq!(total(r#"{"terms":["run"],"from":"2024-01-01T00:00:10Z","to":"2024-01-01T00:00:12Z"}"#), 3);
    assert_eq!(total(r#"{"sources":["net/conn"],"terms":["run"]}"#), 0);
    let page = call(&tools, "search", r#"{"order":"time_desc","limit":2,"offset":1,"terms":["run"]}"#);
    assert_eq!(page["records"][0]["line"], 49);
    assert_eq!(page["returned"], 2);
    let window = call(&tools, "search", r#"{"from":"2024-01-01T00:00:10Z","limit":0}"#);
    assert_eq!(window["untimed_not_searched"], 3);
    assert_eq!(window["window"]["from"], "2024-01-01T00:00:10Z");
    assert_eq!(window["searched"], serde_json::json!(["net/conn", "policy", "proc"]));
}

#[test]
fn of_many_terms_each_is_counted_and_the_nearest_come_first() {
    let folder = sample();
    let tools = folder.tools();
    let found = call(&tools, "search", r#"{"terms":["p0.exe","P1.EXE","nowhere"],"mode":"any","limit":0}"#);
    assert_eq!(found["by_term"], serde_json::json!({"p0.exe": 17, "P1.EXE": 17}));
    assert_eq!(found["total"], 34);
    let near = call(&tools, "search", r#"{"terms":["run"],"near":"2024-01-01T00:00:20Z","limit":3}"#);
    let mut lines: Vec<u64> = near["records"].as_array().unwrap().iter().map(|r| r["line"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [20, 21, 22]);
    fails("search", r#"{"order":"time","near":"2024-01-01T00:00:20Z"}"#, "give `order` or `near`, not both");
}

#[test]
fn both_ways_of_answering_agree() {
    let folder = sample();
    let tools = folder.tools();
    for order in ["time", "time_desc", "file"] {
        let by_index = call(&tools, "search", &format!(r#"{{"order":"{order}","limit":70}}"#));
        // Every record of the sample holds a colon.
        let mut by_scan =
            call(&tools, "search", &format!(r#"{{"order":"{order}","limit":70,"terms":[":","-"],"mode":"any"}}"#));
        let held = by_scan.as_object_mut().and_then(|map| map.remove("by_term")).unwrap();
        assert_eq!(held[":"], 62, "{order}");
        assert_eq!(by_index, by_scan, "{order}");
    }
}

#[test]
fn counting_by_field_source_and_period() {
    let folder = sample();
    let tools = folder.tools();
    let counts = call(&tools, "count_by", r#"{"field":"Image","sources":["proc"]}"#);
    assert_eq!(
        counts["groups"][0],
        serde_json::json!({"value":"C:\\Windows\\p0.exe","count":17,
        "first_time":"2024-01-01T00:00:00Z","last_time":"2024-01-01T00:00:48Z","example":{"file":"proc.ndjson","line":1}})
    );
    assert_eq!((&counts["distinct"], &counts["missing"]), (&Value::from(3), &Value::from(0)));
    assert_eq!(call(&tools, "count_by", r#"{"field":"Image"}"#)["missing"], 13);
    assert_eq!(call(&tools, "count_by", r#"{"field":"ips","top":1}"#)["groups"][0]["value"], "1.1.1.1");
    assert_eq!(call(&tools, "count_by", r#"{"field":"$source"}"#)["groups"][0]["value"], "proc");
    assert_eq!(call(&tools, "count_by", r#"{"field":"$minute"}"#)["groups"][0]["count"], 60);
}

#[test]
fn around_a_record_the_nearest_come_first() {
    let folder = sample();
    let tools = folder.tools();
    let answer =
        call(&tools, "around", r#"{"file":"net/conn.log","line":3,"before_seconds":1,"after_seconds":1,"limit":3}"#);
    assert_eq!(answer["total"], 5);
    let places: Vec<String> = answer["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| format!("{}:{}", r["file"].as_str().unwrap(), r["line"]))
        .collect();
    assert_eq!(places, ["proc.ndjson:3", "net/conn.log:3", "proc.ndjson:4"]);
    assert_eq!(
        call(&tools, "around", r#"{"time":"2024-01-01T00:00:05Z","before_seconds":0,"after_seconds":0.5}"#)["total"],
        2
    );
}

#[test]
fn sql_reads_records_and_nothing_else() {
    let folder = sample();
    let catalog = Arc::new(folder.open());
    let tools = EvidenceTools::new(Arc::clone(&catalog), &["proc".into(), "ghost".into()]);
    let rows = |query: &str| tools.call("sql", &serde_json::json!({ "query": query }).to_string());
    let value = |query: &str| serde_json::from_str::<Value>(&rows(query).unwrap()).unwrap()["rows"].clone();
    assert_eq!(
        value("SELECT count(*), min(time), max(line) FROM records"),
        serde_json::json!([[50, "2024-01-01T00:00:00Z", 50]])
    );
    assert_eq!(
        value("SELECT file, line, field(id,'pid') FROM records WHERE raw LIKE '%run 7%'"),
        serde_json::json!([["proc.ndjson", 8, "7"]])
    );
    assert_eq!(value("SELECT DISTINCT source, time_basis FROM records"), serde_json::json!([["proc", "record"]]));
    // Ids of the other sources exist, but are not to be had.
    assert_eq!(
        value(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<13) SELECT count(field(i,'uid')) FROM n"
        ),
        serde_json::json!([[0]])
    );
    for query in [
        "DELETE FROM rec",
        "SELECT * FROM rec",
        "SELECT * FROM main.rec",
        "SELECT * FROM meta",
        "SELECT * FROM block",
        "SELECT sql FROM sqlite_master",
        "SELECT sql FROM sqlite_temp_master",
        "PRAGMA query_only=OFF",
        "ATTACH '/tmp/x' AS y",
        "CREATE TEMP TABLE t(a)",
        "DROP VIEW records",
        "WITH records AS (SELECT * FROM rec) SELECT * FROM records",
        "SELECT * FROM (SELECT * FROM main.rec) AS records",
        "SELECT raw_text(1)",
        "SELECT load_extension('x')",
        "EXPLAIN SELECT * FROM records",
        "EXPLAIN QUERY PLAN SELECT * FROM records",
        "SELECT 1; SELECT 2",
        "VACUUM",
        "nonsense",
        "SELECT * FROM pragma_table_info('rec')",
        "SELECT * FROM temp.sqlite_schema",
        "INSERT INTO records VALUES(1)",
    ] {
        let answer = rows(query);
        assert!(answer.is_err(), "{query}: {answer:?}");
    }
    let cut = rows("SELECT raw FROM records").map(|a| a.contains("\"truncated\":false")).unwrap();
    assert!(cut);
}

#[test]
fn sql_without_end_is_stopped() {
    let folder = sample();
    let tools = folder.tools();
    let begun = std::time::Instant::now();
    let endless = r#"{"query":"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"}"#;
    let error = tools.call("sql", endless).unwrap_err();
    assert!(error.contains("stopped after 5 s"), "{error}");
    assert!(begun.elapsed().as_secs() < 20);
}

#[test]
fn what_is_not_visible_is_in_no_answer() {
    let folder = sample();
    let catalog = Arc::new(folder.open());
    let tools = EvidenceTools::new(catalog, &["net/conn".into()]);
    assert_eq!(call(&tools, "list_sources", "").as_array().unwrap().len(), 1);
    assert_eq!(call(&tools, "search", r#"{"terms":["run"]}"#)["total"], 0);
    assert_eq!(call(&tools, "search", "{}")["total"], 10);
    assert!(tools.call("get_record", r#"{"file":"proc.ndjson","line":1}"#).is_err());
    assert!(tools.call("around", r#"{"file":"proc.ndjson","line":1}"#).is_err());
    assert!(tools.call("describe_source", r#"{"source":"proc"}"#).is_err());
    assert!(tools.call("search", r#"{"sources":["proc"]}"#).is_err());
    assert!(!tools.toolset().about.contains("proc"));
    let none = EvidenceTools::new(Arc::new(folder.open()), &[]);
    assert_eq!(call(&none, "search", "{}")["total"], 0);
    assert_eq!(call(&none, "sql", r#"{"query":"SELECT count(*) FROM records"}"#)["rows"], serde_json::json!([[0]]));
}

#[test]
fn answers_stay_within_their_bound() {
    let big: Vec<String> = (0..400).map(|i| format!(r#"{{"n":{i},"text":"{}"}}"#, "y".repeat(30_000))).collect();
    let folder = Folder::new(&[("big.ndjson", big.join("\n").as_bytes())]);
    let catalog = Arc::new(folder.try_open().unwrap());
    let tools = EvidenceTools::new(catalog, &["big".into()]);
    let answer = call(&tools, "search", r#"{"limit":400,"include_fields":true}"#);
    assert_eq!(answer["total"], 400);
    assert!(answer["left_out"].as_str().unwrap().contains("more records"));
    assert!(answer["records"][0]["raw_cut"].as_bool().unwrap());
    assert_eq!(call(&tools, "sql", r#"{"query":"SELECT raw FROM records"}"#)["truncated"], true);
}

#[test]
fn many_may_call_at_once() {
    let folder = sample();
    let tools = folder.tools();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(call(&tools, "search", r#"{"terms":["run"]}"#)["total"], 50));
        }
    });
}

#[test]
fn a_source_describes_its_fields() {
    let folder = sample();
    let answer = call(&folder.tools(), "describe_source", r#"{"source":"proc"}"#);
    let field = |name: &str| answer["fields"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap().clone();
    assert_eq!(field("ips.*")["distinct"], 51);
    assert_eq!(field("time")["type"], "time");
    assert_eq!(field("pid")["type"], "number");
    assert_eq!(answer["time_fields"][0]["role"], "event");
}
