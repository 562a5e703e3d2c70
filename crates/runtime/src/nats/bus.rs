//! The [`Bus`] over NATS. A work queue is a JetStream stream with one subject for each job, so that no job can wait
//! twice. Other messages are published.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::message::{AckKind, Acker, PublishMessage};
use async_trait::async_trait;
use bytes::Bytes;
use casebook_protocol::hash::hex;
use casebook_protocol::{ArtifactId, subject};
use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::mac::{MacKey, signed};
use super::store::PENDING;
use super::store::patience::Patience;
use super::stream::{pending, there_already};
use super::{Connection, INLINE, NatsStore, PROTOCOL, REFERENCE, reason, streams};
use crate::bus::{Bus, BusError, Delivery, Message, Subscription};
use crate::random::random;
use crate::store::{Store, StoreError};
use crate::telemetry::meter;
use crate::wire::WIRE_VERSION;

/// How long the server keeps a request for a job open before the next request.
const WAIT: Duration = Duration::from_secs(5);
/// How long a job of another program version waits for a worker of that version.
const OTHER_VERSION: Duration = Duration::from_secs(10);
/// The prefix of task queues. Jobs in other queues do not depend on the protocol version.
const TASKS: &str = "casebook.task.";
/// Public JSON messages. One that is too large is replaced by a reference to it.
const PUBLIC: [&str; 3] = ["casebook.events.", "casebook.timeline.", subject::REPORTS];
/// Messages that must not be lost, so the server confirms them.
const KEPT: [&str; 4] = [subject::REPORTS, subject::ACCEPTED, "casebook.timeline.", "casebook.dead."];

pub struct NatsBus {
    nats: Connection,
    store: Arc<NatsStore>,
    consumers: Mutex<HashMap<String, Consumer<pull::Config>>>,
}

impl NatsBus {
    /// A body that is too large for a message goes through `store`.
    #[must_use]
    pub fn new(nats: Connection, store: Arc<NatsStore>) -> Self {
        Self { nats, store, consumers: Mutex::default() }
    }

    async fn consumer(&self, queue: &str) -> Result<Consumer<pull::Config>, BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("take jobs of {queue}"), reason };
        let mut consumers = self.consumers.lock().await;
        if let Some(consumer) = consumers.get(queue) {
            return Ok(consumer.clone());
        }
        let (stream, name) = streams::consumer_of(queue).ok_or_else(|| failed("it is not a queue".into()))?;
        let found = self.nats.jetstream.get_consumer_from_stream::<pull::Config, _, _>(&name, stream).await;
        let consumer = found.map_err(|e| {
            let api = self.nats.api(&format!("CONSUMER.INFO.{stream}.{name}"));
            failed(self.nats.refused.of(&api).unwrap_or_else(|| reason(&e)))
        })?;
        consumers.insert(queue.to_owned(), consumer.clone());
        Ok(consumer)
    }

    /// Requests one job. With `wait` the request stays open for a while.
    async fn ask(&self, queue: &str, wait: bool) -> Result<Option<Box<dyn Delivery>>, BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("take a job of {queue}"), reason };
        let consumer = self.consumer(queue).await?;
        let asked = async {
            let mut batch = if wait {
                consumer.batch().max_messages(1).expires(WAIT).messages().await
            } else {
                consumer.fetch().max_messages(1).messages().await
            }
            .map_err(|e| failed(reason(&e)))?;
            batch.next().await.transpose().map_err(|e| failed(e.to_string()))
        };
        match tokio::time::timeout(WAIT + Duration::from_secs(2), asked).await {
            Ok(Ok(Some(message))) => {
                let lease = consumer.cached_info().config.ack_wait;
                self.lease(queue, message, lease).await
            }
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) => {
                self.consumers.lock().await.remove(queue);
                Err(error)
            }
            Err(_) if self.nats.connected() => Ok(None),
            Err(_) => Err(failed("the server does not answer".into())),
        }
    }

    async fn lease(
        &self,
        queue: &str,
        message: async_nats::jetstream::Message,
        lease: Duration,
    ) -> Result<Option<Box<dyn Delivery>>, BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("take a job of {queue}"), reason };
        let attempt = message.info().map_err(|e| failed(e.to_string()))?.delivered;
        let (message, acker) = message.split();
        let held = Held::new(acker, lease);
        let header = |name: &str| message.headers.as_ref().and_then(|h| h.get(name)).map(|v| v.as_str().to_owned());
        let written = header(PROTOCOL).filter(|_| queue.starts_with(TASKS));
        if let Some(found) = written.filter(|found| *found != WIRE_VERSION.to_string()) {
            if found.parse::<u16>().is_ok_and(|found| found < WIRE_VERSION) {
                // No worker of that version can join any more. The log still has the task, so a Hub requests it again.
                tracing::warn!(queue, found, "removed a job of an older protocol version; a Hub will request it again");
                held.answer(AckKind::Term).await?;
                return Ok(None);
            }
            held.answer(AckKind::Nak(Some(OTHER_VERSION))).await?;
            return Err(failed(format!(
                "expected a job of protocol version {WIRE_VERSION}, got {found}; run the same version of casebook everywhere"
            )));
        }
        // Anyone may publish alerts, so they must not refer to our artifacts.
        let named = header(REFERENCE).filter(|_| queue != subject::ALERTS);
        let bytes = match named {
            None => message.payload.to_vec(),
            Some(id) => match self.store.referred(message.subject.as_str(), &id).await {
                Ok(bytes) => bytes,
                // An error here would deliver the job again and again, so the worker gets an empty one and rejects it.
                Err(StoreError::Corrupt { what, reason }) => {
                    tracing::error!(what, reason, "a job refers to a missing artifact");
                    Vec::new()
                }
                Err(error) => return Err(failed(error.to_string())),
            },
        };
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Ok(Some(Box::new(NatsDelivery { bytes, attempt, held })))
    }

    /// Publishes until the server has confirmed it. The server stores a message with a known id once, however often it is
    /// sent. A lost message whose id it still counts as in progress is sent with another id.
    async fn keep(&self, subject: &str, headers: &HeaderMap, body: Bytes) -> Result<(), BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("publish to {subject}"), reason };
        loop {
            let id = random::<16>().map(|bytes| hex(&bytes)).map_err(|e| failed(e.to_string()))?;
            let message = PublishMessage::build().payload(body.clone()).headers(headers.clone()).message_id(id);
            let mut patience = Patience::until(PENDING);
            loop {
                match self.nats.written(subject, message.clone()).await {
                    Ok(_) => return Ok(()),
                    Err(error) if !pending(&error) => return Err(failed(self.nats.why(subject, &error))),
                    Err(_) if patience.wait().await => {}
                    Err(_) => break,
                }
            }
        }
    }

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(PROTOCOL, WIRE_VERSION.to_string().as_str());
        headers
    }
}

