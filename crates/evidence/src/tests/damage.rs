use std::io::Write;

use super::*;

fn error(folder: &Path) -> String {
    let index = tempfile::tempdir().unwrap();
    Catalog::open(folder, &index.path().join("i.sqlite"), &mut |_| {}).unwrap_err().to_string()
}

#[test]
fn what_is_no_folder_of_evidence_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    assert!(error(&dir.path().join("none")).contains("does not exist"));
    assert!(error(dir.path()).contains("it is empty"));
    std::fs::write(dir.path().join("x.bin"), [0u8, 1, 2, 3].repeat(100)).unwrap();
    std::fs::write(dir.path().join("e.log"), "").unwrap();
    std::fs::write(dir.path().join("c.pcap"), b"\xd4\xc3\xb2\xa1rest").unwrap();
    let text = error(dir.path());
    assert!(
        text.contains("x.bin (binary file)") && text.contains("e.log (empty)") && text.contains("packet capture"),
        "{text}"
    );
    assert!(error(&dir.path().join("e.log")).contains("not a folder"));
}

#[test]
fn files_without_records_are_listed_beside_the_others() {
    let folder =
        Folder::new(&[("a.log", b"x\n"), ("b.7z", b"7z\xbc\xaf\x27\x1crest"), ("sub/c.log", b""), ("d.log", b"\n\n")]);
    let catalog = folder.open();
    let skipped: Vec<String> = catalog.skipped().iter().map(|s| format!("{}: {}", s.file, s.reason)).collect();
    assert_eq!(skipped, ["b.7z: 7z archive: unpack it first, for example with `7z x`", "sub/c.log: empty"]);
    assert_eq!(catalog.sources()[1].blank_lines, 2);
}

