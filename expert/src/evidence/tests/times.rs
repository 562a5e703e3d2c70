use super::*;

fn line(catalog: &Catalog, file: &str, line: u64) -> String {
    let r = catalog.record(file, line).unwrap();
    format!(
        "{} {:?} {:?} {}",
        r.time.map_or("-".into(), |t| t.to_string()),
        r.time_basis,
        r.precision.unwrap_or(casebook_protocol::Precision::Day),
        r.time_field.unwrap_or_default()
    )
}

/// Checks the first record of a file of these lines.
fn check(lines: &[String], expect: &str) {
    let folder = Folder::of("a.log", &(lines.join("\n") + "\n"));
    let catalog = folder.open();
    assert_eq!(line(&catalog, "a.log", 1), expect, "{:?} {:?}", lines[0], catalog.sources()[0].time_fields);
}

fn many(line: impl Fn(usize) -> String) -> Vec<String> {
    (0..20).map(line).collect()
}

#[test]
fn the_events_own_time_is_found_by_name_and_behaviour() {
    check(
        &many(|i| format!(r#"{{"ts":1588205199.82437,"not_valid_after":1763661055.0,"n":{i}}}"#)),
        "2020-04-30T00:06:39.82437Z Record Microsecond ts",
    );
    check(
        &many(|i| format!(r#"{{"created_at":{},"actor_id":1711431195}}"#, 1_711_431_195_806u64 + i as u64)),
        "2024-03-26T05:33:15.806Z Record Millisecond created_at",
    );
    check(
        &many(|i| {
            format!(r#"{{"eventTime":"2024-01-01T00:00:{i:02}Z","s":{{"creationDate":"2023-12-31T00:00:00Z"}}}}"#)
        }),
        "2024-01-01T00:00:00Z Record Second eventTime",
    );
    // Okta, Kubernetes, Office 365, Suricata, Azure.
    check(
        &many(|i| format!(r#"{{"published":"2024-01-01T00:00:{i:02}.5Z","eventType":"x"}}"#)),
        "2024-01-01T00:00:00.5Z Record Millisecond published",
    );
    check(
        &many(|i| {
            format!(
                r#"{{"requestReceivedTimestamp":"2024-01-01T00:00:{i:02}.000001Z","stageTimestamp":"2024-01-01T00:00:{i:02}.5Z"}}"#
            )
        }),
        "2024-01-01T00:00:00.000001Z Record Microsecond requestReceivedTimestamp",
    );
    check(
        &many(|i| format!(r#"{{"CreationTime":"2024-01-01T00:00:{i:02}","Operation":"x"}}"#)),
        "2024-01-01T00:00:00Z Record Second CreationTime",
    );
    check(
        &many(|i| {
            format!(
                r#"{{"timestamp":"2024-01-01T00:00:{i:02}.123456+0100","flow":{{"start":"2023-12-31T22:00:00.000000+0100"}}}}"#
            )
        }),
        "2023-12-31T23:00:00.123456Z Record Microsecond timestamp",
    );
}

#[test]
fn a_shippers_time_is_ingestion_where_the_event_has_its_own() {
    let lines = many(|i| {
        format!(r#"{{"@timestamp":"2024-01-01T00:10:{i:02}.9Z","event":{{"when":"2024-01-01T00:09:{i:02}Z"}}}}"#)
    });
    check(&lines, "2024-01-01T00:09:00Z Record Second event.when");
    let folder = Folder::of("a.log", &lines.join("\n"));
    let record = folder.open().record("a.log", 1).unwrap();
    assert_eq!(record.ingested.unwrap().to_string(), "2024-01-01T00:10:00.9Z");
    check(
        &many(|i| format!(r#"{{"_time_received":"2024-01-01T00:10:{i:02}Z"}}"#)),
        "2024-01-01T00:10:00Z Ingestion Second _time_received",
    );
    check(
        &many(|i| format!(r#"{{"@timestamp":"2024-01-01T00:10:{i:02}Z"}}"#)),
        "2024-01-01T00:10:00Z Record Second @timestamp",
    );
}

#[test]
fn nothing_begins_after_it_was_received() {
    let line = |start: &str| {
        let start = start.to_owned();
        many(move |i| format!(r#"{{"TimeGenerated":"2024-01-01T10:00:{i:02}Z","Start_Time":"{start}:{i:02}Z"}}"#))
    };
    check(&line("2024-01-01T10:09"), "2024-01-01T10:00:00Z Record Second TimeGenerated");
    check(&line("2024-01-01T09:58"), "2024-01-01T09:58:00Z Record Second Start_Time");
    // Two hours are a zone that is not named.
    check(&line("2024-01-01T12:00"), "2024-01-01T12:00:00Z Record Second Start_Time");
}

#[test]
fn a_capture_that_was_read_later_has_its_times_in_its_flows() {
    check(
        &many(|i| {
            format!(
                r#"{{"timestamp":"2024-01-02T00:00:00Z","src_ip":"10.0.0.1","flow":{{"start":"2024-01-01T00:09:{i:02}.5Z","end":"2024-01-01T00:10:{i:02}.5Z"}}}}"#
            )
        }),
        "2024-01-01T00:09:00.5Z Record Millisecond flow.start",
    );
}

#[test]
fn sums_are_told_from_events() {
    check(
        &many(|_| {
            r#"{"TimeGenerated":"2024-01-01T00:10:00.5Z","LinksEstablished":1,"LinksTerminated":2,"BytesSent":5}"#
                .to_owned()
        }),
        "2024-01-01T00:10:00.5Z Aggregation Millisecond TimeGenerated",
    );
    check(
        &many(|i| format!(r#"{{"time":"2024-01-01T00:{i:02}:00Z","hit_count":1,"error_count":2}}"#)),
        "2024-01-01T00:00:00Z Aggregation Second time",
    );
    // Events of many kinds share times, and some kinds hold a total.
    check(
        &many(|i| match i % 3 {
            0 => r#"{"time":"2024-01-01T00:10:00.5Z","id":1,"SequenceTotal":1,"GroupCount":4}"#.to_owned(),
            _ => format!(r#"{{"time":"2024-01-01T00:10:00.5Z","id":{i},"image":"a.exe"}}"#),
        }),
        "2024-01-01T00:10:00.5Z Record Millisecond time",
    );
}

#[test]
fn the_alert_tells_the_year_where_nothing_else_does() {
    let lines = "Mar  4 05:06:07 host sshd[1]: Failed password for root from 203.0.113.9 port 22 ssh2\n".repeat(5);
    let folder = Folder::of("auth.log", &lines);
    let index = tempfile::tempdir().unwrap();
    let year = |near: Option<&str>| {
        let hint = near.map(|text| Hint { at: text.parse().unwrap(), record: None });
        let catalog = Catalog::open_in(&folder.evidence(), index.path(), hint.as_ref(), &mut |_| {}).unwrap();
        catalog.record("auth.log", 1).unwrap().time.unwrap().to_string()
    };
    assert_eq!(year(Some("2019-03-04T06:00:00Z")), "2019-03-04T05:06:07Z");
    assert_eq!(year(None), "2019-03-04T05:06:07Z", "who names none takes the index as it is");
    assert_eq!(year(Some("2021-01-02T00:00:00Z")), "2021-03-04T05:06:07Z");
}

#[test]
fn a_clock_that_is_off_is_corrected_on_all_sources_of_its_host() {
    let both = |i: usize| {
        format!(
            r#"{{"Hostname":"PC1","TimeCreated":"2024-01-01T01:00:{i:02}.100Z","UtcTime":"2024-01-01 20:00:{i:02}.090","EventID":1}}"#
        )
    };
    let mut sysmon = many(both);
    sysmon[7] = r#"{"Hostname":"PC1","TimeCreated":"2024-01-01T01:00:07.100Z","UtcTime":"2024-01-01 03:00:00.000","EventID":3}"#.to_owned();
    let system =
        many(|i| format!(r#"{{"Hostname":"pc1","TimeCreated":"2024-01-01T01:01:{i:02}.100Z","EventID":7036}}"#));
    let other =
        many(|i| format!(r#"{{"Hostname":"PC2","TimeCreated":"2024-01-01T20:01:{i:02}.100Z","EventID":7036}}"#));
    let folder = Folder::new(&[
        ("a.json", sysmon.join("\n").as_bytes()),
        ("b.json", system.join("\n").as_bytes()),
        ("c.json", other.join("\n").as_bytes()),
    ]);
    let catalog = folder.open();
    assert_eq!(line(&catalog, "a.json", 1), "2024-01-01T20:00:00.09Z Record Millisecond UtcTime");
    assert_eq!(line(&catalog, "a.json", 8), "2024-01-01T20:00:07.1Z ClockCorrected Millisecond TimeCreated");
    assert_eq!(line(&catalog, "b.json", 1), "2024-01-01T20:01:00.1Z ClockCorrected Millisecond TimeCreated");
    assert_eq!(line(&catalog, "c.json", 1), "2024-01-01T20:01:00.1Z Record Millisecond TimeCreated");
    let notes = catalog.sources()[1].notes.join("; ");
    assert!(notes.contains("+19:00:00 makes it UTC"), "{notes}");
    assert!(catalog.sources()[0].notes.iter().any(|n| n.contains("in 1 records")), "{:?}", catalog.sources()[0].notes);
    assert!(catalog.sources()[2].notes.is_empty());
}

#[test]
fn local_time_beside_a_time_with_zone_is_recognised() {
    check(
        &many(|i| {
            format!(
                r#"{{"EventTime":"2024-01-01 19:55:{i:02}","@timestamp":"2024-01-01T23:55:{i:02}.9Z","Hostname":"x"}}"#
            )
        }),
        "2024-01-01T23:55:00Z ClockCorrected Second EventTime",
    );
    // A few seconds or hours of delay that vary are no zone.
    check(
        &many(|i| {
            format!(r#"{{"EventTime":"2024-01-01 20:00:{i:02}","@timestamp":"2024-01-01T2{}:{i:02}:30Z"}}"#, i % 4)
        }),
        "2024-01-01T20:00:00Z Record Second EventTime",
    );
}

#[test]
fn a_year_is_inferred_and_said_to_be() {
    let syslog = "Dec 31 23:59:59 web sshd[1]: a\nJan  1 00:00:01 web sshd[1]: b\n";
    let other = many(|i| format!(r#"{{"time":"2022-01-01T00:00:{i:02}Z"}}"#)).join("\n");
    let folder = Folder::new(&[("auth.log", syslog.as_bytes()), ("x.json", other.as_bytes())]);
    let catalog = folder.open();
    assert_eq!(line(&catalog, "auth.log", 1), "2021-12-31T23:59:59Z Inferred Second timestamp");
    assert_eq!(line(&catalog, "auth.log", 2), "2022-01-01T00:00:01Z Inferred Second timestamp");
    assert!(catalog.sources()[0].notes.iter().any(|n| n.contains("by the other sources")));
}

#[test]
fn two_columns_are_one_time() {
    let folder = Folder::of(
        "t.csv",
        "date,time,timezone,MACB,sourcetype,desc\n01/02/2024,10:00:00,UTC,M...,x,y\n13/02/2024,10:00:01,UTC,M...,x,y\n",
    );
    let catalog = folder.open();
    assert_eq!(line(&catalog, "t.csv", 2), "2024-02-01T10:00:00Z Record Second date+time");
    let folder =
        Folder::of("w3c.log", "#Fields: date time c-ip cs-method cs-uri-stem\n2024-01-02 10:00:00 1.2.3.4 GET /\n");
    assert_eq!(line(&folder.open(), "w3c.log", 2), "2024-01-02T10:00:00Z Record Second date+time");
    let folder = Folder::of("fw.log", "date=2024-01-02 time=10:00:00 devname=fw logid=1 srcip=1.2.3.4 tz=\"+0200\"\n");
    assert_eq!(line(&folder.open(), "fw.log", 1), "2024-01-02T08:00:00Z Record Second date+time");
}

#[test]
fn lines_without_a_time_take_that_of_the_line_before() {
    let folder = Folder::of(
        "history.log",
        "Start-Date: 2024-01-01  10:00:00\nCommandline: apt install x\nEnd-Date: 2024-01-01  10:00:05\n\nStart-Date: 2024-01-02  10:00:00\nCommandline: apt install y\n",
    );
    let catalog = folder.open();
    assert_eq!(line(&catalog, "history.log", 1), "2024-01-01T10:00:00Z Record Second timestamp");
    assert_eq!(line(&catalog, "history.log", 2), "2024-01-01T10:00:00Z Inferred Second ");
    assert_eq!(line(&catalog, "history.log", 6), "2024-01-02T10:00:00Z Inferred Second ");
}

#[test]
fn raw_audit_records_and_access_logs() {
    check(
        &["type=SYSCALL msg=audit(1652292621.986:1): syscall=59".to_owned()],
        "2022-05-11T18:10:21.986Z Record Millisecond audit.time",
    );
    check(
        &["1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1".to_owned()],
        "2000-10-10T20:55:36Z Record Second timestamp",
    );
}

#[test]
fn a_time_named_utc_goes_first_also_where_only_some_records_have_it() {
    let lines = many(|i| {
        let utc = if i % 2 == 0 { format!(r#","UtcTime":"2020-05-02 02:55:{i:02}.111""#) } else { String::new() };
        format!(
            r#"{{"EventTime":"2020-05-01 22:55:{i:02}","@timestamp":"2020-05-02T02:55:{i:02}.5Z","Hostname":"a"{utc}}}"#
        )
    });
    let folder = Folder::of("a.log", &lines.join("\n"));
    let catalog = folder.open();
    assert_eq!(line(&catalog, "a.log", 1), "2020-05-02T02:55:00.111Z Record Millisecond UtcTime");
    assert_eq!(line(&catalog, "a.log", 2), "2020-05-02T02:55:01Z ClockCorrected Second EventTime");
    let notes = catalog.sources()[0].notes.join("; ");
    assert!(notes.contains("+4:00:00 makes it UTC") && !notes.contains("read as UTC"), "{notes}");
}

fn told(file: &str, line: u64, at: &str) -> Hint {
    let at = at.parse().unwrap();
    Hint { at, record: Some(Told { file: file.to_owned(), line, at, zoned: true }) }
}

fn guesses(host: &str) -> String {
    let line = |i| format!("Mar  4 10:06:0{i} {host} sshd[1]: Failed password for root from 203.0.113.9 port 22\n");
    (0..9).map(line).collect()
}

#[test]
fn the_alert_tells_the_zone_where_nothing_else_does() {
    let folder = Folder::of("auth.log", &guesses("web"));
    let index = tempfile::tempdir().unwrap();
    let zoned = |hint: Option<&Hint>| {
        let catalog = Catalog::open_in(&folder.evidence(), index.path(), hint, &mut |_| {}).unwrap();
        (catalog.record("auth.log", 1).unwrap().time.unwrap().to_string(), catalog.sources()[0].notes.join("; "))
    };
    let (time, notes) = zoned(Some(&told("evidence/auth.log", 3, "2024-03-04T04:36:02Z")));
    assert_eq!(time, "2024-03-04T04:36:00Z");
    assert!(notes.contains("-5:30:00 makes it UTC, by the alert's own time"), "{notes}");
    assert_eq!(zoned(None).0, "2024-03-04T04:36:00Z", "as the index was built");
    let made = || {
        let mut files = std::fs::read_dir(index.path()).unwrap().flatten().map(|f| f.path());
        let index = files.find(|p| p.extension().is_some_and(|e| e == "sqlite")).unwrap();
        std::fs::metadata(index).unwrap().modified().unwrap()
    };
    // Another alert of the same host, one whose moment is no zone away, and one that contradicts the first.
    let built = made();
    for (at, line) in [("2024-03-04T04:36:07Z", 8), ("2024-03-04T04:40:11Z", 8), ("2024-03-04T10:06:02Z", 3)] {
        assert_eq!(zoned(Some(&told("auth.log", line, at))).0, "2024-03-04T04:36:00Z");
    }
    assert_eq!(made(), built, "the index was built once");
    let written =
        Folder::of("auth.log", "2024-03-04T10:06:00Z web sshd[1]: Failed password for root from 203.0.113.9\n");
    let hint = told("auth.log", 1, "2024-03-04T08:06:00Z");
    let catalog = Catalog::open_in(&written.evidence(), index.path(), Some(&hint), &mut |_| {}).unwrap();
    let time = catalog.record("auth.log", 1).unwrap().time.unwrap().to_string();
    assert_eq!(time, "2024-03-04T10:06:00Z", "a zone that is written stands");
}

#[test]
fn a_log_of_text_may_state_its_zone_at_its_beginning() {
    let of = |heads: &[&str]| {
        let mut lines: Vec<String> = heads.iter().map(|zone| format!("Start:   2024/03/04 05:06:00 {zone}")).collect();
        lines.extend(many(|i| format!("2024/03/04 05:06:{i:02}.000  17 S0 something was done")));
        let folder = Folder::of("a.log", &(lines.join("\n") + "\n"));
        let catalog = folder.open();
        let time = catalog.record("a.log", 10).unwrap().time.unwrap().to_string();
        (time, catalog.sources()[0].notes.join("; "))
    };
    let (time, notes) = of(&["(UTC-8:00)"]);
    assert_eq!(time, "2024-03-04T13:06:08Z");
    assert!(notes.contains("by what the log states at its beginning"), "{notes}");
    assert_eq!(of(&["(UTC+05:30)"]).0, "2024-03-03T23:36:08Z");
    assert_eq!(of(&["(UTC-8:00)", "(UTC-7:00)"]).0, "2024-03-04T13:06:07Z", "what it states first stands");
    for none in [&["(UTC+99:00)"][..], &["(UTC)", "(UTC-8:00)"]] {
        assert!(of(none).0.starts_with("2024-03-04T05:06:"), "{none:?}");
    }
    let far = many(|i| match i {
        1 => "Start: 2019/03/04 05:06:00 (UTC-8:00)".to_owned(),
        i => format!("2024/03/04 05:06:{i:02}.000  17 S0 something was done"),
    });
    check(&far, "2024-03-04T05:06:00Z Record Millisecond timestamp");
    // What an alert tells goes before what may have been written into the log.
    let mut lines = many(|i| format!("2024/03/04 05:06:{i:02}.000  17 S0 something was done"));
    lines.insert(1, "Start: 2024/03/04 05:06:00 (UTC+14:00)".into());
    let folder = Folder::of("a.log", &(lines.join("\n") + "\n"));
    let of_alert = told("a.log", 5, "2024-03-04T10:06:03Z");
    let index = tempfile::tempdir().unwrap();
    let catalog = Catalog::open_in(&folder.evidence(), index.path(), Some(&of_alert), &mut |_| {}).unwrap();
    assert_eq!(catalog.record("a.log", 5).unwrap().time.unwrap().to_string(), "2024-03-04T10:06:03Z");
    // Also where it tells that the times are right as they are written, and the index had them as stated; a copy of what
    // the record says tells nothing.
    let index = tempfile::tempdir().unwrap();
    let copied = Told { file: "a.log".into(), line: 5, at: "2024-03-04T05:06:03Z".parse().unwrap(), zoned: false };
    let fresh = tempfile::tempdir().unwrap();
    let catalog = Catalog::open_in(
        &folder.evidence(),
        fresh.path(),
        Some(&Hint { at: copied.at, record: Some(copied) }),
        &mut |_| {},
    );
    assert_eq!(catalog.unwrap().record("a.log", 5).unwrap().time.unwrap().to_string(), "2024-03-03T15:06:03Z");
    for (hint, expect) in [
        (None, "2024-03-03T15:06:03Z"),
        (Some(told("a.log", 5, "2024-03-04T05:06:03Z")), "2024-03-04T05:06:03Z"),
        (None, "2024-03-04T05:06:03Z"),
    ] {
        let catalog = Catalog::open_in(&folder.evidence(), index.path(), hint.as_ref(), &mut |_| {}).unwrap();
        assert_eq!(catalog.record("a.log", 5).unwrap().time.unwrap().to_string(), expect, "{hint:?}");
    }
    // Anybody may write a time into a message.
    let said = many(|i| format!("2024/03/04 05:06:{i:02} said: 2024/03/04 05:06:00 (UTC-8:00)"));
    check(&said, "2024-03-04T05:06:00Z Record Second timestamp");
}

#[test]
fn a_time_may_stand_behind_the_first_cells_of_a_line() {
    check(
        &many(|i| format!("2303,27.05.2019,10:09:{i:02}:540,1012301,4,,BMS1,Runtime,it was done")),
        "2019-05-27T10:09:00.54Z Record Millisecond timestamp",
    );
}

#[test]
fn a_number_before_a_time_in_a_sentence_is_no_cell() {
    let folder = Folder::of("a.log", "2024-01-01 10:00:00 begun\n17,2001-01-01 00:00:00 was then\n");
    let catalog = folder.open();
    assert_eq!(catalog.record("a.log", 2).unwrap().time.unwrap().to_string(), "2024-01-01T10:00:00Z");
}

#[test]
fn each_host_keeps_the_zone_that_an_alert_told() {
    let (web, db) = (guesses("web"), guesses("db"));
    let folder = Folder::new(&[("web/auth.log", web.as_bytes()), ("db/auth.log", db.as_bytes())]);
    let index = tempfile::tempdir().unwrap();
    let times = |hint: &Hint| {
        let catalog = Catalog::open_in(&folder.evidence(), index.path(), Some(hint), &mut |_| {}).unwrap();
        ["web/auth.log", "db/auth.log"].map(|file| catalog.record(file, 1).unwrap().time.unwrap().to_string())
    };
    let web = told("web/auth.log", 3, "2024-03-04T04:36:02Z");
    assert_eq!(times(&web), ["2024-03-04T04:36:00Z", "2024-03-04T10:06:00Z"]);
    let both = ["2024-03-04T04:36:00Z", "2024-03-04T15:06:00Z"];
    assert_eq!(times(&told("evidence/db/auth.log", 1, "2024-03-04T15:06:00Z")), both);
    assert_eq!(times(&web), both);
    assert_eq!(times(&told("auth.log", 1, "2024-03-04T12:36:00Z")), both, "of two files of one name neither is meant");
}

#[test]
fn a_rule_that_runs_by_the_hour_tells_no_zone() {
    for at in ["2024-03-04T11:06:00Z", "2024-03-04T10:36:01Z", "2024-03-04T10:21:01Z", "2024-03-05T10:06:01Z"] {
        let folder = Folder::of("auth.log", &guesses("web"));
        let index = tempfile::tempdir().unwrap();
        let hint = told("auth.log", 2, at);
        let catalog = Catalog::open_in(&folder.evidence(), index.path(), Some(&hint), &mut |_| {}).unwrap();
        let time = catalog.record("auth.log", 1).unwrap().time.unwrap().to_string();
        assert_eq!(time, "2024-03-04T10:06:00Z", "{at}");
    }
}

#[test]
fn a_time_that_few_records_have_takes_none_from_the_others() {
    let of_audit = |i: usize| format!("type=X msg=audit(1773136800.5:{i}): a=1");
    let lines = many(|i| {
        let log = if i % 10 == 9 { of_audit(i) } else { format!("Mar 10 10:00:{i:02} a b: c") };
        format!(
            r#"{{"@timestamp":"2026-03-10T10:00:{i:02}.000Z","header":{{"timestamp":"Mar 10 10:00:{i:02}"}},"full_log":"{log}"}}"#
        )
    });
    check(&lines, "2026-03-10T10:00:00Z Record Millisecond @timestamp");
}

#[test]
fn the_lines_of_a_text_share_a_place_for_their_times() {
    check(
        &many(|i| format!("- 1131566461 2005.11.09 dn{i} Nov 9 12:01:01 dn{i} crond[7]: job {i}")),
        "2005-11-09T20:01:01Z Record Second timestamp",
    );
    check(
        &many(|i| format!("10.0.0.9 | https | mara | 2022-04-12 05:39:{i:02},408 | \"GET / HTTP/1.1\"")),
        "2022-04-12T05:39:00.408Z Record Millisecond timestamp",
    );
    check(
        &many(|i| format!("10.0.0.9 {}", if i == 0 { "restored 2022-04-12 05:39:00" } else { "done" })),
        "- Inferred Day ",
    );
}
