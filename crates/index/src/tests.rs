use std::path::Path;

use casebook_hub::{MemoryStore, State};
use casebook_protocol::{Alert, Budget, Event, InvestigationId, Recorded, Severity, TaskId, Timestamp, Usage, Verdict};
use casebook_runtime::store::Store;

use crate::query::{Sort, Status, Wanted};
use crate::{Brief, Index, Row};

fn id(text: &str) -> InvestigationId {
    InvestigationId::new(text).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// The recorded log of a released version.
fn fixture() -> Vec<Recorded> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hub/fixtures/log-v1.ndjson");
    std::fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn alert(title: &str, severity: &str, host: &str) -> Alert {
    let body =
        serde_json::json!({"title": title, "severity": severity, "host": {"name": host}, "id": format!("id-{title}")});
    Alert::parse(body.to_string().as_bytes()).unwrap()
}

async fn open(store: &MemoryStore, name: &str, second: i64, alert: Alert) -> Recorded {
    let event = Event::Opened {
        alert,
        budget: Budget::default(),
        roster: Vec::new(),
        evidence: format!("/logs/{}", second % 3),
    };
    let entry = Recorded::next(&id(name), None, at(second), event);
    store.append(&id(name), 0, std::slice::from_ref(&entry)).await.unwrap();
    entry
}

async fn add(store: &MemoryStore, last: &Recorded, second: i64, event: Event) -> Recorded {
    let entry = Recorded::next(&last.investigation, Some(last), at(second), event);
    store.append(&last.investigation, last.seq, std::slice::from_ref(&entry)).await.unwrap();
    entry
}

/// A task that failed and cost something.
fn spent(cost_micros: u64) -> Event {
    let usage = Usage { cost_micros, ..Usage::default() };
    let task = TaskId::new("r1.review").unwrap();
    Event::TaskFailed { task, reason: "x".into(), usage, player: None, outcome: None }
}

fn row_of(index: &Index, investigation: &str) -> Row {
    let rows = index.page(&Wanted { limit: 200, ..Wanted::default() }, at(0)).unwrap().items;
    rows.into_iter().find(|row| row.investigation.as_str() == investigation).unwrap()
}

/// Sixty investigations: every second one is closed, and two titles take turns. Of the open ones, every second one
/// has an event that is not ten minutes old. Each has another cost.
async fn filled() -> MemoryStore {
    let store = MemoryStore::default();
    for n in 0..60_i64 {
        let severity = ["low", "high", "critical"][usize::try_from(n % 3).unwrap()];
        let title = if n % 4 == 0 { "Password spray" } else { "Kernel module load" };
        let opened = open(&store, &format!("case-{n:02}"), n, alert(title, severity, &format!("web-{n:02}"))).await;
        let cost = spent(u64::try_from(n * 7 % 60).unwrap());
        let last = add(&store, &opened, if n % 4 == 1 { 500 + n } else { 60 + n }, cost).await;
        if n % 2 == 0 {
            add(&store, &last, 200 + n, Event::Closed {}).await;
        }
    }
    store
}

async fn whole(index: &Index, wanted: &Wanted) -> Vec<Row> {
    let (mut rows, mut wanted) = (Vec::new(), wanted.clone());
    loop {
        let page = index.page(&wanted, at(1_000)).unwrap();
        assert!(page.items.len() <= usize::try_from(wanted.limit).unwrap());
        rows.extend(page.items);
        match page.next {
            Some(next) => wanted.cursor = Some(next),
            None => return rows,
        }
    }
}

fn names(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.investigation.as_str()).collect()
}