fn job_subject(queue: &str, id: &str) -> String {
    format!("{queue}.{}", id.replace(['/', '.'], "_"))
}

#[async_trait]
impl Bus for NatsBus {
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("put a job into {subject}"), reason };
        let mut headers = Self::headers();
        let body = if bytes.len() > INLINE {
            let artifact = self.store.put(&bytes).await.map_err(|e| failed(e.to_string()))?;
            headers.insert(REFERENCE, artifact.as_str());
            Vec::new()
        } else {
            bytes
        };
        let message = PublishMessage::build().payload(body.into()).headers(headers);
        let job = job_subject(subject, id);
        let mut patience = Patience::until(PENDING);
        loop {
            match self.nats.written(&job, message.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) if there_already(&error) => {}
                Err(error) => return Err(failed(self.nats.why(&job, &error))),
            }
            let Some((stream, _)) = streams::consumer_of(subject) else { return Ok(()) };
            if self.store.read(stream, &job, None).await.map_err(|e| failed(e.to_string()))?.is_some() {
                return Ok(());
            }
            // The job was done in between, or the server counts one that it does not have.
            if !patience.wait().await {
                self.nats.step_down(stream).await;
                patience = Patience::until(PENDING);
            }
        }
    }

    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError> {
        loop {
            if let Some(delivery) = self.ask(subject, true).await? {
                return Ok(delivery);
            }
        }
    }

    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError> {
        self.ask(subject, false).await
    }

    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("publish to {subject}"), reason };
        let mut body = bytes;
        if body.len() > self.nats.client.server_info().max_payload.saturating_sub(1024) {
            if !PUBLIC.iter().any(|prefix| subject.starts_with(prefix)) {
                return Err(failed(format!("the message has {} bytes, more than the server accepts", body.len())));
            }
            let artifact = self.store.put(&body).await.map_err(|e| failed(e.to_string()))?;
            body = stub(&artifact, &body);
        }
        let mut headers = Self::headers();
        if let Some(key) = self.nats.mac.as_ref().filter(|_| signed(subject)) {
            key.sign(subject, &mut headers, &body);
        }
        if KEPT.iter().any(|prefix| subject.starts_with(prefix)) {
            return self.keep(subject, &headers, body.into()).await;
        }
        let sent = self.nats.client.publish_with_headers(subject.to_owned(), headers, body.into()).await;
        sent.map_err(|e| failed(reason(&e)))
    }

    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("listen to {subject}"), reason };
        let listening = self.nats.client.subscribe(subject.to_owned()).await.map_err(|e| failed(reason(&e)))?;
        Ok(Box::new(Listener { listening, key: self.nats.mac.clone() }))
    }

    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError> {
        let failed = |reason: String| BusError::Failed { doing: format!("read the last of {subject}"), reason };
        let last = self.nats.last_of(streams::LIVE, subject).await.map_err(failed)?;
        // A forged last event would keep a Hub from publishing what comes before it.
        let ours = last
            .filter(|message| own(self.nats.mac.as_ref(), &message.subject, Some(&message.headers), &message.payload));
        Ok(ours.map(|message| message.payload.to_vec()))
    }
}

