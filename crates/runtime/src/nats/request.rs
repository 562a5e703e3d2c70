//! Requests and their answers.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::{Request, RequestErrorKind, Subscriber};
use casebook_protocol::subject;
use casebook_protocol::{DeadLetter, one_line};
use futures_util::StreamExt;

use super::permit::{self, User};
use super::{Connection, NatsError, reason, streams};

/// Characters of a subject in a log line.
const SHOWN: usize = 200;

pub struct Asked {
    pub subject: String,
    pub bytes: Vec<u8>,
    reply: Option<async_nats::Subject>,
}

pub struct Requests(Subscriber);

impl Requests {
    /// None if the connection is closed for good.
    pub async fn next(&mut self) -> Option<Asked> {
        let message = self.0.next().await?;
        Some(Asked { subject: message.subject.to_string(), bytes: message.payload.to_vec(), reply: message.reply })
    }
}

/// Whether `reply` is an address of a user who may ask on `asked`, or one that the server put in its place.
fn may_answer(asked: &str, reply: &str) -> bool {
    let asker = match asked.strip_prefix(subject::JOINS.trim_end_matches('>')) {
        Some(queue) => queue.replace('.', "-"),
        None if asked == subject::OPEN => User::Publisher.name(),
        None if asked == subject::FOLLOW => User::Integration.name(),
        None => return false,
    };
    reply.starts_with(permit::REPLACED) || reply.starts_with(&permit::inbox(&asker))
}

impl Connection {
    /// Takes requests on `subject`. One process of `group` gets each request.
    pub async fn serve(&self, subject: &str, group: &str) -> Result<Requests, NatsError> {
        let serving = self.client.queue_subscribe(subject.to_owned(), group.to_owned()).await;
        serving
            .map(Requests)
            .map_err(|e| NatsError::Failed { doing: format!("take requests on {subject}"), reason: reason(&e) })
    }

    /// Answers, unless the address belongs to another user than those who may ask: the Hub may publish more than they.
    pub async fn answer(&self, asked: &Asked, bytes: Vec<u8>) {
        let Some(reply) = &asked.reply else { return };
        if !may_answer(&asked.subject, reply) {
            let (subject, reply) = (one_line(&asked.subject, SHOWN), one_line(reply, SHOWN));
            tracing::warn!(subject, reply, "did not answer a request: its reply subject is not an inbox of the asker");
            return;
        }
        if let Err(error) = self.client.publish(reply.clone(), bytes.into()).await {
            tracing::warn!(%error, subject = asked.subject, "could not answer a request");
        }
    }

    /// [`NatsError::NoResponders`] if no process takes the request.
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

    /// Checks that the server answers, since a connection may look open after the server is gone. Only a Hub has the
    /// permission.
    pub async fn answers(&self, patience: Duration) -> bool {
        let asked = tokio::time::timeout(patience, self.jetstream.query_account()).await;
        let answered = asked.is_ok_and(|answer| answer.is_ok());
        self.link.answered(answered);
        answered
    }

    /// Publishes without confirmation.
    pub async fn tell(&self, subject: &str, bytes: Vec<u8>) -> Result<(), NatsError> {
        let sent = self.client.publish(subject.to_owned(), bytes.into()).await;
        sent.map_err(|e| NatsError::Failed { doing: format!("publish to {subject}"), reason: reason(&e) })
    }

    pub async fn last_letter(&self, subject: &str) -> Result<Option<DeadLetter>, NatsError> {
        let failed =
            |why: String| NatsError::Failed { doing: format!("read the last letter on {subject}"), reason: why };
        let last = self.last_of(streams::DEAD, subject).await.map_err(failed)?;
        let letter = last.map(|message| serde_json::from_slice(&message.payload)).transpose();
        letter.map_err(|e| failed(e.to_string()))
    }

    /// Puts a message into a stream and waits until it is stored.
    pub async fn store(&self, subject: &str, bytes: Vec<u8>) -> Result<(), NatsError> {
        let message = PublishMessage::build().payload(bytes.into());
        let stored = self.published(subject, message).await;
        stored
            .map(drop)
            .map_err(|e| NatsError::Failed { doing: format!("publish to {subject}"), reason: self.why(subject, &e) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_answers_only_the_inbox_of_the_asker() {
        for (asked, reply, expect) in [
            ("casebook.open", "_INBOX_publisher.x.1", true),
            ("casebook.open", "_R_.abc.def", true),
            ("casebook.open", "_INBOX_hub.x.1", false),
            ("casebook.open", "_INBOX_publisher", false),
            ("casebook.open", "_INBOX.x.1", false),
            ("casebook.open", "casebook.reports", false),
            ("casebook.follow", "_INBOX_integration.x", true),
            ("casebook.follow", "_INBOX_publisher.x", false),
            ("casebook.open", "$JS.API.STREAM.PURGE.CASEBOOK_LOG", false),
            ("casebook.hub.join.critic", "_INBOX_critic.x", true),
            ("casebook.hub.join.critic", "_INBOX_critics.x", false),
            ("casebook.hub.join.expert.network", "_INBOX_expert-network.x", true),
            ("casebook.hub.join.expert.network", "_INBOX_expert-endpoint.x", false),
            ("casebook.hub.other", "_INBOX_publisher.x", false),
        ] {
            assert_eq!(may_answer(asked, reply), expect, "{asked} {reply}");
        }
    }
}