/// At each prefix the row says what the Hub's own fold says.
#[tokio::test]
async fn a_row_is_what_the_state_of_the_log_is() {
    let log = fixture();
    let store = MemoryStore::default();
    let index = Index::in_memory().unwrap();
    let mut state = State::default();
    for entry in &log {
        store.append(&entry.investigation, entry.seq - 1, std::slice::from_ref(entry)).await.unwrap();
        index.catch_up(&store).await.unwrap();
        state.apply(entry);
        let (row, figures) = (row_of(&index, entry.investigation.as_str()), index.figures(None, None).unwrap());
        assert_eq!(row.trouble, None);
        assert_eq!((row.seq, row.phase, row.round), (state.last_seq(), state.phase, state.round));
        assert_eq!((row.opened, row.closed, row.last_event), (state.opened, state.closed, state.last_at));
        assert_eq!((row.usage, row.score), (state.usage, state.timeline.as_ref().map(|t| t.score)));
        assert_eq!(row.verdict, state.conclusion.as_ref().map(|(_, ruling)| ruling.verdict));
        let mut under_way: Vec<_> = row.under_way.iter().map(|one| &one.task).collect();
        under_way.sort();
        assert_eq!(under_way, state.in_flight().map(|(task, _)| task).collect::<Vec<_>>());
        assert_eq!(row.tally.findings, state.findings().count() as u64);
        assert_eq!((row.tally.tasks, row.tally.guards), (state.tasks.len() as u64, state.guards.len() as u64));
        let calls: u64 = figures.tools.values().map(|tool| tool.calls).sum();
        assert_eq!(calls, state.calls.len() as u64);
        let labels: u64 = figures.labels.values().flat_map(|labels| labels.values()).sum();
        assert_eq!(labels, state.known.len() as u64);
        assert_eq!(figures.findings.values().sum::<u64>(), state.findings().count() as u64);
        let rests = state.conclusion.as_ref().map_or(0, |(conclusion, _)| conclusion.findings.len());
        assert_eq!(figures.cited.values().sum::<u64>(), rests as u64);
    }
    let row = row_of(&index, log[0].investigation.as_str());
    assert!(row.closed.is_some() && row.under_way.is_empty());
    let verdict = row.verdict.unwrap();
    assert_eq!(index.verdicts().unwrap(), [(verdict.name().to_owned(), 1)].into());
    for wanted in Verdict::ALL {
        let page = index.page(&Wanted { verdicts: vec![wanted], limit: 9, ..Wanted::default() }, at(0)).unwrap();
        assert_eq!(page.items.len(), usize::from(wanted == verdict));
    }
    assert_eq!(index.figures(Some(Timestamp::now()), None).unwrap(), crate::Figures::default());
}

#[tokio::test]
async fn pages_of_each_order_give_every_row_once() {
    let store = filled().await;
    let index = Index::in_memory().unwrap();
    index.catch_up(&store).await.unwrap();
    let newest: Vec<String> = (0..60).rev().map(|n| format!("case-{n:02}")).collect();
    for limit in [1, 7, 60, 200] {
        let rows = whole(&index, &Wanted { limit, ..Wanted::default() }).await;
        assert_eq!(names(&rows), newest, "pages of {limit}");
    }
    for sort in Sort::ALL {
        let rows = whole(&index, &Wanted { limit: 9, sort, ..Wanted::default() }).await;
        let mut sorted = names(&rows);
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 60, "{sort:?}");
        let by = |row: &Row| (row.closed.is_none(), row.severity, row.opened);
        match sort {
            Sort::Urgent => assert!(rows.is_sorted_by(|a, b| by(a) >= by(b))),
            Sort::Latest => assert!(rows.is_sorted_by(|a, b| a.last_event >= b.last_event)),
            Sort::Newest => assert!(rows.is_sorted_by(|a, b| a.opened >= b.opened)),
            Sort::Cost => assert!(rows.is_sorted_by(|a, b| a.usage.cost_micros > b.usage.cost_micros)),
        }
    }
    let next = index.page(&Wanted { limit: 1, ..Wanted::default() }, at(0)).unwrap().next;
    for cursor in [next.as_deref().unwrap(), "latest:1", "latest:a,b", "", "latest"] {
        let wanted = Wanted { limit: 1, sort: Sort::Latest, cursor: Some(cursor.into()), ..Wanted::default() };
        assert!(index.page(&wanted, at(0)).is_err(), "{cursor} is not of this order");
    }
}

