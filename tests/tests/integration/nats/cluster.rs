//! Three servers of which one is lost, or two stand still.

use async_nats::jetstream;
use casebook_protocol::Timestamp;
use casebook_runtime::nats::streams::{self, Keeping};
use casebook_runtime::store::{Once, Store};
use rustix::process::Signal;

use super::service::{alert, evidence};
use super::*;

#[test]
fn a_cluster_of_three_goes_on_when_it_loses_a_server() {
    process::run(async {
        let mut servers = casebook_tests::nats::cluster().unwrap();
        let nats = servers.remove(0);
        let evidence = evidence(nats.folder());
        let path = nats.folder().join("alert.json");
        std::fs::write(&path, alert("a", "high")).unwrap();
        let again = evidence.clone();
        let embedded = tokio::task::spawn_blocking(move || run::investigate(&path, &again).unwrap()).await.unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let settings = Settings { keeping: Keeping { replicas: 3, ..Keeping::default() }, ..Settings::default() };
        let service = loop {
            match Service::start(hub.clone(), settings).await {
                Ok(service) => break service,
                // The servers choose a leader first.
                Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        };
        let mut team = Team::enter(nats, hub.clone(), service, &evidence).await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(open(&hub, &alert(name, "high")).await);
        }
        while hub.env().store.log(&ids[0], 1).await.unwrap().len() < 8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The one that the Hub talks to.
        match hub.client().server_info().server_name.as_str() {
            "server-0" => team.nats.broker.kill(),
            "server-1" => servers[0].broker.kill(),
            _ => servers[1].broker.kill(),
        }
        for id in &ids {
            concluded(&hub, id).await;
            assert_eq!(verified(hub.env().store.as_ref(), id).await.unwrap().problems, []);
        }
        assert_eq!(comparable(&concluded(&hub, &ids[0]).await), comparable(&embedded));
    })
    .unwrap();
}

const KEEPING: Keeping = Keeping { replicas: 3, lease: streams::LEASE };

