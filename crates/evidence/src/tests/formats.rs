use super::*;

/// The fields of the first record, and of its source `format domain records malformed`.
fn check(content: &str, source: &str, fields: &[(&str, &str)]) {
    let folder = Folder::of("a.log", content);
    let catalog = folder.open();
    let s = &catalog.sources()[0];
    let got = format!("{:?} {} {} {}", s.format, s.domain, s.records, s.malformed);
    assert_eq!(got, source, "{content}");
    let tools = folder.tools();
    let answer = call(&tools, "search", r#"{"order":"file","include_fields":true,"limit":1}"#);
    for (name, value) in fields {
        assert_eq!(answer["records"][0]["fields"][name], *value, "{name} of {content}");
    }
}

#[test]
fn each_format_gives_records_with_fields() {
    check("{\"time\":\"2024-01-01T00:00:00Z\",\"a\":{\"b\":[1]}}\n", "Ndjson application 1 0", &[("a.b.0", "1")]);
    check(
        "{\"Records\":[{\"eventSource\":\"s3\",\"eventName\":\"x\",\"awsRegion\":\"y\",\"eventTime\":\"2024-01-01T00:00:00Z\"},{\"eventSource\":\"s4\",\"eventName\":\"x\",\"awsRegion\":\"y\"}]}",
        "JsonArray cloud 2 0",
        &[("eventSource", "s3")],
    );
    check("[\n  {\n    \"x\": 1\n  },\n  {\n    \"x\": 2\n  }\n]\n", "JsonArray application 2 0", &[("x", "1")]);
    check("{\n \"x\": 1\n}\n{\n \"x\": 2\n}\n", "JsonObjects application 2 0", &[("x", "1")]);
    check(
        "time,user,note\n2024-01-01T00:00:00Z,bob,\"two\nlines\"\n2024-01-01T00:00:01Z,eve,x\n",
        "Csv application 2 0",
        &[("user", "bob"), ("note", "two\nlines")],
    );
    check(
        "#separator \\x09\n#fields\tts\tuid\tid.orig_h\tid.resp_h\n#types\ttime\tstring\taddr\taddr\n1588205199.824370\tC1\t10.0.0.1\t-\n#close\tx\n",
        "ZeekTsv network 1 0",
        &[("id.orig_h", "10.0.0.1")],
    );
    check(
        "Jan  2 10:00:00 web sshd[1]: Accepted publickey for bob from 1.2.3.4 port 22 ssh2\n",
        "Syslog identity 1 0",
        &[("user", "bob"), ("src_ip", "1.2.3.4"), ("program", "sshd")],
    );
    check(
        "type=EXECVE msg=audit(1652292621.986:84138): argc=1 a0=\"ls\"\n",
        "Auditd endpoint 1 0",
        &[("cmdline", "ls")],
    );
    check(
        "1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.0\" 200 12\n",
        "AccessLog application 1 0",
        &[("path", "/x")],
    );
    check("CEF:0|V|P|1|1|n|3|src=1.2.3.4 dst=1.2.3.5 spt=1 msg=a b\n", "Cef network 1 0", &[("msg", "a b")]);
    check(
        "date=2024-01-01 time=10:00:00 devname=fw logid=1 type=traffic srcip=1.2.3.4\n",
        "KeyValue network 1 0",
        &[("srcip", "1.2.3.4")],
    );
    check(
        "<Events>\n<Event><System><Provider Name=\"Microsoft-Windows-Sysmon\"/><EventID>1</EventID></System>\n<EventData><Data Name=\"Image\">C:\\a.exe</Data></EventData></Event>\n</Events>\n",
        "XmlEvents endpoint 1 0",
        &[("EventData.Image", "C:\\a.exe"), ("System.EventID", "1")],
    );
    check("just text\nand more\n", "Plain application 2 0", &[("message", "just text")]);
}

#[test]
fn exports_of_known_products() {
    check(
        "Level,Date and Time,Source,Event ID,Task Category\nInformation,3/13/2024 10:00:00 AM,Microsoft-Windows-Security-Auditing,4624,Logon,\"An account was logged on.\n\nSubject:\n\tAccount Name:\t\tPC1$\n\nNew Logon:\n\tAccount Name:\t\tbob\n\tLogon ID:\t\t0x1\n\tLogon GUID:\t\t{0}\n\"\n",
        "Csv identity 1 0",
        &[("Message.TargetUserName", "bob"), ("Event ID", "4624")],
    );
    check(
        "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start end action log-status\n2 123 eni-1 10.0.0.1 10.0.0.2 11 22 6 1 40 1709281000 1709281060 ACCEPT OK\n",
        "Csv network 1 0",
        &[("srcaddr", "10.0.0.1")],
    );
    check(
        "Mar  1 10:00:00 fw01 : %ASA-6-302013: Built outbound TCP connection 1 for outside:1.2.3.4/443\n",
        "Syslog network 1 0",
        &[("program", "%ASA-6-302013"), ("host", "fw01")],
    );
    check(
        "{\"__REALTIME_TIMESTAMP\":\"1709287200000000\",\"SYSLOG_IDENTIFIER\":\"sshd\",\"MESSAGE\":\"Failed password for root from 1.2.3.4 port 1 ssh2\"}\n",
        "Ndjson identity 1 0",
        &[("SYSLOG_IDENTIFIER", "sshd")],
    );
    check(
        "{\"hits\":{\"hits\":[{\"_source\":{\"@timestamp\":\"2024-03-01T10:00:00Z\",\"event\":{\"created\":\"2024-03-01T10:00:01Z\"},\"process\":{\"pid\":1,\"executable\":\"/bin/sh\",\"args\":[\"sh\"]}}},{\"_source\":{\"@timestamp\":\"2024-03-01T10:00:00Z\",\"process\":{\"pid\":1}}}]}}",
        "JsonArray endpoint 2 0",
        &[("_source.process.pid", "1")],
    );
}

#[test]
fn lines_of_other_formats_in_between_are_kept_and_counted() {
    check(
        "{\"a\":1}\n{\"a\":2}\nOct 10 13:55:36 web sshd[1]: odd\n{\"a\":3}\n",
        "Ndjson application 4 1",
        &[("a", "1")],
    );
    check("a,b,c\n1,2,3\n1,2\n1,2,3\n4,5,6\n7,8,9\n", "Csv application 5 1", &[("a", "1")]);
}

#[test]
fn line_ends_marks_and_blank_lines() {
    check("\u{feff}{\"a\":1}\r\n\r\n{\"a\":2}\r\n", "Ndjson application 2 0", &[("a", "1")]);
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
    assert_eq!(catalog.record_nth("a.json", 1, 3).unwrap().text(), r#"{"a":3}"#);
    assert!(catalog.record_nth("a.json", 1, 4).is_err());
    let tools = folder.tools();
    let answer = call(&tools, "search", r#"{"where":[{"field":"a","value":2}]}"#);
    assert_eq!(answer["records"][0]["nth"], 2);
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
        source.notes.iter().any(|note| note.contains("say no zone"))
    };
    assert!(zoneless(&log("#Time Format: Local\n")));
    assert!(!zoneless(&log("")), "the format itself is in UTC");
}
