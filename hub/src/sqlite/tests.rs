use super::*;
use casebook_protocol::event::EVENT_VERSION;
use casebook_protocol::{Event, Timestamp};
use casebook_runtime::store::Appended;
use std::time::Duration;

fn entries(investigation: &InvestigationId, after: Option<&Recorded>, n: usize, text: &str) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    for _ in 0..n {
        let event = Event::Stopping { reason: text.into() };
        all.push(Recorded::next(investigation, all.last().or(after), Timestamp::UNIX_EPOCH, event));
    }
    all
}

fn id(text: &str) -> InvestigationId {
    InvestigationId::new(text).unwrap()
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = entries(&id("a"), None, 3, "x");
    let store = SqliteStore::open(folder.path()).unwrap();
    store.append(&id("a"), 0, &log).await.unwrap();
    store.record_once(&id("a"), "k", b"v").await.unwrap();
    let artifact = store.put(b"bytes").await.unwrap();
    drop(store);
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(store.log(&id("a"), 1).await.unwrap(), log);
    assert_eq!(store.recorded(&id("a"), "k").await.unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(store.get(&artifact).await.unwrap().as_deref(), Some(&b"bytes"[..]));
}

#[test]
fn a_folder_belongs_to_one_process_and_the_second_learns_which() {
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(folder.path()).unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert_eq!(error, OpenError::Locked { folder: folder.path().into(), process: std::process::id().to_string() });
    assert!(error.advice().contains("wait for it to end"), "{error}");
    drop(first);
    SqliteStore::open(folder.path()).unwrap();
}

#[test]
fn a_process_that_is_about_to_end_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(folder.path()).unwrap();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(folder::PUT_AWAY / 5);
        drop(first);
    });
    SqliteStore::open(folder.path()).unwrap();
    ending.join().unwrap();
}

#[test]
fn a_format_of_the_future_is_refused_with_both_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    let db = Connection::open(folder.path().join("casebook.db")).unwrap();
    db.pragma_update(None, "user_version", 9).unwrap();
    drop(db);
    let error = SqliteStore::open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("has format 9, this casebook reads up to 2"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_and_a_file_that_is_no_database_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("casebook.db");
    std::fs::write(&file, vec![b'x'; 8192]).unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    let error = SqliteStore::open(&file).unwrap_err();
    assert!(matches!(&error, OpenError::NotWritable { .. }) && error.advice().contains("--data"), "{error}");
}

#[tokio::test]
async fn damage_is_loud() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let artifact = store.put(b"bytes").await.unwrap();
    store.append(&id("a"), 0, &entries(&id("a"), None, 2, "x")).await.unwrap();
    drop(store);
    let db = Connection::open(folder.path().join("casebook.db")).unwrap();
    db.execute("UPDATE artifacts SET bytes = x'00'", []).unwrap();
    db.execute("UPDATE events SET entry = x'00' WHERE seq = 2", []).unwrap();
    drop(db);
    let store = SqliteStore::open(folder.path()).unwrap();
    let error = store.get(&artifact).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { what, .. } if *what == format!("artifact {artifact}")), "{error}");
    let error = store.log(&id("a"), 1).await.unwrap_err().to_string();
    assert!(error.starts_with("event 2 of a is stored but cannot be read"), "{error}");
}

#[tokio::test]
async fn log_of_a_newer_version_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let mut log = entries(&id("a"), None, 2, "x");
    log[1].v = EVENT_VERSION + 1;
    store.append(&id("a"), 0, &log).await.unwrap();
    let newer = StoreError::Newer { what: "event 2 of a".into(), found: EVENT_VERSION + 1, known: EVENT_VERSION };
    assert_eq!(store.log(&id("a"), 1).await, Err(newer));
}

