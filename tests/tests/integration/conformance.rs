//! What every store promises: one suite for all homes.

use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::{ArtifactId, Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::store::{Once, Store, StoreError};

use casebook_hub::{MemoryStore, SqliteStore};
use casebook_protocol::{Domain, Role, subject::Queue};
use casebook_runtime::nats::{self, NatsStore};
use casebook_tests::nats::Nats;

fn id(text: &str) -> InvestigationId {
    InvestigationId::new(text).unwrap()
}

fn entries(investigation: &InvestigationId, after: Option<&Recorded>, n: usize, text: &str) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    for _ in 0..n {
        let event = Event::Stopping { reason: text.into() };
        all.push(Recorded::next(investigation, all.last().or(after), Timestamp::UNIX_EPOCH, event));
    }
    all
}

async fn a_log_is_appended_in_order_or_not_at_all(store: Arc<dyn Store>) {
    let a = id("a");
    assert_eq!(store.log(&a, 1).await.unwrap(), []);
    let first = entries(&a, None, 3, "one");
    store.append(&a, 0, &first).await.unwrap();
    let late = entries(&a, first.get(1), 2, "late");
    let conflict = StoreError::Conflict { investigation: a.clone(), expected: 2, found: 3 };
    assert_eq!(store.append(&a, 2, &late).await, Err(conflict));
    assert_eq!(
        store.append(&a, 0, &first).await,
        Err(StoreError::Conflict { investigation: a.clone(), expected: 0, found: 3 })
    );
    let ahead = entries(&a, first.last(), 3, "x");
    assert!(matches!(store.append(&a, 3, &ahead[1..]).await, Err(StoreError::Unavailable { .. })), "a hole");
    assert!(
        matches!(store.append(&id("b"), 0, &first).await, Err(StoreError::Unavailable { .. })),
        "another investigation"
    );
    let second = entries(&a, first.last(), 2, "two");
    store.append(&a, 3, &second).await.unwrap();
    assert_eq!(store.log(&a, 1).await.unwrap(), [first.clone(), second.clone()].concat());
    assert_eq!(store.log(&a, 4).await.unwrap(), second);
    store.append(&id("0"), 0, &entries(&id("0"), None, 1, "x")).await.unwrap();
    assert_eq!(store.investigations().await.unwrap(), [id("0"), a]);
}

async fn of_many_that_race_for_one_sequence_one_wins(store: Arc<dyn Store>) {
    let a = id("a");
    for round in 0..5 {
        let log = store.log(&a, 1).await.unwrap();
        let racers: Vec<_> = (0..16)
            .map(|n| {
                let (store, a, new) =
                    (Arc::clone(&store), a.clone(), entries(&a, log.last(), 2, &format!("racer {n}")));
                tokio::spawn(async move { store.append(&a, round * 2, &new).await.map(|()| n) })
            })
            .collect();
        let mut won = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(n) => won.push(n),
                Err(error) => assert_eq!(
                    error,
                    StoreError::Conflict { investigation: a.clone(), expected: round * 2, found: round * 2 + 2 }
                ),
            }
        }
        assert_eq!(won.len(), 1);
        let log = store.log(&a, round * 2 + 1).await.unwrap();
        let Event::Stopping { reason } = &log[0].event else { panic!() };
        assert_eq!((log.len(), reason.as_str()), (2, format!("racer {}", won[0]).as_str()));
    }
    Recorded::verify(&a, &store.log(&a, 1).await.unwrap()).unwrap();
}

async fn a_result_is_written_once(store: Arc<dyn Store>) {
    let a = id("a");
    assert_eq!(store.recorded(&a, "k").await.unwrap(), None);
    assert_eq!(store.record_once(&a, "k", b"first").await.unwrap(), Once::Recorded);
    assert_eq!(store.record_once(&a, "k", b"second").await.unwrap(), Once::Stands(b"first".to_vec()));
    assert_eq!(store.record_once(&id("b"), "k", b"other").await.unwrap(), Once::Recorded);
    assert_eq!(store.recorded(&a, "k").await.unwrap(), Some(b"first".to_vec()));
    let racers: Vec<_> = (0..16u8)
        .map(|n| {
            let (store, a) = (Arc::clone(&store), a.clone());
            tokio::spawn(async move { store.record_once(&a, "race", &[n]).await.unwrap() == Once::Recorded })
        })
        .collect();
    let mut won = 0;
    for racer in racers {
        won += u32::from(racer.await.unwrap());
    }
    assert_eq!(won, 1);
    for key in ["outcome/r1.investigate.network", "call/r1.investigate.network.t1.0", "model/r1.plan.m1", "large"] {
        let bytes = vec![7; 700_000];
        assert_eq!(store.record_once(&a, key, &bytes).await.unwrap(), Once::Recorded, "{key}");
        assert_eq!(store.record_once(&a, key, b"x").await.unwrap(), Once::Stands(bytes.clone()), "{key}");
        assert_eq!(store.recorded(&a, key).await.unwrap(), Some(bytes), "{key}");
    }
}