#[tokio::test]
async fn filters_give_what_they_name_and_nothing_else() {
    let store = filled().await;
    let index = Index::in_memory().unwrap();
    index.catch_up(&store).await.unwrap();
    let all = whole(&index, &Wanted { limit: 100, ..Wanted::default() }).await;
    let check = async |wanted: Wanted, keep: &dyn Fn(&Row) -> bool| {
        let found = whole(&index, &Wanted { limit: 8, ..wanted.clone() }).await;
        let expected: Vec<Row> = all.iter().filter(|row| keep(row)).cloned().collect();
        assert_eq!(names(&found), names(&expected), "{wanted:?}");
        expected.len()
    };
    let usual = Wanted::default;
    let open = check(Wanted { statuses: vec![Status::Open], ..usual() }, &|row| row.closed.is_none()).await;
    assert_eq!(open, 30);
    check(Wanted { statuses: vec![Status::Open, Status::Closed], ..usual() }, &|_| true).await;
    let quiet = Wanted { statuses: vec![Status::Quiet], ..usual() };
    assert_eq!(check(quiet, &|row| row.closed.is_none() && row.last_event < Some(at(400))).await, 15);
    assert_eq!(check(Wanted { cost_at_least: Some(50), ..usual() }, &|row| row.usage.cost_micros >= 50).await, 10);
    let critical = Wanted { severities: vec![Severity::Critical, Severity::Low], ..usual() };
    check(critical, &|row| row.severity != Some(Severity::High)).await;
    check(Wanted { source: Some("gs/2".into()), ..usual() }, &|row| row.evidence == "/logs/2").await;
    check(Wanted { opened_since: Some(at(50)), ..usual() }, &|row| row.opened >= Some(at(50))).await;
    check(Wanted { opened_before: Some(at(50)), ..usual() }, &|row| row.opened < Some(at(50))).await;
    let search = |text: &str| Wanted { search: Some(text.into()), ..usual() };
    assert_eq!(check(search("WEB-07"), &|row| row.host.as_deref() == Some("web-07")).await, 1);
    assert_eq!(check(search("spray word"), &|row| row.title == "Password spray").await, 15);
    assert_eq!(check(search("case-1"), &|row| row.investigation.as_str().starts_with("case-1")).await, 10);
    check(search("rd"), &|row| row.title == "Password spray").await;
    assert_eq!(check(search("qq"), &|_| false).await, 0);
    assert_eq!(check(search("K"), &|row| row.title.contains('k') || row.title.contains('K')).await, 45);
    assert_eq!(check(search("07"), &|row| row.host.as_deref() == Some("web-07")).await, 1);
    for hostile in ["web\0", "\"", "a\"b", "%", "NEAR(x", "* OR title:x", "--"] {
        check(search(hostile), &|row| row.title.contains(hostile)).await;
    }
    check(search(&"spray ".repeat(2_000)), &|row| row.title == "Password spray").await;
    let counts = index.counts().unwrap();
    assert_eq!((counts.all, counts.open, counts.closed, counts.broken), (60, 30, 30, 0));
}

