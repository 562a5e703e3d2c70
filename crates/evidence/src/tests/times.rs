use casebook_table::{blocks, expect_file};

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
pub(super) fn check(lines: &[String], expect: &str) {
    let folder = Folder::of("a.log", &(lines.join("\n") + "\n"));
    let catalog = folder.open();
    assert_eq!(line(&catalog, "a.log", 1), expect, "{:?} {:?}", lines[0], catalog.sources()[0].time_fields);
}

pub(super) fn many(line: impl Fn(usize) -> String) -> Vec<String> {
    (0..20).map(line).collect()
}

#[test]
fn each_log_has_the_time_on_file() {
    blocks(&expect_file!["times.txt"], |_, text| {
        let lines = many(|i| text.replace("{ii}", &format!("{i:02}")).replace("{i}", &i.to_string()));
        let folder = Folder::of("a.log", &(lines.join("\n") + "\n"));
        line(&folder.open(), "a.log", 1)
    });
}

/// The kernel names the full time once.
#[test]
fn one_record_with_a_full_time_gives_the_others_their_year() {
    let mut lines =
        many(|i| format!("Jul 19 04:09:{i:02} combo su(pam_unix)[30128]: session opened for user news by (uid=0)"));
    lines.push("Jul 27 14:41:59 combo kernel: audit(1122475266.4294965305:0): initialized".to_owned());
    let folder = Folder::of("messages", &(lines.join("\n") + "\n"));
    assert_eq!(line(&folder.open(), "messages", 1), "2005-07-19T04:09:00Z Inferred Second timestamp");
}

