//! The streams and consumers with their settings, which are created by a Hub and checked at every start.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Compression, Config, DiscardPolicy, RetentionPolicy, StorageType};
use casebook_protocol::Severity;
use casebook_protocol::subject::{self, Queue};

use super::{Connection, NatsError, reason};

mod compare;

use compare::{Different, same};

pub const ALERTS: &str = "CASEBOOK_ALERTS";
pub const CASES: &str = "CASEBOOK_CASES";
pub const TASKS: &str = "CASEBOOK_TASKS";
pub const LOG: &str = "CASEBOOK_LOG";
pub const ARTIFACTS: &str = "CASEBOOK_ARTIFACTS";
/// The last event and the last Timeline of each investigation.
pub const LIVE: &str = "CASEBOOK_LIVE";
pub const REPORTS: &str = "CASEBOOK_REPORTS";
pub const ACCEPTED: &str = "CASEBOOK_ACCEPTED";
pub const DEAD: &str = "CASEBOOK_DEAD";

/// The default time after which a job without a sign of life is delivered again. Its holder sends one every third of
/// this time.
pub const LEASE: Duration = Duration::from_secs(30);

/// The streams that other programs may follow, each with the subjects that they get.
pub const FOLLOWED: [(&str, &str); 4] = [
    (ACCEPTED, subject::ACCEPTED),
    (LOG, "casebook.log.*"),
    (LIVE, "casebook.timeline.*"),
    (REPORTS, subject::REPORTS),
];
/// The most consumers of a followed stream, since each takes memory of the server.
const FOLLOWERS: usize = 64;
/// Messages that a follower may have without an acknowledgement, and the time until it gets one of them again.
const UNACKNOWLEDGED: (i64, Duration) = (1_000, Duration::from_secs(60));

const QUEUE: i64 = 1_000_000;

pub fn results(writer: Option<&Queue>) -> String {
    match writer {
        None => "CASEBOOK_RESULTS_hub".to_owned(),
        Some(Queue { role, domain: None }) => format!("CASEBOOK_RESULTS_{}", role.name()),
        Some(Queue { role, domain: Some(domain) }) => format!("CASEBOOK_RESULTS_{}_{domain}", role.name()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Servers that hold each message: 1 for one server, 3 for a cluster of three.
    pub replicas: usize,
    /// The time after which a job without a sign of life is delivered again. Holders read it from the consumer.
    pub lease: Duration,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { replicas: 1, lease: LEASE }
    }
}

fn stream(name: &str, subject: &str, keeping: Keeping) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: -1,
        max_consumers: -1,
        storage: StorageType::File,
        num_replicas: keeping.replicas,
        duplicate_window: Duration::from_secs(120),
        // A server that is killed may not be able to read blocks that it compressed (seen with 2.15.1).
        compression: Some(Compression::None),
        discard: DiscardPolicy::New,
        retention: RetentionPolicy::Limits,
        ..Config::default()
    }
}

/// A work queue in which each job has its own subject, so that it cannot wait twice.
fn queue(name: &str, subject: &str, keeping: Keeping) -> Config {
    Config {
        retention: RetentionPolicy::WorkQueue,
        max_messages: QUEUE,
        max_messages_per_subject: 1,
        discard_new_per_subject: true,
        ..stream(name, subject, keeping)
    }
}

fn fixed(keeping: Keeping) -> Vec<Config> {
    let live = Config {
        subjects: vec!["casebook.events.*".to_owned(), "casebook.timeline.*".to_owned()],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::Old,
        ..stream(LIVE, "", keeping)
    };
    let alerts = Config {
        retention: RetentionPolicy::WorkQueue,
        max_messages: QUEUE,
        ..stream(ALERTS, subject::ALERTS, keeping)
    };
    let artifacts = Config { allow_direct: true, ..stream(ARTIFACTS, "casebook.artifact.>", keeping) };
    vec![
        alerts,
        queue(CASES, "casebook.hub.case.>", keeping),
        queue(TASKS, "casebook.task.>", keeping),
        stream(LOG, "casebook.log.*", keeping),
        stream(&results(None), "casebook.result.hub.>", keeping),
        artifacts,
        live,
        stream(REPORTS, subject::REPORTS, keeping),
        stream(ACCEPTED, subject::ACCEPTED, keeping),
        stream(DEAD, "casebook.dead.>", keeping),
    ]
}

fn consumer(name: &str, filter: String, keeping: Keeping) -> pull::Config {
    pull::Config {
        durable_name: Some(name.to_owned()),
        filter_subject: filter,
        ack_policy: AckPolicy::Explicit,
        ack_wait: keeping.lease,
        // We give up poisoned jobs ourselves. With the server's limit they would stay in the stream.
        max_deliver: -1,
        max_ack_pending: 100_000,
        num_replicas: keeping.replicas,
        ..pull::Config::default()
    }
}