#[tokio::test]
async fn the_newest_in_brief_are_what_their_rows_say() {
    let store = filled().await;
    let log = fixture();
    store.append(&log[0].investigation, 0, &log).await.unwrap();
    let last = open(&store, "last", 1_000_000_000, alert("x", "low", "h")).await;
    add(&store, &last, 1_000_000_001, Event::NotInvestigated { reason: "HTTP 401".into() }).await;
    let bad = open(&store, "bad", 1_000_000_002, alert("x", "low", "h")).await;
    let mut forged = Recorded::next(&id("bad"), Some(&last), at(3), Event::Closed {});
    forged.seq = 2;
    store.append(&bad.investigation, 1, &[forged]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for index in [Index::in_memory().unwrap(), Index::open(folder.path()).unwrap()] {
        index.catch_up(&store).await.unwrap();
        let rows = whole(&index, &Wanted { limit: 200, ..Wanted::default() }).await;
        let exact = |at: Timestamp| Timestamp::from_microsecond(at.as_microsecond()).unwrap();
        let brief = |row: &Row| Brief {
            opened: row.opened.map(exact),
            last: row.last_event.map(exact),
            severity: row.severity,
            verdict: row.verdict.filter(|_| row.closed.is_some()),
            closed: row.closed.is_some(),
            idle: row.not_investigated.is_some(),
            trouble: row.trouble.is_some(),
        };
        let expected: Vec<Brief> = rows.iter().map(brief).collect();
        assert!(expected.iter().any(|one| one.verdict.is_some()) && expected[0].trouble && expected[1].idle);
        assert_eq!(index.newest(200).unwrap(), expected);
        assert_eq!(index.newest(7).unwrap(), expected[..7]);
        assert_eq!((index.all().unwrap(), index.counts().unwrap().all), (63, 63));
    }
}

#[tokio::test]
async fn a_log_that_does_not_hold_is_named_and_the_others_stay() {
    let store = MemoryStore::default();
    let index = Index::in_memory().unwrap();
    let good = open(&store, "good", 1, alert("x", "low", "h")).await;
    open(&store, "bad", 2, alert("x", "low", "h")).await;
    let mut forged = Recorded::next(&id("bad"), Some(&good), at(3), Event::Closed {});
    forged.seq = 2;
    store.append(&id("bad"), 1, &[forged]).await.unwrap();
    add(&store, &good, 4, Event::Closed {}).await;
    index.catch_up(&store).await.unwrap();
    let row = row_of(&index, "bad");
    assert!(row.trouble.unwrap().contains("event 2") && row.closed.is_none());
    assert!(row_of(&index, "good").closed.is_some());
    let broken = Wanted { statuses: vec![Status::Broken], limit: 9, ..Wanted::default() };
    assert_eq!(names(&whole(&index, &broken).await), ["bad"]);
}

#[tokio::test]
async fn an_index_that_cannot_be_used_is_made_again() {
    let store = filled().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.db");
    let opened = async |store: &MemoryStore| {
        let index = Index::open(folder.path()).unwrap();
        index.catch_up(store).await.unwrap();
        index.counts().unwrap().all
    };
    assert_eq!(opened(&store).await, 60);
    assert!(file.is_file());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(opened(&store).await, 60, "it was deleted");
    std::fs::write(&file, vec![b'x'; 9000]).unwrap();
    assert_eq!(opened(&store).await, 60, "it was overwritten");
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch("PRAGMA user_version = 7; DELETE FROM investigations").unwrap();
    drop(db);
    assert_eq!(opened(&store).await, 60, "it was of another version");
    let other = MemoryStore::default();
    for n in 0..90_i64 {
        open(&other, &format!("other-{n}"), n, alert("x", "low", "h")).await;
    }
    assert_eq!(opened(&other).await, 90, "it was of another store");
}

/// Any number of requests and processes may want the latest rows at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn folds_at_once_fold_each_event_once() {
    let store = filled().await;
    let folder = tempfile::tempdir().unwrap();
    // Two indexes on one folder are as two processes.
    let indexes = [Index::open(folder.path()).unwrap(), Index::open(folder.path()).unwrap()];
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let (index, store) = (indexes[n % 2].clone(), store.clone());
            tokio::spawn(async move { index.catch_up(&store).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    for index in &indexes {
        let counts = index.counts().unwrap();
        assert_eq!((counts.all, counts.broken), (60, 0));
    }
}

/// An index that is open and idle holds nothing that another needs.
#[tokio::test]
async fn each_open_index_follows_the_store() {
    let store = filled().await;
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [Index::open(folder.path()).unwrap(), Index::open(folder.path()).unwrap()];
    for (index, other) in [(&first, &second), (&second, &first)] {
        let all = index.counts().unwrap().all.max(60);
        open(&store, &format!("late-{all}"), 70, alert("x", "low", "h")).await;
        index.catch_up(&store).await.unwrap();
        assert_eq!(index.counts().unwrap(), other.counts().unwrap());
    }
    assert_eq!((first.counts().unwrap().all, first.counts().unwrap().broken), (62, 0));
}

#[tokio::test]
async fn a_row_says_why_nothing_is_investigated_until_the_next_round() {
    let (store, index) = (MemoryStore::default(), Index::in_memory().unwrap());
    let opened = open(&store, "mute", 0, alert("Module load", "high", "web-1")).await;
    let paused = add(&store, &opened, 1, Event::NotInvestigated { reason: "HTTP 401".into() }).await;
    index.catch_up(&store).await.unwrap();
    assert_eq!(row_of(&index, "mute").not_investigated.as_deref(), Some("HTTP 401"));
    let quiet = || Wanted { statuses: vec![Status::Quiet], ..Wanted::default() };
    let found = index.page(&quiet(), at(3)).unwrap().items;
    assert_eq!(found.len(), 1, "it is shown at once, not after ten minutes");
    add(&store, &paused, 2, Event::RoundStarted { phase: casebook_protocol::Phase::Discovery, round: 2 }).await;
    index.catch_up(&store).await.unwrap();
    assert_eq!(row_of(&index, "mute").not_investigated, None);
    assert_eq!(index.page(&quiet(), at(3)).unwrap().items, []);
}
