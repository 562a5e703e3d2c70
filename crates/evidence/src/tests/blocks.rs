//! Blocks of one file are read by several threads at once. What depends on the records before must not show it.

use super::*;

const LINES: u64 = 6_000;

/// A log without years that passes new year, in which each seventh line has no time.
fn syslog() -> String {
    let line = |n: u64| {
        let (month, day) = if n < LINES / 2 { ("Dec", 31) } else { ("Jan", 1) };
        let second = n % (LINES / 2);
        let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        if n % 7 == 6 {
            format!("  continued {n}\n")
        } else {
            format!("{month} {day:2} {clock} host app[1]: line {n}\n")
        }
    };
    (0..LINES).map(line).collect()
}

fn json() -> String {
    let line = |n: u64| {
        format!(
            r#"{{"time":"2024-01-01T00:{:02}:{:02}Z","id":"n{n}","user":"u{}","#,
            n / 60 % 60,
            n % 60,
            n * 7919 % 1_300
        ) + &format!(
            r#""odd":{},"tags":["a","b"],"message":"sudo:  u{n} : TTY=pts/0 ; PWD=/ ; USER=root"}}"#,
            n % 2 == 1
        ) + "\n"
    };
    (0..LINES).map(line).collect()
}

/// All that the index says of the records.
fn rows(folder: &Folder) -> Vec<String> {
    let db = rusqlite::Connection::open(folder.index()).unwrap();
    let mut all = Vec::new();
    for sql in ["SELECT * FROM block ORDER BY id", "SELECT * FROM rule_hit ORDER BY rowid"] {
        let mut query = db.prepare(sql).unwrap();
        let columns = query.column_count();
        let mut rows = query.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            all.push((0..columns).map(|n| format!("{:?} ", row.get_ref(n).unwrap())).collect());
        }
    }
    all
}

#[test]
fn each_load_gives_the_same_index() {
    let files = [("syslog", syslog()), ("app.ndjson", json())];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let folders = [Folder::new(&files), Folder::new(&files), Folder::new(&files)];
    let sources = folders.each_ref().map(|folder| format!("{:#?}", folder.open().sources()));
    let index = folders.each_ref().map(rows);
    assert!(sources.iter().all(|one| *one == sources[0]));
    assert!(index.iter().all(|one| *one == index[0]));
}

#[test]
fn a_line_takes_year_and_time_from_the_block_before() {
    let folder = Folder::of("syslog", &syslog());
    let catalog = folder.open();
    let time = |line: u64| catalog.record("syslog", line + 1).unwrap().time.unwrap();
    let year = |line: u64| time(line).to_string()[..4].parse::<i16>().unwrap();
    assert_eq!(year(LINES - 2), year(0) + 1);
    for line in (6..LINES).step_by(7) {
        assert_eq!(time(line), time(line - 1), "line {line}");
    }
    let source = &catalog.sources()[0];
    assert_eq!((source.records, source.untimed), (LINES, 0));
}

#[test]
fn values_are_counted_over_all_blocks() {
    let catalog = Folder::of("app.ndjson", &json()).open();
    let field = |name: &str| {
        let field = catalog.sources()[0].fields.iter().find(|field| field.name == name).unwrap();
        (field.filled, field.distinct, field.distinct_is_exact)
    };
    assert_eq!(field("id"), (LINES, 1_000, false));
    assert_eq!(field("user"), (LINES, 1_000, false));
    assert_eq!(field("odd"), (LINES, 2, true));
    assert_eq!(field("tags.*"), (LINES, 2, true));
}
