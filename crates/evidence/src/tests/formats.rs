use casebook_table::{blocks, expect_file};

use super::*;

#[test]
fn each_log_gives_the_records_and_fields_on_file() {
    blocks(&expect_file!["formats.txt"], |_, content| {
        let folder = Folder::of("a.log", &format!("{content}\n"));
        let catalog = folder.open();
        let s = &catalog.sources()[0];
        let head = format!("{:?}, {}, {} records, {} malformed\n", s.format, s.domain, s.records, s.malformed);
        let answer = call(&folder.tools(), "search", r#"{"order":"file","include_fields":true,"limit":1}"#);
        let fields = answer["records"][0]["fields"].as_object().unwrap();
        head + &fields.iter().map(|(name, value)| format!("{name} = {value}\n")).collect::<String>()
    });
}

#[test]
fn line_ends_marks_and_blank_lines() {
    let folder = Folder::of("a.log", "\u{feff}{\"a\":1}\r\n\r\n{\"a\":2}\r\n");
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert_eq!((source.format, source.records, source.malformed), (Format::Ndjson, 2, 0));
    let folder = Folder::of("a.json", "\u{feff}{\"a\":1}\r\n\r\n{\"a\":2}");
    let catalog = folder.open();
    assert_eq!(catalog.raw("a.json", 1).unwrap(), b"{\"a\":1}");
    assert_eq!(catalog.raw("a.json", 3).unwrap(), b"{\"a\":2}");
    assert!(catalog.record("a.json", 2).unwrap_err().to_string().contains("blank"));
    assert!(catalog.record("a.json", 9).unwrap_err().to_string().contains("lines 1 to 3"));
    assert!(catalog.record("b.json", 1).unwrap_err().to_string().contains("there are a.json"));
    assert_eq!(catalog.record("evidence/a.json", 1).unwrap().line, 1);
}

#[test]
fn records_on_one_line_are_told_apart() {
    let folder = Folder::of("a.json", r#"[{"a":1},{"a":2},{"a":3}]"#);
    let catalog = folder.open();
    assert_eq!(catalog.record("a.json", 1).unwrap().text(), r#"{"a":1}"#);
    assert_eq!(catalog.record("a.json", 3).unwrap().text(), r#"{"a":3}"#);
    assert!(catalog.record("a.json", 4).is_err());
    let tools = folder.tools();
    let answer = call(&tools, "search", r#"{"where":[{"field":"a","value":2}]}"#);
    assert_eq!(answer["records"][0]["line"], 2);
    assert_eq!(answer["records"][0].get("nth"), None);
}

#[test]
fn compressed_and_utf16_files_are_read_as_text() {
    use std::io::Write;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(b"{\"a\":\"one\"}\n{\"a\":\"two\"}\n").unwrap();
    let gz = gz.finish().unwrap();
    let utf16: Vec<u8> = "\u{feff}first 😀\r\nsecond\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let folder = Folder::new(&[("a.ndjson.gz", &gz), ("b.txt", &utf16)]);
    let catalog = folder.open();
    assert_eq!(catalog.sources()[0].id, "a");
    assert_eq!(catalog.raw("a.ndjson.gz", 2).unwrap(), b"{\"a\":\"two\"}");
    assert_eq!(catalog.record("b.txt", 1).unwrap().text(), "first 😀");
    assert_eq!(catalog.record("b.txt", 2).unwrap().text(), "second");
    catalog.verify().unwrap();
}

/// What a record shows under a name is found by that name, also where the name stands nowhere in the bytes.
#[test]
fn each_field_that_is_shown_is_found_by_its_name_and_value() {
    let rendered = r"An account failed to log on.\r\n\r\nSubject:\r\n\tAccount Name:\t\tPC1$\r\n\r\nAccount For Which Logon Failed:\r\n\tAccount Name:\t\tmara\r\n\r\nNetwork Information:\r\n\tSource Network Address:\t203.0.113.9\r\n";
    let plaso = r"[4720 / 0x1270] Provider identifier: {0} Source Name: Microsoft-Windows-Security-Auditing Strings: ['helper'  'PC1'  'S-1-5-21-1'  'S-1-5-18'  'PC1$'  'WORK'  '0x3e7'] Hostname: PC1 Record Number: 7 Event Level: 0";
    let lines = [
        format!(r#"{{"EventID":4625,"message":"{rendered}"}}"#),
        format!(r#"{{"msg":"{plaso}"}}"#),
        r#"{"SyslogMessage":"Accepted password for mara from 203.0.113.9 port 5022 ssh2"}"#.to_owned(),
        r#"{"message":"mara : TTY=pts/0 ; PWD=/home ; USER=root ; COMMAND=/bin/bash"}"#.to_owned(),
    ];
    for (line, names) in lines.iter().zip([
        &["message.TargetUserName", "message.IpAddress"][..],
        &["msg.SubjectUserName", "msg.EventID"],
        &["SyslogMessage.user", "SyslogMessage.src_ip"],
        &["message.target_user", "message.command"],
    ]) {
        let folder = Folder::of("a.json", &format!("{line}\n").repeat(3));
        let shown: Vec<(String, String)> = folder.open().record("a.json", 1).unwrap().fields();
        let tools = folder.tools();
        for name in names {
            let value = &shown.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name} of {shown:?}")).1;
            let condition = serde_json::json!({"where": [{"field": name, "op": "eq", "value": value}], "limit": 1});
            assert_eq!(call(&tools, "search", &condition.to_string())["total"], 3, "{name} {value}");
            let counted = serde_json::json!({"field": name});
            assert_eq!(call(&tools, "count_by", &counted.to_string())["distinct"], 1, "{name}");
        }
    }
}

#[test]
fn the_firewall_of_windows_writes_the_clock_of_its_host() {
    let log = |format: &str| {
        format!(
            "#Version: 1.5\n#Software: Microsoft Windows Firewall\n{format}#Fields: date time action protocol src-ip dst-ip src-port dst-port\n\
             2024-01-02 10:00:00 DROP TCP 10.0.0.9 10.0.0.1 50000 445\n"
        )
    };
    let zoneless = |text: &str| {
        let folder = Folder::of("pfirewall.log", text);
        let catalog = folder.open();
        let source = &catalog.sources()[0];
        assert_eq!((source.domain.as_str(), source.sensor.as_str()), ("network", "windows-firewall"));
        source.notes.iter().any(|note| note.contains("have no zone"))
    };
    assert!(zoneless(&log("#Time Format: Local\n")));
    assert!(!zoneless(&log("")), "the format itself is in UTC");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_with_what_to_do() {
    let folder = Folder::new(&[("events.parquet", b"PAR1\x15\x04"), ("a.log", b"2026-01-02T03:04:05Z started\n")]);
    let skipped = folder.open().skipped().to_vec();
    let reason = "Parquet: use a Casebook that was built with `--features parquet`, or export it as JSON, for example with duckdb";
    assert_eq!(skipped, [Skipped::new("events.parquet", reason)]);
}