pub(crate) fn consumer_of(queue: &str) -> Option<(&'static str, String)> {
    if let Some(name) = queue.strip_prefix("casebook.task.") {
        return Some((TASKS, name.replace('.', "-")));
    }
    if let Some(name) = queue.strip_prefix("casebook.hub.case.") {
        return Some((CASES, name.to_owned()));
    }
    (queue == subject::ALERTS).then(|| (ALERTS, "hub".to_owned()))
}

impl Connection {
    /// Creates the streams and consumers that exist in every installation, and checks existing ones.
    ///
    /// # Errors
    /// [`NatsError::Different`] names each setting that differs.
    pub async fn prepare(&self, keeping: Keeping) -> Result<(), NatsError> {
        let mut different = Different::default();
        for config in fixed(keeping) {
            different.take(self.ensure_stream(config).await)?;
        }
        for severity in Severity::ALL.into_iter().rev() {
            let filter = format!("{}.>", subject::cases(severity));
            different.take(self.ensure_consumer(CASES, consumer(severity.name(), filter, keeping)).await)?;
        }
        let alerts = consumer("hub", subject::ALERTS.to_owned(), keeping);
        different.take(self.ensure_consumer(ALERTS, alerts).await)?;
        different.all()
    }

    /// Creates the consumer of `queue` and the stream of its results.
    pub async fn prepare_queue(&self, queue: &Queue, keeping: Keeping) -> Result<(), NatsError> {
        let mut different = Different::default();
        let results = stream(&results(Some(queue)), &format!("casebook.result.{queue}.>"), keeping);
        different.take(self.ensure_stream(results).await)?;
        let filter = format!("{}.>", subject::tasks(queue.role, queue.domain.as_ref()));
        different.take(self.ensure_consumer(TASKS, consumer(&queue.name(), filter, keeping)).await)?;
        different.all()
    }

    /// Creates the consumers of another program, with one name in each stream of [`FOLLOWED`]. They begin with the
    /// first message that is stored, or with the next one.
    ///
    /// # Errors
    /// [`NatsError::Different`] if they exist and begin elsewhere.
    pub async fn prepare_follower(&self, name: &str, from_start: bool, keeping: Keeping) -> Result<(), NatsError> {
        let failed = |reason: String| NatsError::Failed { doing: format!("make the consumers of {name}"), reason };
        let deliver_policy = if from_start { DeliverPolicy::All } else { DeliverPolicy::New };
        let (max_ack_pending, ack_wait) = UNACKNOWLEDGED;
        let mut different = Different::default();
        for (stream, filter) in FOLLOWED {
            let found = self.jetstream.get_stream(stream).await.map_err(|e| failed(reason(&e)))?;
            let full = found.cached_info().state.consumer_count >= FOLLOWERS;
            if full && found.get_consumer::<pull::Config>(name).await.is_err() {
                return Err(failed(format!("{stream} has {FOLLOWERS} consumers already; delete unused ones")));
            }
            let asked = consumer(name, filter.to_owned(), keeping);
            let asked = pull::Config { deliver_policy, max_ack_pending, ack_wait, ..asked };
            different.take(self.ensure_consumer(stream, asked).await)?;
        }
        different.all()
    }