/// The replacement for JSON that is too large: the artifact, and the fields that identify it.
fn stub(artifact: &ArtifactId, bytes: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut stub = serde_json::Map::new();
    for key in ["v", "investigation", "seq", "at", "hash", "version"] {
        if let Some(found) = value.get(key) {
            stub.insert(key.to_owned(), found.clone());
        }
    }
    stub.insert("artifact".into(), artifact.to_string().into());
    stub.insert("bytes".into(), bytes.len().into());
    serde_json::Value::Object(stub).to_string().into_bytes()
}

/// A job under lease. A separate task extends the lease. A job that is dropped without an answer is returned.
struct Held {
    acker: Option<Arc<Acker>>,
    extending: AbortHandle,
}

impl Held {
    fn new(acker: Acker, lease: Duration) -> Self {
        let acker = Arc::new(acker);
        let held = Arc::clone(&acker);
        let extending = tokio::spawn(async move {
            loop {
                tokio::time::sleep(lease / 3).await;
                if let Err(error) = held.ack_with(AckKind::Progress).await {
                    meter::lease_lost();
                    tracing::warn!(%error, "could not extend lease; another worker may receive this job");
                }
            }
        });
        Self { acker: Some(acker), extending: extending.abort_handle() }
    }

    async fn answer(mut self, kind: AckKind) -> Result<(), BusError> {
        let failed = |reason: String| BusError::Failed { doing: "answer a job".into(), reason };
        self.extending.abort();
        match self.acker.take() {
            Some(acker) => acker.ack_with(kind).await.map_err(|e| failed(e.to_string())),
            None => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.extending.abort();
        let Some(acker) = self.acker.take() else { return };
        // Without a runtime the process is ending, and its lease expires.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { acker.ack_with(AckKind::Nak(None)).await });
        }
    }
}

struct NatsDelivery {
    bytes: Vec<u8>,
    attempt: u32,
    held: Held,
}

#[async_trait]
impl Delivery for NatsDelivery {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn attempt(&self) -> u32 {
        self.attempt
    }

    async fn done(self: Box<Self>) -> Result<(), BusError> {
        self.held.answer(AckKind::Ack).await
    }

    async fn back(self: Box<Self>, delay: Duration) -> Result<(), BusError> {
        self.held.answer(AckKind::Nak(Some(delay))).await
    }
}

/// False, with a warning, for a message that should be from a Hub and is not.
fn own(key: Option<&MacKey>, subject: &str, headers: Option<&HeaderMap>, payload: &[u8]) -> bool {
    let Some(key) = key.filter(|_| signed(subject)) else { return true };
    let checked = key.check(subject, headers.unwrap_or(&HeaderMap::new()), payload);
    if let Err(why) = checked {
        tracing::warn!(subject, why, "ignored a message that no Hub published");
    }
    checked.is_ok()
}

struct Listener {
    listening: async_nats::Subscriber,
    key: Option<MacKey>,
}

#[async_trait]
impl Subscription for Listener {
    async fn next(&mut self) -> Option<Message> {
        loop {
            let message = self.listening.next().await?;
            if own(self.key.as_ref(), &message.subject, message.headers.as_ref(), &message.payload) {
                return Some(Message { subject: message.subject.to_string(), bytes: message.payload.to_vec() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_names_the_event_and_where_it_is() {
        let event = br#"{"v":2,"investigation":"i","seq":7,"event":{"type":"opened"}}"#;
        let id = ArtifactId::of(event);
        let stub: serde_json::Value = serde_json::from_slice(&stub(&id, event)).unwrap();
        assert_eq!((&stub["seq"], &stub["artifact"]), (&7.into(), &id.as_str().into()));
        assert!(stub.get("event").is_none());
    }

    #[test]
    fn the_id_of_a_job_is_one_token_of_its_subject() {
        assert_eq!(job_subject("casebook.task.critic", "3f-1/r2.review"), "casebook.task.critic.3f-1_r2_review");
    }
}