async fn large_batches_are_appended_whole(store: Arc<dyn Store>) {
    let a = id("large");
    let first = entries(&a, None, 3, &"long ".repeat(200_000));
    store.append(&a, 0, &first).await.unwrap();
    let more = entries(&a, first.last(), 2, "short");
    store.append(&a, 3, &more).await.unwrap();
    assert_eq!(store.log(&a, 1).await.unwrap(), [first.clone(), more.clone()].concat());
    assert_eq!(store.log(&a, 3).await.unwrap(), [first[2..].to_vec(), more].concat());
}

async fn an_artifact_is_found_under_its_hash(store: Arc<dyn Store>) {
    assert_eq!(store.get(&ArtifactId::of(b"nothing")).await.unwrap(), None);
    for bytes in [&b""[..], b"abc", &vec![7; 3_000_000]] {
        let stored = store.put(bytes).await.unwrap();
        assert_eq!(stored, ArtifactId::of(bytes));
        assert_eq!(store.put(bytes).await.unwrap(), stored);
        assert_eq!(store.get(&stored).await.unwrap().as_deref(), Some(bytes));
    }
}

async fn the_feed_has_all_appends_in_order_and_wakes(store: Arc<dyn Store>) {
    let mut news = store.news().await.unwrap();
    assert_eq!((store.end().await.unwrap(), store.feed(0).await.unwrap().appended.len()), (0, 0));
    let (a, b) = (entries(&id("a"), None, 400, "x"), entries(&id("b"), None, 2, &"long ".repeat(100_000)));
    store.append(&id("a"), 0, &a[..2]).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), news.wait()).await.unwrap().unwrap();
    store.append(&id("b"), 0, &b).await.unwrap();
    for (n, entry) in (2..).zip(&a[2..]) {
        store.append(&id("a"), n, std::slice::from_ref(entry)).await.unwrap();
    }
    let (mut at, mut appended) = (0, Vec::new());
    loop {
        let feed = store.feed(at).await.unwrap();
        assert!(feed.appended.iter().all(|one| at < one.position && one.position <= feed.position));
        if feed.position == at {
            break;
        }
        at = feed.position;
        appended.extend(feed.appended);
    }
    assert_eq!(at, store.end().await.unwrap());
    assert!(appended.is_sorted_by_key(|one| one.position));
    let order: Vec<&str> = appended.iter().take(3).map(|one| one.investigation.as_str()).collect();
    assert_eq!((order, appended.len()), (vec!["a", "b", "a"], 400));
    let of = |wanted: &str| {
        let mine = appended.iter().filter(|one| one.investigation.as_str() == wanted);
        mine.flat_map(|one| one.entries.clone().unwrap()).collect::<Vec<_>>()
    };
    assert!(of("a") == a && of("b") == b);
    let last = appended.last().unwrap();
    assert_eq!(store.feed(last.position - 1).await.unwrap().appended, std::slice::from_ref(last));
}

async fn all(make: impl AsyncFn() -> Arc<dyn Store>) {
    a_log_is_appended_in_order_or_not_at_all(make().await).await;
    of_many_that_race_for_one_sequence_one_wins(make().await).await;
    a_result_is_written_once(make().await).await;
    large_batches_are_appended_whole(make().await).await;
    an_artifact_is_found_under_its_hash(make().await).await;
    the_feed_has_all_appends_in_order_and_wakes(make().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_keeps_its_promises() {
    all(async || Arc::new(MemoryStore::default()) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    let n = std::sync::atomic::AtomicU32::new(0);
    all(async || {
        let place = folder.path().join(n.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        Arc::new(SqliteStore::open(place).unwrap()) as Arc<dyn Store>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nats_store_keeps_its_promises() {
    // Each store is one of another process: what one remembers, another must read.
    let labs = std::sync::Mutex::new(Vec::new());
    all(async || {
        let lab = Nats::start().unwrap();
        let connection = nats::connect(&lab.options("hub")).await.unwrap();
        let keeping = nats::streams::Keeping::default();
        connection.prepare(keeping).await.unwrap();
        connection.prepare(keeping).await.unwrap();
        for queue in
            [Queue::new(Role::Director, None), Queue::new(Role::Expert, Some(&Domain::new("network").unwrap()))]
        {
            connection.prepare_queue(&queue, keeping).await.unwrap();
        }
        labs.lock().unwrap().push(lab);
        Arc::new(NatsStore::new(connection)) as Arc<dyn Store>
    })
    .await;
}