    async fn ensure_stream(&self, asked: Config) -> Result<(), NatsError> {
        let doing = |verb: &str| format!("{verb} stream {}", asked.name);
        let found = match self.jetstream.get_stream(&asked.name).await {
            Ok(stream) => self.uncompressed(&asked, stream.cached_info().config.clone()).await?,
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(e) if e.code() == 404 => {
                    // Another Hub may create the same stream now. That succeeds if the settings are equal.
                    let made = self.jetstream.create_stream(asked.clone()).await;
                    made.map_err(|e| NatsError::Failed { doing: doing("create"), reason: reason(&e) })?
                        .cached_info()
                        .config
                        .clone()
                }
                _ => return Err(NatsError::Failed { doing: doing("read"), reason: reason(&error) }),
            },
        };
        if asked.retention == RetentionPolicy::Limits && !found.max_age.is_zero() {
            let (stream, after) = (&asked.name, found.max_age);
            tracing::warn!(stream, ?after, "the stream deletes old messages; a longer investigation loses its log");
        }
        same(&format!("stream {}", asked.name), &asked, &found)
    }

    /// Turns off the compression of a stream that an earlier version made.
    async fn uncompressed(&self, asked: &Config, found: Config) -> Result<Config, NatsError> {
        if !matches!(found.compression, Some(Compression::S2)) {
            return Ok(found);
        }
        let changed = Config { compression: asked.compression.clone(), ..found };
        let failed =
            |reason: String| NatsError::Failed { doing: format!("turn off the compression of {}", asked.name), reason };
        let info = self.jetstream.update_stream(changed).await.map_err(|e| failed(reason(&e)))?;
        tracing::info!(stream = asked.name, "turned off the compression of this stream, which can lose messages");
        Ok(info.config)
    }

    async fn ensure_consumer(&self, stream: &str, asked: pull::Config) -> Result<(), NatsError> {
        let name = asked.durable_name.clone().unwrap_or_default();
        let what = format!("consumer {name} of stream {stream}");
        let made = self.jetstream.create_consumer_strict_on_stream(asked.clone(), stream).await;
        let found = match made {
            Ok(consumer) => consumer.cached_info().config.clone(),
            Err(error) => {
                let there = self.jetstream.get_consumer_from_stream::<pull::Config, _, _>(&name, stream).await;
                match there {
                    Ok(consumer) => consumer.cached_info().config.clone(),
                    Err(_) => {
                        return Err(NatsError::Failed { doing: format!("create {what}"), reason: reason(&error) });
                    }
                }
            }
        };
        let asked = async_nats::jetstream::consumer::IntoConsumerConfig::into_consumer_config(asked);
        same(&what, &asked, &found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_setting_with_both_values() {
        let asked = queue(TASKS, "casebook.task.>", Keeping::default());
        let found = Config { retention: RetentionPolicy::Limits, discard_new_per_subject: false, ..asked.clone() };
        assert_eq!(same("stream CASEBOOK_TASKS", &asked, &asked), Ok(()));
        let error = same("stream CASEBOOK_TASKS", &asked, &found).unwrap_err().to_string();
        assert!(error.contains("expected retention \"workqueue\", got \"limits\""), "{error}");
        assert!(error.contains("expected discard_new_per_subject true, got null"), "{error}");
    }

    #[test]
    fn what_would_lose_a_job_or_a_record_is_a_difference_and_what_the_server_fills_in_is_none() {
        let keeping = Keeping::default();
        let worker = || consumer("director", "casebook.task.director.>".into(), keeping);
        let whole = |config| async_nats::jetstream::consumer::IntoConsumerConfig::into_consumer_config(config);
        let refused = |found: pull::Config, what: &str| {
            let error = same("consumer director", &whole(worker()), &whole(found)).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        refused(pull::Config { max_deliver: 2, ..worker() }, "expected max_deliver -1, got 2");
        refused(pull::Config { backoff: vec![Duration::from_secs(1)], ..worker() }, "got [1000000000]");
        let filled = pull::Config { max_waiting: 512, ..worker() };
        assert_eq!(same("consumer director", &whole(worker()), &whole(filled)), Ok(()));
        let log = || stream(LOG, "casebook.log.*", keeping);
        let error = same("stream CASEBOOK_LOG", &log(), &Config { max_messages_per_subject: 5, ..log() });
        assert!(error.unwrap_err().to_string().contains("expected max_msgs_per_subject -1, got 5"));
        let day = Duration::from_secs(86_400);
        assert_eq!(
            same("stream CASEBOOK_LOG", &log(), &Config { max_age: day, ..log() }),
            Ok(()),
            "its owner's choice"
        );
        let tasks = || queue(TASKS, "casebook.task.>", keeping);
        let error = same("stream CASEBOOK_TASKS", &tasks(), &Config { max_age: day, ..tasks() });
        assert!(error.unwrap_err().to_string().contains("got 86400000000000"));
    }

    #[test]
    fn another_lease_is_said_in_seconds_with_what_to_do() {
        let lease = |lease| {
            let keeping = Keeping { lease: std::time::Duration::from_secs(lease), ..Keeping::default() };
            let asked = consumer("critic", "casebook.task.critic.>".into(), keeping);
            async_nats::jetstream::consumer::IntoConsumerConfig::into_consumer_config(asked)
        };
        let error = same("consumer critic of stream CASEBOOK_TASKS", &lease(7), &lease(5)).unwrap_err().to_string();
        assert!(error.contains("expected a lease of 7 s, got 5 s; give every Hub `lease = 5`"), "{error}");
    }

    #[test]
    fn every_queue_has_its_consumer() {
        let check = |queue: &str, stream, name: &str| assert_eq!(consumer_of(queue), Some((stream, name.to_owned())));
        check("casebook.task.expert.network", TASKS, "expert-network");
        check("casebook.task.critic", TASKS, "critic");
        check("casebook.hub.case.critical", CASES, "critical");
        check("casebook.alerts", ALERTS, "hub");
        assert_eq!(consumer_of("casebook.events.x"), None);
    }
}
