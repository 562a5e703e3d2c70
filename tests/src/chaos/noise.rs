//! Repeats messages: alerts from two publishers, jobs that were in a queue before, and notices of steps and
//! outcomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::jetstream::{self, message::StreamMessage};
use casebook_protocol::subject;
use casebook_runtime::nats::{Connection, streams};
use futures_util::StreamExt;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use crate::Result;

/// Marks a notice that we repeated.
const ECHO: &str = "Echo";
/// The pause before a publisher without an answer tries again.
const AGAIN: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub struct Doubled {
    pub notices: AtomicU64,
    /// Repeated jobs that a queue accepted.
    pub jobs: AtomicU64,
    /// Repeated jobs that a queue refused because it still had them.
    pub refused: AtomicU64,
    pub alerts: AtomicU64,
}

/// Publishes an alert from two publishers at once, each until the alert is acknowledged.
pub async fn alert(connection: Connection, bytes: Vec<u8>, doubled: Arc<Doubled>) {
    let put = async {
        while connection.store(subject::ALERTS, bytes.clone()).await.is_err() {
            tokio::time::sleep(AGAIN).await;
        }
        doubled.alerts.fetch_add(1, Ordering::Relaxed);
    };
    let opened = async {
        #[derive(Deserialize)]
        struct Accepted {
            #[allow(dead_code, reason = "its presence shows that the alert is stored")]
            investigation: String,
        }
        loop {
            let answer = connection.request(subject::OPEN, bytes.clone(), Duration::from_secs(3)).await;
            if answer.is_ok_and(|answer| serde_json::from_slice::<Accepted>(&answer).is_ok()) {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
        doubled.alerts.fetch_add(1, Ordering::Relaxed);
    };
    tokio::join!(put, opened);
}

/// Repeats every second notice of a step or an outcome, up to two seconds later.
pub async fn notices(connection: Connection, seed: u64, doubled: Arc<Doubled>) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let client = connection.client().clone();
    let (Ok(steps), Ok(outcomes)) = (client.subscribe(subject::STEPS).await, client.subscribe(subject::OUTCOMES).await)
    else {
        return;
    };
    let mut both = futures_util::stream::select(steps, outcomes);
    while let Some(message) = both.next().await {
        let ours = message.headers.as_ref().is_some_and(|headers| headers.get(ECHO).is_some());
        if ours || dice.random() {
            continue;
        }
        let later = Duration::from_millis(dice.random_range(0..2_000));
        let (client, doubled) = (client.clone(), Arc::clone(&doubled));
        tokio::spawn(async move {
            tokio::time::sleep(later).await;
            let mut headers = message.headers.unwrap_or_default();
            headers.insert(ECHO, "1");
            if client.publish_with_headers(message.subject, headers, message.payload).await.is_ok() {
                doubled.notices.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// Watches the queues of tasks and cases, and publishes the jobs there again at random times.
pub async fn jobs(connection: Connection, seed: u64, doubled: Arc<Doubled>) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let context = jetstream::new(connection.client().clone());
    let mut seen: BTreeMap<String, (HeaderMap, bytes::Bytes)> = BTreeMap::new();
    loop {
        tokio::time::sleep(Duration::from_millis(dice.random_range(100..400))).await;
        for stream in [streams::TASKS, streams::CASES] {
            for message in all(&context, stream).await.unwrap_or_default() {
                seen.insert(message.subject.to_string(), (message.headers, message.payload));
            }
        }
        let Some((subject, (headers, payload))) = seen.iter().choose(&mut dice) else { continue };
        let sent = context.publish_with_headers(subject.clone(), headers.clone(), payload.clone()).await;
        let Ok(sent) = sent else { continue };
        let count = if sent.await.is_ok() { &doubled.jobs } else { &doubled.refused };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

pub async fn all(context: &jetstream::Context, name: &str) -> Result<Vec<StreamMessage>> {
    let words = |e: &dyn std::fmt::Display| format!("cannot read {name}: {e}");
    let stream = context.get_stream(name).await.map_err(|e| words(&e))?;
    let state = &stream.cached_info().state;
    let mut found = Vec::new();
    let mut next = state.first_sequence;
    while next <= state.last_sequence && state.messages > 0 {
        // The subject `>` matches the next message of any subject.
        let ask = stream.raw_message_builder().sequence(next).next_by_subject(">");
        match ask.send().await {
            Ok(message) => {
                next = message.sequence + 1;
                found.push(message);
            }
            Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => break,
            Err(error) => return Err(words(&error).into()),
        }
    }
    Ok(found)
}
