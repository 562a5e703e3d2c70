//! Years and zones that an alert tells, or a log of text at its beginning.

use super::times::{check, many};
use super::*;

/// The time of a record, and the notes on the first source, in an index that is opened with this hint.
fn read(folder: &Folder, index: &Path, hint: Option<&Hint>, file: &str, line: u64) -> (String, String) {
    let catalog = Catalog::open_in(&folder.evidence(), index, hint, &mut |_| {}).unwrap();
    let time = catalog.record(file, line).unwrap().time.unwrap().to_string();
    (time, catalog.sources()[0].notes.join("; "))
}

#[test]
fn year_is_that_of_the_alert_without_another_source() {
    let lines = "Mar  4 05:06:07 host sshd[1]: Failed password for root from 203.0.113.9 port 22 ssh2\n".repeat(5);
    let folder = Folder::of("auth.log", &lines);
    let index = tempfile::tempdir().unwrap();
    let year = |near: Option<&str>| {
        let hint = near.map(|text| Hint { at: text.parse().unwrap(), record: None });
        read(&folder, index.path(), hint.as_ref(), "auth.log", 1).0
    };
    assert_eq!(year(Some("2019-03-04T06:00:00Z")), "2019-03-04T05:06:07Z");
    assert_eq!(year(None), "2019-03-04T05:06:07Z", "who names none takes the index as it is");
    assert_eq!(year(Some("2021-01-02T00:00:00Z")), "2021-03-04T05:06:07Z");
}

fn told(file: &str, line: u64, at: &str) -> Hint {
    let at = at.parse().unwrap();
    Hint { at, record: Some(PointedRecord { file: file.to_owned(), line, at, zoned: true }) }
}

fn guesses(host: &str) -> String {
    let line = |i| format!("Mar  4 10:06:0{i} {host} sshd[1]: Failed password for root from 203.0.113.9 port 22\n");
    (0..9).map(line).collect()
}

#[test]
fn zone_is_that_of_the_alert_without_another_source() {
    let folder = Folder::of("auth.log", &guesses("web"));
    let index = tempfile::tempdir().unwrap();
    let zoned = |hint: Option<&Hint>| read(&folder, index.path(), hint, "auth.log", 1);
    let (time, notes) = zoned(Some(&told("evidence/auth.log", 3, "2024-03-04T04:36:02Z")));
    assert_eq!(time, "2024-03-04T04:36:00Z");
    assert!(notes.contains("-5:30:00 makes it UTC, by the alert's own time"), "{notes}");
    assert_eq!(zoned(None).0, "2024-03-04T04:36:00Z", "as the index was built");
    let made = || {
        let mut files = std::fs::read_dir(index.path()).unwrap().flatten().map(|f| f.path());
        let index = files.find(|p| p.extension().is_some_and(|e| e == "sqlite")).unwrap();
        std::fs::metadata(index).unwrap().modified().unwrap()
    };
    // Another alert of the same host, one whose time differs by no zone offset, and one that contradicts the first.
    let built = made();
    for (at, line) in [("2024-03-04T04:36:07Z", 8), ("2024-03-04T04:40:11Z", 8), ("2024-03-04T10:06:02Z", 3)] {
        assert_eq!(zoned(Some(&told("auth.log", line, at))).0, "2024-03-04T04:36:00Z");
    }
    assert_eq!(made(), built, "the index was built once");
    let written =
        Folder::of("auth.log", "2024-03-04T10:06:00Z web sshd[1]: Failed password for root from 203.0.113.9\n");
    let hint = told("auth.log", 1, "2024-03-04T08:06:00Z");
    let (time, _) = read(&written, index.path(), Some(&hint), "auth.log", 1);
    assert_eq!(time, "2024-03-04T10:06:00Z", "a zone in the record is kept");
}

#[test]
fn zone_may_be_stated_at_the_beginning_of_a_log() {
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
    assert!(notes.contains("by what the log states at its start"), "{notes}");
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
    let fifth = |index: &Path, hint: Option<&Hint>| read(&folder, index, hint, "a.log", 5).0;
    let [first, fresh, index] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    assert_eq!(fifth(first.path(), Some(&told("a.log", 5, "2024-03-04T10:06:03Z"))), "2024-03-04T10:06:03Z");
    // Also where it tells that the times are right as they are written, and the index had them as stated; a copy of what
    // the record says tells nothing.
    let copied =
        PointedRecord { file: "a.log".into(), line: 5, at: "2024-03-04T05:06:03Z".parse().unwrap(), zoned: false };
    let copied = Hint { at: copied.at, record: Some(copied) };
    assert_eq!(fifth(fresh.path(), Some(&copied)), "2024-03-03T15:06:03Z");
    let right = told("a.log", 5, "2024-03-04T05:06:03Z");
    assert_eq!(fifth(index.path(), None), "2024-03-03T15:06:03Z");
    assert_eq!(fifth(index.path(), Some(&right)), "2024-03-04T05:06:03Z");
    assert_eq!(fifth(index.path(), None), "2024-03-04T05:06:03Z");
    // Anybody may write a time into a message.
    let said = many(|i| format!("2024/03/04 05:06:{i:02} said: 2024/03/04 05:06:00 (UTC-8:00)"));
    check(&said, "2024-03-04T05:06:00Z Record Second timestamp");
}

#[test]
fn each_host_keeps_the_zone_of_its_alert() {
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
fn alert_of_a_rule_that_runs_by_the_hour_tells_no_zone() {
    for at in ["2024-03-04T11:06:00Z", "2024-03-04T10:36:01Z", "2024-03-04T10:21:01Z", "2024-03-05T10:06:01Z"] {
        let (folder, index) = (Folder::of("auth.log", &guesses("web")), tempfile::tempdir().unwrap());
        let (time, _) = read(&folder, index.path(), Some(&told("auth.log", 2, at)), "auth.log", 1);
        assert_eq!(time, "2024-03-04T10:06:00Z", "{at}");
    }
}