#[test]
fn time_of_a_shipper_is_ingestion_if_the_event_has_its_own() {
    let lines = many(|i| {
        format!(r#"{{"@timestamp":"2024-01-01T00:10:{i:02}.9Z","event":{{"when":"2024-01-01T00:09:{i:02}Z"}}}}"#)
    });
    check(&lines, "2024-01-01T00:09:00Z Record Second event.when");
    let folder = Folder::of("a.log", &lines.join("\n"));
    let record = folder.open().record("a.log", 1).unwrap();
    assert_eq!(record.ingested.unwrap().to_string(), "2024-01-01T00:10:00.9Z");
}

#[test]
fn records_with_totals_are_still_events() {
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
fn wrong_clock_is_corrected_on_all_sources_of_its_host() {
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
fn correction_leaves_out_a_class_whose_clock_is_right() {
    // The agent writes local time, four hours behind; the records of its own service are in UTC.
    let written = |i: usize| {
        let (hour, channel) = if i.is_multiple_of(4) { (20, "Agent") } else { (16, "Security") };
        format!(
            r#"{{"EventTime":"2024-01-01 {hour}:00:{i:02}","@timestamp":"2024-01-01T20:00:{i:02}.400Z","Channel":"{channel}","n":{i}}}"#
        )
    };
    let folder = Folder::of("a.json", &many(written).join("\n"));
    let catalog = folder.open();
    assert_eq!(line(&catalog, "a.json", 1), "2024-01-01T20:00:00Z Record Second EventTime");
    assert_eq!(line(&catalog, "a.json", 2), "2024-01-01T20:00:01Z ClockCorrected Second EventTime");
    let notes = catalog.sources()[0].notes.join("; ");
    assert!(
        notes.contains("+4:00:00 makes it UTC") && notes.contains("right in records whose Channel is Agent"),
        "{notes}"
    );
}

#[test]
fn clocks_of_two_sensors_are_compared_by_shared_connections() {
    let flow = |second: usize, i: usize| {
        format!(
            r#"{{"event_type":"flow","timestamp":"2024-01-01T10:00:{second:02}.000000+0000","src_ip":"192.0.2.{i}","src_port":{},"dest_ip":"192.0.2.99","dest_port":22,"proto":"TCP"}}"#,
            40_000 + i
        )
    };
    let login = |second: usize, i: usize| {
        format!(
            "2024-01-01T10:00:{second:02}+00:00 web sshd[{i}]: Accepted publickey for eve from 192.0.2.{i} port {} ssh2",
            40_000 + i
        )
    };
    let of = |late: usize| {
        let folder = Folder::new(&[
            ("eve.json", many(|i| flow(i, i)).join("\n").as_bytes()),
            ("auth.log", many(|i| login(i + late, i)).join("\n").as_bytes()),
        ]);
        let catalog = folder.open();
        let notes = |n: usize| {
            catalog.sources()[n].notes.iter().filter(|n| n.contains("connections")).cloned().collect::<Vec<_>>()
        };
        (notes(0), notes(1))
    };
    let (auth, eve) = of(7);
    assert_eq!(
        auth,
        [
            "its times of 20 of 20 connections or logins that eve also has are 7.0 s after the times there: the clocks differ, or one of the two notes another moment"
        ]
    );
    assert!(eve[0].contains("that auth also has are 7.0 s before"), "{eve:?}");
    assert_eq!(of(1), (vec![], vec![]), "a second is a delay");
}

#[test]
fn delay_that_varies_is_not_a_zone() {
    // A few seconds or hours of delay that vary are no zone.
    check(
        &many(|i| {
            format!(r#"{{"EventTime":"2024-01-01 20:00:{i:02}","@timestamp":"2024-01-01T2{}:{i:02}:30Z"}}"#, i % 4)
        }),
        "2024-01-01T20:00:00Z Record Second EventTime",
    );
}

#[test]
fn inferred_year_is_noted() {
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
fn line_without_a_time_takes_that_of_the_line_before() {
    let folder = Folder::of(
        "history.log",
        "2024-01-01 10:00:00 order 7 failed\n  at shop.Order\n  at shop.Main\n\n2024-01-02 10:00:00 order 8 failed\n  at shop.Order\n",
    );
    let catalog = folder.open();
    assert_eq!(line(&catalog, "history.log", 1), "2024-01-01T10:00:00Z Record Second timestamp");
    assert_eq!(line(&catalog, "history.log", 2), "2024-01-01T10:00:00Z Inferred Second ");
    assert_eq!(line(&catalog, "history.log", 6), "2024-01-02T10:00:00Z Inferred Second ");
}

#[test]
fn time_named_utc_is_preferred_if_only_some_records_have_it() {
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

#[test]
fn number_before_a_time_in_a_sentence_is_not_a_cell() {
    let folder = Folder::of("a.log", "2024-01-01 10:00:00 begun\n17,2001-01-01 00:00:00 was then\n");
    let catalog = folder.open();
    assert_eq!(catalog.record("a.log", 2).unwrap().time.unwrap().to_string(), "2024-01-01T10:00:00Z");
}

#[test]
fn time_of_few_records_does_not_replace_the_time_of_others() {
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
fn time_at_another_place_of_a_line_is_not_its_time() {
    check(
        &many(|i| format!("10.0.0.9 {}", if i == 0 { "restored 2022-04-12 05:39:00" } else { "done" })),
        "- Inferred Day ",
    );
}

#[test]
fn time_written_by_a_client_is_not_the_time_of_a_record() {
    let asked = |i: usize| {
        format!(
            "--{i:08x}-A--\n[07/Jun/2023:18:56:{i:02} +0000] Z{i} 203.0.113.9 4000 10.0.0.2 80\n--{i:08x}-B--\n\
             POST / HTTP/1.1\nUtcTime: 2023-06-01 10:00:{i:02}\nUser-Agent: 2023-06-01T10:00:{i:02}Z\n\n\
             --{i:08x}-C--\n2023-06-01T10:00:{i:02}Z\n--{i:08x}-Z--\n"
        )
    };
    check(&many(asked), "2023-06-07T18:56:00Z Record Second timestamp");
    let catalog_of = Folder::of("a.log", &many(asked).join("\n"));
    let times: Vec<String> = catalog_of.open().sources()[0].time_fields.iter().map(|f| f.name.clone()).collect();
    assert_eq!(times, ["timestamp"]);
}
