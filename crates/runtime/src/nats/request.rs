//! Requests and their answers: what is no job and no notice.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::{Request, RequestErrorKind, Subscriber};
use casebook_protocol::DeadLetter;
use futures_util::StreamExt;

use super::{Connection, NatsError, reason, streams};

pub struct Asked {
    pub subject: String,
    pub bytes: Vec<u8>,
    reply: Option<async_nats::Subject>,
}

/// Requests as they come in.
pub struct Requests(Subscriber);

impl Requests {
    /// The next one; none when the connection is closed for good.
    pub async fn next(&mut self) -> Option<Asked> {
        let message = self.0.next().await?;
        Some(Asked { subject: message.subject.to_string(), bytes: message.payload.to_vec(), reply: message.reply })
    }
}

impl Connection {
    /// Takes requests on `subject`; of everyone in `group` one gets each.
    pub async fn serve(&self, subject: &str, group: &str) -> Result<Requests, NatsError> {
        let serving = self.client.queue_subscribe(subject.to_owned(), group.to_owned()).await;
        serving
            .map(Requests)
            .map_err(|e| NatsError::Failed { doing: format!("take requests on {subject}"), reason: reason(&e) })
    }

    /// Answers a request. Nobody may wait for it any more.
    pub async fn answer(&self, asked: &Asked, bytes: Vec<u8>) {
        let Some(reply) = &asked.reply else { return };
        if let Err(error) = self.client.publish(reply.clone(), bytes.into()).await {
            tracing::warn!(%error, subject = asked.subject, "a request was not answered");
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`NatsError::NoResponders`] when no process takes the request, [`NatsError::Failed`] when no answer comes in
    /// time, or we may not ask.
    pub async fn request(&self, subject: &str, bytes: Vec<u8>, patience: Duration) -> Result<Vec<u8>, NatsError> {
        let request = Request::new().payload(bytes.into()).timeout(Some(patience));
        match self.client.send_request(subject.to_owned(), request).await {
            Ok(answer) => Ok(answer.payload.to_vec()),
            Err(error) => match self.refused.of(subject) {
                None if error.kind() == RequestErrorKind::NoResponders => {
                    Err(NatsError::NoResponders { subject: subject.to_owned() })
                }
                refused => {
                    let reason = refused.unwrap_or_else(|| reason(&error));
                    Err(NatsError::Failed { doing: format!("ask on {subject}"), reason })
                }
            },
        }
    }

    /// Whether the server answers within `patience`: a connection may stand though nobody is behind it.
    /// Only a Hub may ask.
    pub async fn answers(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.jetstream.query_account()).await.is_ok_and(|answer| answer.is_ok())
    }

    /// Tells whoever listens.
    pub async fn tell(&self, subject: &str, bytes: Vec<u8>) -> Result<(), NatsError> {
        let sent = self.client.publish(subject.to_owned(), bytes.into()).await;
        sent.map_err(|e| NatsError::Failed { doing: format!("publish to {subject}"), reason: reason(&e) })
    }

    /// The last letter on one of the subjects of what was given up.
    pub async fn last_letter(&self, subject: &str) -> Result<Option<DeadLetter>, NatsError> {
        let failed =
            |why: String| NatsError::Failed { doing: format!("read the last letter on {subject}"), reason: why };
        let last = self.last_of(streams::DEAD, subject).await.map_err(failed)?;
        let letter = last.map(|message| serde_json::from_slice(&message.payload)).transpose();
        letter.map_err(|e| failed(e.to_string()))
    }

    /// Puts a message into a stream and waits until it is stored.
    ///
    /// # Errors
    /// [`NatsError::Failed`] when it is not: no stream takes it, or the server is away.
    pub async fn store(&self, subject: &str, bytes: Vec<u8>) -> Result<(), NatsError> {
        let message = PublishMessage::build().payload(bytes.into());
        let stored = self.published(subject, message).await;
        stored
            .map(drop)
            .map_err(|e| NatsError::Failed { doing: format!("publish to {subject}"), reason: self.why(subject, &e) })
    }
}
