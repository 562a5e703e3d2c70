//! What the streams hold, and whether the server stores a message in them. Only a Hub has the permissions.

use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::message::PublishMessage;
use futures_util::TryStreamExt;

use super::outage::advice;
use super::{Connection, NatsError, reason, streams};

/// A token that no id and no queue has.
const TOKEN: &str = "DOCTOR";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    pub name: String,
    pub messages: u64,
    pub bytes: u64,
    /// The limit of `bytes`, if the stream has one.
    pub most: Option<u64>,
    /// Why the server did not store a message; `None` if it did or was not asked.
    pub refused: Option<String>,
}

/// A subject whose messages no consumer takes and no reader finds.
fn harmless(stream: &str, subject: &str) -> Option<String> {
    let fixed = [streams::CASES, streams::TASKS, streams::LOG, streams::ARTIFACTS];
    let known = fixed.contains(&stream) || stream.starts_with("CASEBOOK_RESULTS_");
    let prefix = subject.strip_suffix('>').or_else(|| subject.strip_suffix('*'))?;
    known.then(|| format!("{prefix}{TOKEN}"))
}

impl Connection {
    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// The bytes that all streams hold on the server's disk.
    pub async fn stored_bytes(&self) -> Result<u64, NatsError> {
        let account = self.jetstream.query_account().await;
        account.map(|account| account.storage).map_err(|e| failed("read the account", &e))
    }

    /// The streams of Casebook in order of name. Writes a test message to those that allow it, and removes it.
    pub async fn survey(&self) -> Result<Vec<StreamState>, NatsError> {
        let names: Vec<String> =
            self.jetstream.stream_names().try_collect().await.map_err(|e| failed("list the streams", &e))?;
        let mut all = Vec::new();
        for name in names.into_iter().filter(|name| name.starts_with("CASEBOOK_")) {
            let stream =
                self.jetstream.get_stream(&name).await.map_err(|e| failed(&format!("read stream {name}"), &e))?;
            let info = stream.cached_info();
            let probe = info.config.subjects.first().and_then(|subject| harmless(&name, subject));
            let refused = match probe {
                Some(subject) => self.probe(&name, &subject).await?,
                None => None,
            };
            all.push(StreamState {
                messages: info.state.messages,
                bytes: info.state.bytes,
                most: u64::try_from(info.config.max_bytes).ok(),
                refused,
                name,
            });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    async fn probe(&self, stream: &str, subject: &str) -> Result<Option<String>, NatsError> {
        let doing = format!("remove the test message from stream {stream}");
        let stream = self.jetstream.get_stream_no_info(stream).await.map_err(|e| failed(&doing, &e))?;
        match self.published(subject, PublishMessage::build()).await {
            Ok(ack) => {
                stream.delete_message(ack.sequence).await.map_err(|e| failed(&doing, &e))?;
                Ok(None)
            }
            Err(error) => {
                let words = self.why(subject, &error);
                let advice = advice(&words, &self.server_version());
                Ok(Some(format!("{words}; {advice}")))
            }
        }
    }
}

/// The jobs of one work queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// `alerts`, the severity of waiting alerts such as `case-high`, or the queue of tasks such as `expert-network`.
    pub name: String,
    /// Jobs that no process has taken.
    pub waiting: u64,
    /// Jobs under lease.
    pub held: u64,
}

impl Connection {
    /// All work queues. Only a Hub has the permissions.
    pub async fn queues(&self) -> Result<Vec<QueueState>, NatsError> {
        let mut all = Vec::new();
        for (name, prefix) in [(streams::ALERTS, "alerts"), (streams::CASES, "case-"), (streams::TASKS, "")] {
            let doing = format!("read the queues of stream {name}");
            let stream = self.jetstream.get_stream_no_info(name).await.map_err(|e| failed(&doing, &e))?;
            let consumers: Vec<Info> = stream.consumers().try_collect().await.map_err(|e| failed(&doing, &e))?;
            all.extend(consumers.into_iter().map(|of| QueueState {
                name: if name == streams::ALERTS { prefix.to_owned() } else { format!("{prefix}{}", of.name) },
                waiting: of.num_pending,
                held: of.num_ack_pending as u64,
            }));
        }
        Ok(all)
    }
}

fn failed(doing: &str, error: &dyn std::error::Error) -> NatsError {
    NatsError::Failed { doing: doing.to_owned(), reason: reason(error) }
}

#[cfg(test)]
mod tests {
    use casebook_protocol::InvestigationId;

    use super::*;

    #[test]
    fn a_test_message_goes_only_where_no_consumer_takes_it() {
        assert_eq!(harmless(streams::LOG, "casebook.log.*").as_deref(), Some("casebook.log.DOCTOR"));
        assert_eq!(harmless(streams::TASKS, "casebook.task.>").as_deref(), Some("casebook.task.DOCTOR"));
        let results = streams::results(None);
        assert_eq!(harmless(&results, "casebook.result.hub.>").as_deref(), Some("casebook.result.hub.DOCTOR"));
        for (stream, subject) in [
            (streams::LIVE, "casebook.events.*"),
            (streams::DEAD, "casebook.dead.>"),
            (streams::ALERTS, "casebook.alerts"),
        ] {
            assert_eq!(harmless(stream, subject), None, "{stream}");
        }
        assert!(InvestigationId::new(TOKEN).is_err(), "no list of investigations shows it");
    }
}