/// The number of the server that leads `stream`.
async fn leader(hub: &Connection, stream: &str) -> usize {
    loop {
        let found = jetstream::new(hub.client().clone()).get_stream(stream).await;
        let leader = found.ok().and_then(|found| found.cached_info().cluster.as_ref()?.leader.clone());
        match leader.and_then(|name| name.strip_prefix("server-")?.parse().ok()) {
            Some(n) => return n,
            None => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

/// True if each thread of the process is stopped.
fn stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut states = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap());
    states.all(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T ")))
}

/// Does two writes to one subject while the leader has no majority: one that the leader proposes, and one that it refuses
/// because the first is in progress.
async fn meet<A, B>(servers: &mut [Nats], leader: usize, first: A, second: B) -> (A::Output, B::Output)
where
    A: Future + Send + 'static,
    B: Future + Send + 'static,
    A::Output: Send,
    B::Output: Send,
{
    let others = |servers: &mut [Nats], signal| {
        let others = servers.iter_mut().enumerate().filter(|(n, _)| *n != leader);
        others.for_each(|(_, server)| server.broker.signal(signal));
    };
    others(servers, Signal::STOP);
    // A signal takes effect a little later: a follower could still confirm a write.
    let followers = servers.iter().enumerate().filter(|(n, _)| *n != leader);
    for pid in followers.map(|(_, server)| server.broker.pid()) {
        while !stopped(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let first = tokio::spawn(first);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = tokio::spawn(second);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let confirmed = (first.is_finished(), second.is_finished());
    others(servers, Signal::CONT);
    assert_eq!(confirmed, (false, false), "no write is confirmed that is not stored");
    (first.await.unwrap(), second.await.unwrap())
}

#[test]
fn writes_that_meet_without_a_majority_agree_once_there_is_one() {
    process::run(async {
        let mut servers = casebook_tests::nats::cluster().unwrap();
        let hub = nats::connect(&servers[0].options("hub")).await.unwrap();
        while hub.prepare(KEEPING).await.is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        // Two Hubs that talk to this server alone.
        let hubs = async |servers: &[Nats], n: usize| {
            let options = nats::Options { url: servers[n].broker.url(), ..servers[n].options("hub") };
            let one: Arc<dyn Store> = nats::connect(&options).await.unwrap().env().store;
            let other: Arc<dyn Store> = nats::connect(&options).await.unwrap().env().store;
            (one, other)
        };
        let id = InvestigationId::new("a").unwrap();

        let leads = leader(&hub, &streams::results(None)).await;
        let (one, other) = hubs(&servers, leads).await;
        let write = |store: &Arc<dyn Store>, bytes: &'static [u8]| {
            let (store, id) = (Arc::clone(store), id.clone());
            async move { store.record_once(&id, "k", bytes).await.unwrap() }
        };
        let both = meet(&mut servers, leads, write(&one, b"one"), write(&other, b"other")).await;
        let stands = one.recorded(&id, "k").await.unwrap().unwrap();
        let expect = match stands.as_slice() {
            b"one" => (Once::Recorded, Once::Stands(stands.clone())),
            _ => (Once::Stands(stands.clone()), Once::Recorded),
        };
        assert_eq!(both, expect);
        assert_eq!(other.recorded(&id, "k").await.unwrap(), Some(stands));

        let leads = leader(&hub, streams::LOG).await;
        let (one, other) = hubs(&servers, leads).await;
        let entry = Recorded::next(&id, None, Timestamp::UNIX_EPOCH, Event::Stopping { reason: "x".into() });
        let write = |store: &Arc<dyn Store>| {
            let (store, id, entry) = (Arc::clone(store), id.clone(), entry.clone());
            async move { store.append(&id, 0, &[entry]).await }
        };
        let both = meet(&mut servers, leads, write(&one), write(&other)).await;
        assert_eq!(both, (Ok(()), Ok(())), "the same entries");
        assert_eq!(one.log(&id, 1).await.unwrap(), [entry]);

        let leads = leader(&hub, streams::ARTIFACTS).await;
        let (one, other) = hubs(&servers, leads).await;
        let put = |store: &Arc<dyn Store>| {
            let store = Arc::clone(store);
            async move { store.put(b"an artifact").await.unwrap() }
        };
        let (artifact, same) = meet(&mut servers, leads, put(&one), put(&other)).await;
        assert_eq!(artifact, same);
        assert_eq!(other.get(&artifact).await.unwrap().as_deref(), Some(&b"an artifact"[..]));
    })
    .unwrap();
}

#[test]
fn a_job_that_waits_for_a_majority_is_queued_once_and_a_leader_steps_down_when_asked() {
    process::run(async {
        let mut servers = casebook_tests::nats::cluster().unwrap();
        let hub = nats::connect(&servers[0].options("hub")).await.unwrap();
        let director = Queue::new(Role::Director, None);
        while hub.prepare(KEEPING).await.is_err() || hub.prepare_queue(&director, KEEPING).await.is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let leads = leader(&hub, streams::TASKS).await;
        let options = nats::Options { url: servers[leads].broker.url(), ..servers[leads].options("hub") };
        let (one, other) = (nats::connect(&options).await.unwrap(), nats::connect(&options).await.unwrap());
        let queue = subject::tasks(Role::Director, None);
        let enqueue = |connection: &Connection| {
            let (bus, queue) = (connection.env().bus, queue.clone());
            async move { bus.enqueue(&queue, "i/r1.plan", b"job".to_vec()).await.unwrap() }
        };
        meet(&mut servers, leads, enqueue(&one), enqueue(&other)).await;
        leader(&hub, streams::TASKS).await;
        let stream = jetstream::new(hub.client().clone()).get_stream(streams::TASKS).await.unwrap();
        assert_eq!(stream.cached_info().state.messages, 1);

        let before = leader(&hub, streams::TASKS).await;
        hub.step_down(streams::TASKS).await;
        while leader(&hub, streams::TASKS).await == before {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .unwrap();
}
