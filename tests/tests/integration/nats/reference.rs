//! What cannot be taken in: messages that name an artifact that is not there or not theirs, and what is
//! given up while no dead letter can be written.

use std::time::Duration;

use async_nats::HeaderMap;
use casebook_protocol::{ArtifactId, DeadLetter, Severity};
use casebook_runtime::nats::streams::{self, Keeping};
use futures_util::StreamExt;

use super::service::alert;
use super::*;

fn naming(artifact: &ArtifactId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Casebook-Protocol", WIRE_VERSION.to_string().as_str());
    headers.insert("Casebook-Artifact", artifact.as_str());
    headers
}

/// What is counted of a stream: `messages` that it holds, or its `last_seq`.
async fn count(hub: &Connection, stream: &str, what: &str) -> u64 {
    let api = format!("$JS.API.STREAM.INFO.{stream}");
    let answer = hub.request(&api, Vec::new(), Duration::from_secs(5)).await.unwrap();
    let info: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    info["state"][what].as_u64().unwrap()
}

/// The dead letter that the Hub writes.
async fn letter(hub: &Connection) -> DeadLetter {
    wait::soon(PATIENCE, async || hub.last_letter(subject::DEAD_HUB).await.unwrap()).await.expect("a letter")
}

#[test]
fn an_alert_names_no_artifact_of_ours() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let _service = Service::start(hub.clone(), Settings::default()).await.unwrap();
        let (bus, store) = (hub.env().bus, hub.env().store);
        let mut reads = hub.client().subscribe("$JS.API.DIRECT.GET.CASEBOOK_ARTIFACTS.>").await.unwrap();
        let kept = store.put(&alert("kept", "high")).await.unwrap();
        store.get(&kept).await.unwrap().unwrap();
        let read = reads.next().await.unwrap().subject;
        assert!(read.contains(kept.as_str()), "a read of the artifact is seen here: {read}");

        let sent = alert("sent", "high");
        hub.client().publish_with_headers(subject::ALERTS, naming(&kept), sent.into()).await.unwrap();
        hub.client().publish_with_headers(subject::ALERTS, naming(&kept), "".into()).await.unwrap();
        // No Expert is there: what is accepted waits.
        let cases = subject::cases(Severity::High);
        let case = tokio::time::timeout(Duration::from_secs(10), bus.pull(&cases));
        let case: serde_json::Value = serde_json::from_slice(case.await.unwrap().unwrap().bytes()).unwrap();
        assert_eq!(case["alert"]["id"], "sent", "the alert is what the message carries");
        let letter = letter(&hub).await;
        assert!(letter.reason.contains("alert is not JSON"), "{letter:?}");
        let read = tokio::time::timeout(Duration::from_millis(300), reads.next()).await;
        assert!(read.is_err(), "the artifact was read: {read:?}");
    })
    .unwrap();
}

#[test]
fn a_job_that_names_what_is_not_there_ends_in_the_dead_letters_and_does_not_come_again() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let (keeping, critic) = (Keeping::default(), Queue::new(Role::Critic, None));
        hub.prepare(keeping).await.unwrap();
        hub.prepare_queue(&critic, keeping).await.unwrap();
        let queue = subject::tasks(Role::Critic, None);
        let missing = ArtifactId::of(b"never stored");
        let job = format!("{queue}.i_r1_review");
        hub.client().publish_with_headers(job, naming(&missing), "".into()).await.unwrap();
        hub.flush().await;
        let delivery = hub.env().bus.pull(&queue).await.unwrap();
        assert_eq!((delivery.bytes(), delivery.attempt()), (&b""[..], 1));
        drop(delivery);

        let worker = nats::connect(&nats.options("critic")).await.unwrap();
        casebook_critic::actor::start(worker.env());
        let gone = async || (count(&hub, streams::TASKS, "messages").await == 0).then_some(());
        wait::soon(PATIENCE, gone).await.expect("the job is still there");
        let letter = hub.last_letter(&subject::dead(&critic)).await.unwrap().expect("a dead letter");
        assert_eq!((letter.attempts, letter.message), (2, Some(ArtifactId::of(b""))), "{}", letter.reason);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(count(&hub, streams::DEAD, "last_seq").await, 1, "one letter");
    })
    .unwrap();
}

#[test]
fn what_is_no_alert_stays_until_its_dead_letter_is_written() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let _service = Service::start(hub.clone(), Settings::default()).await.unwrap();
        let delete = format!("$JS.API.STREAM.DELETE.{}", streams::DEAD);
        hub.request(&delete, Vec::new(), Duration::from_secs(5)).await.unwrap();
        hub.store(subject::ALERTS, b"no alert".to_vec()).await.unwrap();
        let delivered = async || {
            let api = format!("$JS.API.CONSUMER.INFO.{}.hub", streams::ALERTS);
            let answer = hub.request(&api, Vec::new(), Duration::from_secs(5)).await.unwrap();
            let info: serde_json::Value = serde_json::from_slice(&answer).unwrap();
            info["delivered"]["consumer_seq"].as_u64().filter(|n| *n > 0)
        };
        wait::soon(PATIENCE, delivered).await.expect("it is delivered");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(count(&hub, streams::ALERTS, "messages").await, 1, "it is not dropped in silence");
        hub.prepare(Keeping::default()).await.unwrap();
        assert_eq!(letter(&hub).await.message, Some(ArtifactId::of(b"no alert")));
    })
    .unwrap();
}