/// The writer on a database that may not grow: what a full disk answers.
#[tokio::test]
async fn a_full_disk_fails_what_does_not_fit_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("casebook.db");
    drop(SqliteStore::open(folder.path()).unwrap());
    let mut db = Connection::open(&file).unwrap();
    folder::prepare(&mut db).unwrap();
    db.pragma_update(None, "max_page_count", 24).unwrap();
    let (requests, waiting) = mpsc::channel(WAITING);
    let put = |n: u8, size: usize| {
        let (reply, answer) = oneshot::channel();
        let bytes = vec![n; size];
        (
            Job {
                doing: format!("store {n}"),
                request: Request::Put {
                    named: vec![(ArtifactId::of(&bytes), packed::Packed { form: packed::WHOLE, bytes })],
                    reply,
                },
            },
            answer,
        )
    };
    // The first three wait together and share a transaction, which SQLite gives up as a whole.
    let mut replies = Vec::new();
    for (job, answer) in [put(0, 100), put(1, 400_000), put(2, 100)] {
        requests.send(job).await.unwrap_or_else(|_| panic!());
        replies.push(answer);
    }
    let writer = std::thread::spawn(move || writer::run(db, waiting, "casebook.db"));
    let mut stored = Vec::new();
    for answer in replies {
        stored.push(answer.await.unwrap());
    }
    let why = stored[1].clone().unwrap_err().to_string();
    assert_eq!(why, "cannot store 1: the disk of casebook.db is full; free some space, then resume");
    let (job, answer) = put(3, 100);
    requests.send(job).await.unwrap_or_else(|_| panic!());
    stored.push(answer.await.unwrap());
    assert_eq!(stored[3], Ok(()), "what fits goes on");
    drop(requests);
    writer.join().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    for (n, size) in [(0, 100), (1, 400_000), (2, 100), (3, 100)] {
        let id = ArtifactId::of(&vec![n; size]);
        let there = store.get(&id).await.unwrap().is_some();
        assert_eq!(there, stored[usize::from(n)].is_ok(), "what is acknowledged is there, and nothing else");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let writers: Vec<_> = (0..200)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let id = id(&format!("i{n}"));
                store.append(&id, 0, &entries(&id, None, 3, "x")).await.unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(store.investigations().await.unwrap().len(), 200);
}

/// What a request names is stored with it, also where another one was first.
#[tokio::test]
async fn what_is_recorded_and_what_it_names_are_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let (one, two, three) = (b"one".repeat(50), b"two".repeat(50), b"three".repeat(50));
    let [a, b, c] = [&one, &two, &three].map(|bytes| ArtifactId::of(bytes));
    assert_eq!(store.record_once_with(&id("a"), "k", b"v", &[(&a, &one)]).await.unwrap(), Once::Recorded);
    let second = store.record_once_with(&id("a"), "k", b"w", &[(&b, &two)]).await.unwrap();
    assert_eq!(second, Once::Stands(b"v".to_vec()));
    let log = entries(&id("a"), None, 2, "x");
    store.append_with(&id("a"), 0, &log, &[(&c, &three)]).await.unwrap();
    assert!(matches!(store.append_with(&id("a"), 0, &log, &[]).await, Err(StoreError::Conflict { .. })));
    assert_eq!(store.log(&id("a"), 1).await.unwrap(), log);
    for (id, bytes) in [(&a, &one), (&b, &two), (&c, &three)] {
        assert_eq!(store.get(id).await.unwrap().as_ref(), Some(bytes));
    }
}

fn positions(feed: &Feed) -> Vec<(u64, String, Vec<u64>)> {
    let seqs = |one: &Appended| one.entries.as_ref().unwrap().iter().map(|e| e.seq).collect();
    feed.appended.iter().map(|one| (one.position, one.investigation.to_string(), seqs(one))).collect()
}

#[tokio::test]
async fn a_reader_beside_the_writer_sees_each_commit_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteStore::read(folder.path()).unwrap_err();
    assert_eq!(error, OpenError::Empty { folder: folder.path().into() });
    let writer = SqliteStore::open(folder.path()).unwrap();
    let reader = SqliteStore::read(folder.path()).unwrap();
    let mut news = reader.news().await.unwrap();
    let log = entries(&id("a"), None, 3, "x");
    for n in 0..3_u64 {
        let entry = usize::try_from(n).unwrap();
        writer.append(&id("a"), n, &log[entry..=entry]).await.unwrap();
        tokio::time::timeout(Duration::from_secs(5), news.wait()).await.unwrap().unwrap();
        assert_eq!(reader.log(&id("a"), 1).await.unwrap(), log[..=entry]);
    }
    let quiet = tokio::time::timeout(Duration::from_millis(200), news.wait()).await;
    assert!(quiet.is_err(), "there is no news without a commit");
    let artifact = writer.put(b"bytes").await.unwrap();
    assert_eq!(reader.get(&artifact).await.unwrap().as_deref(), Some(&b"bytes"[..]));
    let refused = reader.append(&id("a"), 3, &entries(&id("a"), log.last(), 1, "y")).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot append to the log of a: the data folder was opened for reading only");
    for refused in [reader.put(b"x").await.map(drop), reader.record_once(&id("a"), "k", b"v").await.map(drop)] {
        assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    }
    drop(writer);
    assert_eq!(reader.log(&id("a"), 1).await.unwrap(), log);
    SqliteStore::open(folder.path()).unwrap();
}

