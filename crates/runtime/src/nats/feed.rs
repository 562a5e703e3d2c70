//! The feed: the stream of all logs in the order of its sequence numbers.

use async_nats::Subscriber;
use async_nats::jetstream::message::StreamMessage;
use async_trait::async_trait;
use casebook_protocol::{Recorded, subject};
use futures_util::StreamExt;
use futures_util::future::try_join_all;

use super::{NatsStore, reason, streams};
use crate::store::{Appended, Feed, News, StoreError, read_events};

const LOGS: &str = "casebook.log.*";
const EVENTS: &str = "casebook.events.>";
/// How many messages to request at once.
const PAGE: u64 = 128;
/// After so long the stream is looked at, since a message on the subject of events may be lost.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(3);

impl NatsStore {
    pub(super) async fn page(&self, after: u64) -> Result<Feed, StoreError> {
        let Some(first) = self.read(streams::LOG, LOGS, Some(after + 1)).await? else {
            return Ok(Feed { appended: Vec::new(), position: after });
        };
        let last = self.last_message().await?.min(first.sequence + PAGE - 1);
        let rest = (first.sequence + 1..=last).map(|from| self.read(streams::LOG, LOGS, Some(from)));
        let rest = try_join_all(rest).await?;
        let mut page: Vec<StreamMessage> = std::iter::once(first).chain(rest.into_iter().flatten()).collect();
        // A request for a missing message returns the next one.
        page.dedup_by_key(|message| message.sequence);
        let mut feed = Feed { appended: Vec::new(), position: after };
        for message in page {
            feed.position = message.sequence;
            feed.appended.extend(self.appended(message).await?);
        }
        Ok(feed)
    }

    /// `None` for a message that no Hub wrote.
    async fn appended(&self, message: StreamMessage) -> Result<Option<Appended>, StoreError> {
        let subject = message.subject.to_string();
        let id = subject::investigation_of_log(&subject);
        let Some(investigation) = id.filter(|_| self.foreign_reason(&subject, &message).is_none()) else {
            return Ok(None);
        };
        let what = || format!("message {} on {subject}", message.sequence);
        let entries = match self.outlined(&subject, &message).await {
            Ok(bytes) => read_events::<Recorded>(what, &bytes),
            Err(error @ StoreError::Corrupt { .. }) => Err(error),
            Err(error) => return Err(error),
        };
        Ok(Some(Appended { position: message.sequence, investigation, entries }))
    }

    /// The sequence of the last message that is still there.
    pub(super) async fn last_of_all(&self) -> Result<u64, StoreError> {
        Ok(self.read(streams::LOG, LOGS, None).await?.map_or(0, |message| message.sequence))
    }

    async fn last_message(&self) -> Result<u64, StoreError> {
        let failed = |reason: String| StoreError::Unavailable { doing: "read the feed".into(), reason };
        let stream = self.nats.jetstream.get_stream(streams::LOG).await.map_err(|e| failed(reason(&e)))?;
        Ok(stream.cached_info().state.last_sequence)
    }

    pub(super) async fn listen(&self) -> Result<Box<dyn News>, StoreError> {
        let failed = |reason: String| StoreError::Unavailable { doing: "listen for news".into(), reason };
        let heard = self.nats.client.subscribe(EVENTS).await.map_err(|e| failed(reason(&e)))?;
        Ok(Box::new(Listening(heard)))
    }
}

struct Listening(Subscriber);

#[async_trait]
impl News for Listening {
    async fn wait(&mut self) -> Result<(), StoreError> {
        match tokio::time::timeout(SILENCE, self.0.next()).await {
            Ok(None) => Err(StoreError::Unavailable {
                doing: "listen for news".into(),
                reason: "the connection is closed".into(),
            }),
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }
}
