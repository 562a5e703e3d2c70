use casebook_table::{expect_file, lines};

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

#[test]
fn each_call_is_answered_as_on_file() {
    let folder = sample();
    let tools = folder.tools();
    lines(&expect_file!["calls.txt"], |input| {
        let (tool, arguments) = input.split_once(' ').unwrap();
        match tools.call(tool, arguments) {
            Ok(_) => call(&tools, tool, arguments)["total"].to_string(),
            Err(why) => why.replace('\n', " "),
        }
    });
}

#[test]
fn schemas_are_json_and_name_the_arguments() {
    let folder = sample();
    let toolset = folder.tools().toolset();
    assert_eq!(toolset.tools.len(), 11);
    for tool in toolset.tools {
        let schema: Value = serde_json::from_str(&tool.input_schema).unwrap();
        assert!(schema["properties"].is_object() && tool.repeatable && tool.description.len() > 70, "{}", tool.name);
        let why = folder.tools().call(&tool.name, r#"{"nosuch":1}"#).unwrap_err();
        assert!(why.contains("unknown argument `nosuch`"), "{why}");
    }
}

#[test]
fn chosen_fields_alone_are_shown_and_described() {
    let folder = sample();
    let tools = folder.tools();
    let found = call(&tools, "search", r#"{"sources":["proc"],"limit":1,"fields":["pid","ips"]}"#);
    let fields = found["records"][0]["fields"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["ips.0", "ips.1", "pid"]);
    let names = |arguments: &str| -> Vec<String> {
        let described = call(&tools, "describe_source", arguments);
        described["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap().to_owned()).collect()
    };
    // What names who, what and where comes first, then what most records have.
    assert_eq!(names(r#"{"source":"proc"}"#)[..2], ["Image", "ips.*"]);
    assert_eq!(names(r#"{"source":"proc","prefix":"p"}"#), ["pid", "ppid"]);
    assert_eq!(names(r#"{"source":"proc","fields":["cmdline"]}"#), ["cmdline"]);
    let described = call(&tools, "describe_source", r#"{"source":"proc"}"#);
    assert!(described["fields"].as_array().unwrap().iter().all(|field| field["top"].as_array().unwrap().len() <= 3));
}

#[test]
fn search_is_paged_and_names_its_window() {
    let folder = sample();
    let tools = folder.tools();
    let page = call(&tools, "search", r#"{"order":"time_desc","limit":2,"offset":1,"terms":["run"]}"#);
    assert_eq!(page["records"][0]["line"], 49);
    assert_eq!(page["returned"], 2);
    let window = call(&tools, "search", r#"{"from":"2024-01-01T00:00:10Z","limit":0}"#);
    assert_eq!(window["untimed_not_searched"], 3);
    assert_eq!(window["window"]["from"], "2024-01-01T00:00:10Z");
    assert_eq!(window["searched"], serde_json::json!(["net/conn", "policy", "proc"]));
}

#[test]
fn each_term_is_counted_and_nearest_records_come_first() {
    let folder = sample();
    let tools = folder.tools();
    let found = call(&tools, "search", r#"{"terms":["p0.exe","P1.EXE","nowhere"],"mode":"any","limit":0}"#);
    assert_eq!(found["by_term"], serde_json::json!({"p0.exe": 17, "P1.EXE": 17}));
    assert_eq!(found["total"], 34);
    let near = call(&tools, "search", r#"{"terms":["run"],"near":"2024-01-01T00:00:20Z","limit":3}"#);
    let mut lines: Vec<u64> = near["records"].as_array().unwrap().iter().map(|r| r["line"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [20, 21, 22]);
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
        "first_time":"2024-01-01T00:00:00Z","last_time":"2024-01-01T00:00:48Z","example":{"source":"proc","file":"proc.ndjson","line":1}})
    );
    assert_eq!((&counts["distinct"], &counts["missing"]), (&Value::from(3), &Value::from(0)));
    assert_eq!(call(&tools, "count_by", r#"{"field":"Image"}"#)["missing"], 13);
    assert_eq!(call(&tools, "count_by", r#"{"field":"ips","top":1}"#)["groups"][0]["value"], "1.1.1.1");
    assert_eq!(call(&tools, "count_by", r#"{"field":"$source"}"#)["groups"][0]["value"], "proc");
    assert_eq!(call(&tools, "count_by", r#"{"field":"$minute"}"#)["groups"][0]["count"], 60);
}

#[test]
fn nearest_records_around_a_record_come_first() {
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
}

#[test]
fn sql_reads_the_records_of_its_own_sources() {
    let folder = sample();
    let catalog = Arc::new(folder.open());
    let tools = EvidenceTools::new(Arc::clone(&catalog), &["proc".into(), "ghost".into()]);
    let rows = |query: &str| tools.call("sql", &serde_json::json!({ "query": query }).to_string());
    let value = |query: &str| serde_json::from_str::<Value>(&rows(query).unwrap()).unwrap()["rows"].clone();
    assert_eq!(
        value("SELECT count(*), min(time), max(line) FROM records"),
        serde_json::json!([{"count(*)": 50, "min(time)": "2024-01-01T00:00:00Z", "max(line)": 50}])
    );
    assert_eq!(
        value("SELECT file, line, field(id,'pid') AS pid FROM records WHERE raw LIKE '%run 7%'"),
        serde_json::json!([{"file": "proc.ndjson", "line": 8, "pid": "7", "of_record": true, "source": "proc",
            "time": "2024-01-01T00:00:07Z", "time_basis": "record", "time_field": "time", "precision": "second"}])
    );
    assert_eq!(
        value("SELECT DISTINCT source, time_basis FROM records"),
        serde_json::json!([{"source": "proc", "time_basis": "record"}])
    );
    // Ids of the other sources exist, but are not to be had.
    assert_eq!(
        value(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<13) SELECT count(field(i,'pid')) AS n FROM n"
        ),
        serde_json::json!([{"n": 0}])
    );
    let joined = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<63) \
        SELECT count(*) AS n, min(r.id) AS first FROM n JOIN records r ON r.id = n.i";
    assert_eq!(value(joined), serde_json::json!([{"n": 50, "first": 14}]));
    let cut = rows("SELECT raw FROM records").map(|a| a.contains("\"truncated\":false")).unwrap();
    assert!(cut);
}

/// Blocks whose times overlap, go back and are missing, so that the table must merge them.
#[test]
fn sql_gives_the_same_rows_by_blocks_as_by_sorting() {
    let line = |n: u64| match n % 5 {
        4 => format!("{{\"n\":{n}}}"),
        _ => format!("{{\"time\":\"2024-01-01T{:02}:{:02}:{:02}Z\",\"n\":{n}}}", n * 7919 % 24, n % 60, n * 31 % 60),
    };
    let log = |from: u64| (from..from + 1_500).map(line).collect::<Vec<_>>().join("\n");
    let folder = Folder::new(&[("a.ndjson", log(0).as_bytes()), ("b.ndjson", log(9_000).as_bytes())]);
    let tools = folder.tools();
    let rows = |query: &str| {
        let answer = call(&tools, "sql", &serde_json::json!({"query": query, "limit": 5000}).to_string());
        answer["rows"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let check = |by_blocks: &str, sorted: &str, least: usize| {
        let found = rows(by_blocks);
        assert!(found.len() >= least, "{by_blocks}: {} rows", found.len());
        assert_eq!(found, rows(sorted), "{by_blocks}");
    };
    let all = "(SELECT id, source || '' AS source, time_ns + 0 AS t FROM records)";
    check("SELECT id FROM records", &format!("SELECT id FROM {all} ORDER BY id + 0"), 3_000);
    check("SELECT id FROM records ORDER BY time_ns, id", &format!("SELECT id FROM {all} ORDER BY t, id"), 3_000);
    check(
        "SELECT id FROM records ORDER BY time_ns DESC, id DESC",
        &format!("SELECT id FROM {all} ORDER BY t DESC, id DESC"),
        3_000,
    );
    let (from, to) = ("1704088800000000000", "1704103200000000000");
    check(
        &format!("SELECT id FROM records WHERE time_ns >= {from} AND time_ns < {to} ORDER BY time_ns, id"),
        &format!("SELECT id FROM {all} WHERE t >= {from} AND t < {to} ORDER BY t, id"),
        100,
    );
    check(
        "SELECT id FROM records WHERE source = 'b' AND id > 1600 AND id <= 2200",
        &format!("SELECT id FROM {all} WHERE source = 'b' AND id + 0 > 1600 AND id + 0 <= 2200 ORDER BY id"),
        600,
    );
    check("SELECT id FROM records WHERE id = 777", &format!("SELECT id FROM {all} WHERE id + 0 = 777"), 1);
    check(
        "SELECT id FROM records WHERE source = 'B' COLLATE NOCASE LIMIT 5",
        &format!("SELECT id FROM {all} WHERE lower(source) = 'b' ORDER BY id LIMIT 5"),
        5,
    );
    assert_eq!(rows("SELECT id FROM records WHERE time_ns = 'x' OR id = 'y'"), Vec::<i64>::new());
}

#[test]
fn answer_from_memory_is_not_given_for_a_file_that_changed() {
    let folder = sample();
    let tools = folder.tools();
    let found = || call(&tools, "search", r#"{"terms":["run"],"sources":["proc"]}"#);
    assert_eq!(found(), found());
    std::fs::write(folder.evidence().join("proc.ndjson"), "{}").unwrap();
    let after = found();
    assert_eq!(after["total_is_exact"], false);
    assert!(after["not_searched"][0]["why"].as_str().unwrap().contains("proc.ndjson"), "{after}");
}

#[test]
fn row_of_sql_is_marked_only_if_all_of_it_is_of_its_record() {
    let folder = sample();
    let tools = folder.tools();
    let check = |columns: &str, marked: bool| {
        let query = format!("SELECT {columns} FROM records WHERE raw LIKE '%run 7%'");
        let row = call(&tools, "sql", &serde_json::json!({ "query": query }).to_string())["rows"][0].clone();
        assert_eq!(row.get("of_record").is_some(), marked, "{columns}: {row}");
    };
    check("file, line", true);
    check("*", true);
    check("file, line, nth, field(id,'pid') AS other", true);
    check("file, line, field(id,'cmdline'), time_basis", true);
    check("line, raw", false);
    check("file, line, 'evil.exe' AS Image", false);
    check("file, line, count(*) + 700 AS n", false);
    check("file, 9 AS line, raw", false);
    check("file, line, 'run' AS cmdline", false);
    check("file, line, '2024-01-01T00:00:09Z' AS time", false);
    check("'net/conn.log' AS file, line, field(id,'pid')", false);
    let twice = call(&tools, "sql", r#"{"query":"SELECT line, line, line FROM records WHERE line = 50"}"#);
    assert_eq!(twice["rows"][0], serde_json::json!({"line": 50, "line_2": 50, "line_3": 50}));
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
fn hidden_source_is_in_no_answer() {
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
    assert_eq!(
        call(&none, "sql", r#"{"query":"SELECT count(*) FROM records"}"#)["rows"],
        serde_json::json!([{"count(*)": 0}])
    );
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
fn busy_source_leaves_room_for_the_others() {
    let busy: String = (0..40).map(|n| format!("2026-03-01T10:00:{n:02}Z mara {n}\n")).collect();
    let folder = Folder::new(&[("a.log", busy.as_bytes()), ("b.log", b"2026-03-01T11:00:00Z mara\n")]);
    let of = |arguments: &str| {
        let found = call(&folder.tools(), "search", arguments);
        let files: Vec<String> =
            found["records"].as_array().unwrap().iter().map(|r| r["file"].as_str().unwrap().to_owned()).collect();
        (files, found["by_source"].clone())
    };
    assert_eq!(of(r#"{"terms":["mara"],"limit":3}"#), (vec!["a.log".to_owned(); 3], serde_json::Value::Null));
    let (files, counts) = of(r#"{"terms":["mara"],"limit":3,"each_source":2}"#);
    assert_eq!(files, ["a.log", "a.log", "b.log"]);
    assert_eq!((&counts["a"], &counts["b"]), (&40.into(), &1.into()));
}

#[test]
fn source_describes_its_fields() {
    let folder = sample();
    let answer = call(&folder.tools(), "describe_source", r#"{"source":"proc"}"#);
    let field = |name: &str| answer["fields"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap().clone();
    assert_eq!(field("ips.*")["distinct"], 51);
    assert_eq!(field("time")["type"], "time");
    assert_eq!(field("pid")["type"], "number");
    assert_eq!(answer["time_fields"][0]["role"], "event");
}

#[test]
fn processes_above_and_below_are_related() {
    let start = |line: u32, pid: u32, ppid: u32, command: &str| {
        format!(
            "{{\"time\":\"2026-03-01T10:00:{line:02}Z\",\"event\":\"process_start\",\"host\":\"web1\",\"pid\":{pid},\"ppid\":{ppid},\
             \"user\":\"mara\",\"exe\":\"/usr/bin/x\",\"command_line\":\"{command}\"}}\n"
        )
    };
    let log = [
        start(1, 10, 1, "sshd"),
        start(2, 11, 10, "bash"),
        start(3, 12, 11, "make all"),
        start(4, 13, 12, "cc a.c"),
        start(5, 14, 1, "cron"),
    ];
    let folder = Folder::of("proc.ndjson", &log.concat());
    let tools = folder.tools();
    let found = call(&tools, "related", r#"{"file":"proc.ndjson","line":3}"#);
    let ties: Vec<(u64, &str)> = found["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["line"].as_u64().unwrap(), r["tie"].as_str().unwrap()))
        .collect();
    assert_eq!(ties, [(3, "this"), (2, "above"), (1, "above"), (4, "below")]);
    assert!(tools.call("related", r#"{"file":"proc.ndjson","line":9}"#).is_err());
}

#[test]
fn what_is_normal_for_an_account_is_told_from_what_is_new() {
    let sign_in = |day: u32, hour: u32, from: &str| {
        format!(
            "{{\"time\":\"2026-03-{day:02}T{hour:02}:00:00Z\",\"user\":\"svc\",\"src_ip\":\"{from}\",\"action\":\"login\",\
             \"outcome\":\"success\"}}\n"
        )
    };
    let mut log: String = (1..=20).map(|day| sign_in(day, 9, "192.0.2.7")).collect();
    log += &sign_in(21, 3, "198.51.100.9");
    log += "{\"time\":\"2026-03-21T04:00:00Z\",\"user\":\"mara\",\"src_ip\":\"192.0.2.8\",\"message\":\"svc svc\"}\n";
    let folder = Folder::of("auth.ndjson", &log);
    let found = call(&folder.tools(), "baseline", r#"{"entity":"svc","before":"2026-03-21T00:00:00Z"}"#);
    assert_eq!(
        (&found["total"], &found["as"]["user"]),
        (&serde_json::json!(21), &serde_json::json!(21)),
        "a message that has the word is not of the account"
    );
    assert_eq!(found["before"]["by"]["source_ip"]["values"][0]["count"], 20);
    assert_eq!(found["before"]["hours_utc"], serde_json::json!({"09": 20}));
    assert_eq!(found["from_then_on"]["count"], 1);
    assert_eq!(found["new_from_then_on"]["source_ip"], serde_json::json!(["198.51.100.9"]));
}