#[tokio::test]
async fn the_feed_has_every_append_in_order_of_commit_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let (a, b) = (entries(&id("a"), None, 900, "x"), entries(&id("b"), None, 2, "y"));
    store.append(&id("a"), 0, &a[..2]).await.unwrap();
    store.append(&id("b"), 0, &b).await.unwrap();
    assert!(store.append(&id("b"), 0, &b).await.is_err(), "a refused append takes no position");
    store.append(&id("a"), 2, &a[2..3]).await.unwrap();
    let feed = store.feed(0).await.unwrap();
    assert_eq!(positions(&feed), [(1, "a".into(), vec![1, 2]), (2, "b".into(), vec![1, 2]), (3, "a".into(), vec![3])]);
    assert_eq!(feed.position, 3);
    for n in 3..900_u64 {
        let entry = usize::try_from(n).unwrap();
        store.append(&id("a"), n, &a[entry..=entry]).await.unwrap();
    }
    let (mut at, mut pages, mut seen) = (0, 0, Vec::new());
    loop {
        let feed = store.feed(at).await.unwrap();
        if feed.position == at {
            break;
        }
        (at, pages) = (feed.position, pages + 1);
        seen.extend(
            feed.appended.into_iter().filter(|one| one.investigation == id("a")).flat_map(|one| one.entries.unwrap()),
        );
    }
    assert_eq!((at, pages), (900, 2));
    assert_eq!(seen, a, "with the hash that each follows, also across pages");
}

#[tokio::test]
async fn what_cannot_be_read_does_not_end_the_feed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let (a, b) = (entries(&id("a"), None, 2, "x"), entries(&id("b"), None, 1, "y"));
    store.append(&id("a"), 0, &a[..1]).await.unwrap();
    store.append(&id("a"), 1, &a[1..]).await.unwrap();
    store.append(&id("b"), 0, &b).await.unwrap();
    drop(store);
    let db = Connection::open(folder.path().join("casebook.db")).unwrap();
    db.execute("UPDATE events SET entry = x'00' WHERE pos = 2", []).unwrap();
    drop(db);
    let feed = SqliteStore::read(folder.path()).unwrap().feed(0).await.unwrap();
    let good: Vec<bool> = feed.appended.iter().map(|one| one.entries.is_ok()).collect();
    assert_eq!((good, feed.position), (vec![true, false, true], 3));
}

/// The tables as version 1 wrote them.
const VERSION_1: &str = "
CREATE TABLE investigations (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE events (investigation INTEGER NOT NULL, seq INTEGER NOT NULL, form INTEGER NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (investigation, seq));
CREATE TABLE results (investigation INTEGER NOT NULL, key TEXT NOT NULL, form INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (investigation, key));
CREATE TABLE artifacts (id BLOB NOT NULL PRIMARY KEY, form INTEGER NOT NULL, bytes BLOB NOT NULL);
PRAGMA user_version = 1;
";

#[tokio::test]
async fn a_writer_converts_older_tables_and_a_reader_names_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (entries(&id("a"), None, 3, "x"), entries(&id("b"), None, 1, "y"));
    let db = Connection::open(folder.path().join("casebook.db")).unwrap();
    db.execute_batch(VERSION_1).unwrap();
    db.execute_batch("INSERT INTO investigations VALUES (1, 'b'), (2, 'a')").unwrap();
    for (number, row) in [(2, &a[..2]), (1, &b[..]), (2, &a[2..])] {
        let packed = tables::write(row).unwrap();
        let last = i64::try_from(row.last().unwrap().seq).unwrap();
        db.execute("INSERT INTO events VALUES (?1, ?2, ?3, ?4)", params![number, last, packed.form, packed.bytes])
            .unwrap();
    }
    drop(db);
    let error = SqliteStore::read(folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("has the older format 1, this casebook reads 2"), "{error}");
    assert!(error.advice().contains("casebook list"), "{}", error.advice());
    drop(SqliteStore::open(folder.path()).unwrap());
    let reader = SqliteStore::read(folder.path()).unwrap();
    assert_eq!(reader.log(&id("a"), 1).await.unwrap(), a);
    let feed = reader.feed(0).await.unwrap();
    assert_eq!(positions(&feed), [(1, "a".into(), vec![1, 2]), (2, "b".into(), vec![1]), (3, "a".into(), vec![3])]);
}