#[test]
fn a_line_of_fifty_megabytes_stays_reachable() {
    let mut long = b"{\"a\":\"needle-at-start ".to_vec();
    long.resize(50 << 20, b'x');
    long.extend_from_slice(b"tail\"}\n{\"a\":\"after\"}\n");
    let folder = Folder::new(&[("a.ndjson", &long)]);
    let catalog = folder.try_open().unwrap();
    let source = &catalog.sources()[0];
    assert_eq!((source.records, source.oversize, source.malformed), (2, 1, 0));
    let tools = EvidenceTools::new(Arc::new(catalog), &["a".into()]);
    let answer = call(&tools, "search", r#"{"terms":["needle-at-start"]}"#);
    assert_eq!(answer["records"][0]["raw_cut"], true);
    assert_eq!(answer["records"][0]["raw"].as_str().unwrap().len(), 16 << 10);
    let end = (50 << 20) - 4;
    let part = call(&tools, "get_record", &format!(r#"{{"file":"a.ndjson","line":1,"offset":{end}}}"#));
    assert_eq!(part["raw"], "xxxxtail\"}");
    assert_eq!(call(&tools, "search", r#"{"terms":["after"]}"#)["total"], 1);
}

#[test]
fn a_truncated_gzip_gives_what_comes_before() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    for i in 0..5_000 {
        writeln!(gz, "{{\"n\":{i}}}").unwrap();
    }
    let mut bytes = gz.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let folder = Folder::new(&[("a.gz", &bytes)]);
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert!(source.records > 1_000 && source.notes[0].contains("damaged"), "{:?}", source.notes);
}

#[test]
fn a_truncated_array_keeps_its_last_record_as_malformed() {
    let folder = Folder::of("a.json", "[\n{\"a\":1},\n{\"a\":2},\n{\"a\":3, \"b\":\"cu");
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert_eq!((source.records, source.malformed), (3, 1));
    assert_eq!(source.malformed_examples[0].line, 4);
    let record = catalog.record("a.json", 4).unwrap();
    assert!(record.malformed);
    assert_eq!(record.fields(), [("a".to_owned(), "3".to_owned())]);
}

#[test]
fn bytes_that_are_no_utf8_are_kept() {
    let folder = Folder::new(&[("a.log", b"2024-01-01 10:00:00 caf\xe9 user\n2024-01-01 10:00:01 x\0y\n")]);
    let catalog = folder.open();
    assert_eq!(catalog.raw("a.log", 1).unwrap(), b"2024-01-01 10:00:00 caf\xe9 user");
    assert!(catalog.record("a.log", 1).unwrap().text().contains("caf\u{fffd} user"));
    let tools = folder.tools();
    assert_eq!(call(&tools, "search", r#"{"terms":["caf"]}"#)["total"], 1);
    assert_eq!(call(&tools, "search", r#"{"terms":["caf\ufffd user"]}"#)["total"], 1);
}

#[test]
fn a_file_that_grows_is_read_as_it_was() {
    let folder = Folder::of("a.log", "one\ntwo\n");
    let tools = folder.tools();
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.evidence().join("a.log")).unwrap();
    file.write_all(b"three\n").unwrap();
    assert_eq!(call(&tools, "search", "{}")["total"], 2);
    assert_eq!(call(&tools, "search", r#"{"terms":["two"]}"#)["total"], 1);
    assert_eq!(folder.try_open().unwrap().sources()[0].records, 3, "loading again sees the growth");
}

#[test]
fn a_file_that_changed_is_an_error_that_names_it() {
    let folder = Folder::of("a.log", "one\ntwo\n");
    let tools = folder.tools();
    folder.write("a.log", b"ONE\ntwo\nmore\n");
    let not_searched = || {
        let answer = call(&tools, "search", r#"{"terms":["two"]}"#);
        assert_eq!(answer["total_is_exact"], false);
        answer["not_searched"][0]["why"].as_str().unwrap().to_owned()
    };
    assert!(not_searched().contains("a.log changed since it was loaded"));
    folder.write("a.log", b"o");
    assert!(tools.call("get_record", r#"{"file":"a.log","line":1}"#).unwrap_err().contains("a.log changed"));
    std::fs::remove_file(folder.evidence().join("a.log")).unwrap();
    assert!(not_searched().contains("cannot read a.log"));
}

#[test]
fn the_index_is_used_again_only_for_the_same_evidence() {
    let folder = Folder::of("a.log", "one\ntwo\n");
    let loads = || {
        let mut loads = 0;
        let catalog =
            Catalog::open(&folder.evidence(), &folder.index(), &mut |p| loads += usize::from(p.step == "finishing"))
                .unwrap();
        (loads, catalog.fingerprint().to_owned(), catalog.sources()[0].records)
    };
    let first = loads();
    assert_eq!((first.0, first.2), (1, 2));
    assert_eq!(loads(), (0, first.1.clone(), 2));
    // The same bytes written again are the same evidence, whatever the time of change.
    folder.write("a.log", b"one\ntwo\n");
    assert_eq!(loads().1, first.1);
    folder.write("a.log", b"one\ntwo\nthree\n");
    let grown = loads();
    assert_eq!((grown.0, grown.2), (1, 3));
    assert_ne!(grown.1, first.1);
    std::fs::write(folder.index(), b"no index").unwrap();
    assert_eq!(loads().0, 1, "an invalid index is rebuilt");
}

#[test]
fn an_index_that_cannot_be_written_is_an_error_that_says_where() {
    let folder = Folder::of("a.log", "one\n");
    let blocked = folder.dir.path().join("blocked");
    std::fs::write(&blocked, "a file").unwrap();
    let error = Catalog::open(&folder.evidence(), &blocked.join("i.sqlite"), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("blocked"), "{error}");
    if Path::new("/dev/full").exists() {
        let error = Catalog::open(&folder.evidence(), Path::new("/proc/casebook/i.sqlite"), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("/proc/casebook"), "{error}");
    }
}

#[test]
fn numbers_keys_and_nesting_beyond_reason_are_kept() {
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let lines =
        format!("{{\"n\":1e999,\"k\":\"one\",\"k\":\"two\"}}\n{deep}\n{{\"n\":123456789012345678901234567890}}\n");
    let folder = Folder::of("a.ndjson", &lines);
    let catalog = folder.open();
    assert_eq!(catalog.sources()[0].malformed, 0);
    let tools = folder.tools();
    let answer = call(&tools, "get_record", r#"{"file":"a.ndjson","line":1}"#);
    assert_eq!(answer["fields"]["k"], serde_json::json!(["one", "two"]));
    assert_eq!(answer["fields"]["n"], "1e999");
    assert_eq!(call(&tools, "search", r#"{"where":[{"field":"k","value":"one"}]}"#)["total"], 1);
    assert_eq!(call(&tools, "search", r#"{"where":[{"field":"k","value":"two"}]}"#)["total"], 1);
}

#[test]
fn any_bytes_load_or_are_refused_but_never_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let alphabet: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b":",
        b",",
        b"\n",
        b"\r\n",
        b"a",
        b"1",
        b"=",
        b"<Event>",
        b"</Event>",
        b"audit(",
        b"1652292621.9:1)",
        b"type=X msg=",
        b"#fields\tts",
        b"\t",
        b" ",
        b"Oct 10 13:55:36 ",
        b"2024-01-01T00:00:00Z",
        b"\xff",
        b"\0",
        b"CEF:0|",
        b"|",
        b"\\u12",
        b"&amp;",
        b"'",
    ];
    for round in 0..300 {
        let mut text = Vec::new();
        for _ in 0..(round % 80) + 1 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            text.extend_from_slice(alphabet[usize::try_from(seed % 30).unwrap()]);
        }
        let folder = Folder::new(&[("f", &text)]);
        if let Ok(catalog) = folder.try_open() {
            accounted(&catalog, &folder.evidence());
            let tools = EvidenceTools::new(Arc::new(catalog), &["f".into()]);
            call(&tools, "search", r#"{"terms":["a"],"include_fields":true}"#);
            call(&tools, "describe_source", r#"{"source":"f"}"#);
        }
    }
}
