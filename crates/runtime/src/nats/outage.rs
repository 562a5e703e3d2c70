//! Writes that the server does not store. They wait and are no failure of the work: [`Connection::written`] tries again
//! until the server has stored the message. After [`LOUD`] the outage is logged, and the process is not ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use casebook_protocol::one_line;

use super::stream::waits;
use super::{Connection, reason, version};

/// The time after which refused writes are reported.
pub(super) const LOUD: Duration = Duration::from_secs(5);
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Characters of the server's words.
const SHOWN: usize = 300;

/// What a server does after its disk was full, once there is room again. Tested with 2.10.26, 2.11.0 to 2.11.3,
/// 2.11.6, 2.11.9, 2.11.11, 2.12.0, 2.12.8, 2.14.0, 2.14.6 and 2.15.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFullDisk {
    /// A stream with a failed write gives its next messages the numbers of earlier ones.
    NumbersAgain,
    GoesOn,
    /// A stream with a failed write refuses every write.
    Refuses,
    /// A stream with a failed write does not answer writes.
    Silent,
}

impl AfterFullDisk {
    /// None if the version cannot be read.
    pub fn of(server: &str) -> Option<Self> {
        version(server).map(|version| match version {
            (2, 0..=10, _) | (2, 11, 0..=1) => Self::NumbersAgain,
            (2, 11, _) => Self::GoesOn,
            (2, 12 | 13, _) => Self::Refuses,
            _ => Self::Silent,
        })
    }

    pub const fn advice(self) -> &'static str {
        match self {
            Self::GoesOn => "make room",
            Self::NumbersAgain | Self::Refuses | Self::Silent => {
                "make room, then restart the server: after a full disk this version needs it"
            }
        }
    }
}

/// What to do about the server's words.
pub(super) fn advice(words: &str, server: &str) -> &'static str {
    const RESTART: &str = AfterFullDisk::Refuses.advice();
    if words.contains("no space left") {
        AfterFullDisk::of(server).map_or(RESTART, AfterFullDisk::advice)
    } else if words.contains("no message cache") || words.contains(AGAIN) {
        RESTART
    } else if words.contains("timed out") {
        "see the log of the server; if its disk is or was full, make room and restart it"
    } else if words.contains("maximum") {
        "raise the limit of this stream (`nats stream edit`), or remove messages from it"
    } else if words.contains("resource") {
        "raise max_file_store of the server, or remove messages from its streams"
    } else if words.contains("no stream") {
        "start a Hub, which creates the streams"
    } else {
        "see the log of the server"
    }
}

/// In the error about a server that numbers messages again.
const AGAIN: &str = "numbers messages again";

struct Write {
    subject: String,
    since: Instant,
    words: String,
}

#[derive(Default)]
struct Writes {
    next: u64,
    refused: BTreeMap<u64, Write>,
    /// Since when an outage is reported.
    told: Option<Instant>,
}

impl Writes {
    /// The write that waits the longest, if it waits for too long.
    fn longest(&self, now: Instant) -> Option<&Write> {
        let longest = self.refused.values().min_by_key(|write| write.since)?;
        (now.saturating_duration_since(longest.since) >= LOUD).then_some(longest)
    }
}

/// The refused writes of a connection. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Outages(Arc<Mutex<Writes>>);

impl Outages {
    fn writes(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, subject: &str) -> Waiting {
        let mut writes = self.writes();
        writes.next += 1;
        Waiting { outages: self.clone(), id: writes.next, subject: subject.to_owned() }
    }
}

/// A write until the server has answered it for good.
struct Waiting {
    outages: Outages,
    id: u64,
    subject: String,
}

impl Waiting {
    /// Returns true if this refusal makes the outage known.
    fn refused(&self, words: String, now: Instant) -> bool {
        let mut writes = self.outages.writes();
        let fresh = || Write { subject: self.subject.clone(), since: now, words: String::new() };
        writes.refused.entry(self.id).or_insert_with(fresh).words = words;
        let since = writes.longest(now).map(|write| write.since);
        if writes.told.is_some() || since.is_none() {
            return false;
        }
        writes.told = since;
        true
    }

    /// While the server is away, nothing is refused.
    fn away(&self) {
        self.outages.writes().refused.remove(&self.id);
    }

    /// How long the outage was, if this answer ends a reported one.
    fn settled(&self, now: Instant) -> Option<Duration> {
        let mut writes = self.outages.writes();
        writes.refused.remove(&self.id);
        if writes.longest(now).is_some() {
            return None;
        }
        writes.told.take().map(|since| now.saturating_duration_since(since))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.away();
    }
}

/// The highest sequence that a server process confirmed for each stream. Another process may begin lower: after a loss of
/// power, or from a backup.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Arc<Confirmed>>>);

#[derive(Debug, Clone, Default)]
struct Confirmed {
    server: String,
    places: BTreeMap<String, u64>,
}

impl Places {
    fn now(&self) -> Arc<Confirmed> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a confirmation. `before` are the places when the message was sent. Fails if an earlier message has the
    /// same or a higher number, since the server then stores messages in the wrong place.
    fn confirm(&self, ack: &PublishAck, server: &str, before: &Confirmed) -> Result<(), u64> {
        let earlier = before.places.get(&ack.stream).filter(|_| before.server == server);
        if let Some(place) = earlier.filter(|place| !ack.duplicate && ack.sequence <= **place) {
            return Err(*place);
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = Arc::make_mut(&mut known);
        if known.server != server {
            *known = Confirmed { server: server.to_owned(), places: BTreeMap::new() };
        }
        let place = known.places.entry(ack.stream.clone()).or_default();
        *place = ack.sequence.max(*place);
        Ok(())
    }
}

impl Connection {
    /// Publishes until the server has stored the message, with no limit of time.
    ///
    /// # Errors
    /// Those that waiting cannot solve: a missing permission, or another message that was written first.
    pub(super) async fn written(&self, subject: &str, message: PublishMessage) -> Result<PublishAck, PublishError> {
        let waiting = self.outages.write(subject);
        let mut pause = PAUSE.0;
        loop {
            // A message that is sent while the server is away is sent again for each attempt.
            while !self.connected() {
                waiting.away();
                tokio::time::sleep(PAUSE.0).await;
            }
            let (before, server) = (self.places.now(), self.client.server_info().server_id);
            let words = match self.published(subject, message.clone()).await {
                Ok(ack) => match self.places.confirm(&ack, &server, &before) {
                    Ok(()) => {
                        self.settled(&waiting);
                        return Ok(ack);
                    }
                    Err(place) => {
                        let words = format!("the server {AGAIN}: {} after {place} in {}", ack.sequence, ack.stream);
                        self.restarted(&waiting, words).await;
                        continue;
                    }
                },
                Err(error) if self.refused.of(subject).is_some() || !waits(&error) => {
                    self.settled(&waiting);
                    return Err(error);
                }
                Err(error) if error.kind() == PublishErrorKind::TimedOut => "the write timed out".to_owned(),
                Err(error) => reason(&error),
            };
            self.report(&waiting, words);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Waits until another server process answers. Until then, every message would get a wrong place.
    async fn restarted(&self, waiting: &Waiting, words: String) {
        let server = self.client.server_info().server_id;
        while self.client.server_info().server_id == server {
            self.report(waiting, words.clone());
            tokio::time::sleep(PAUSE.1).await;
        }
    }

    fn report(&self, waiting: &Waiting, words: String) {
        if !self.connected() {
            waiting.away();
        } else if waiting.refused(words, Instant::now())
            && let Some(reason) = self.outage()
        {
            tracing::error!(reason, "the NATS server has not stored writes for 5 s; work waits until it does");
        }
    }

    fn settled(&self, waiting: &Waiting) {
        if let Some(length) = waiting.settled(Instant::now()) {
            tracing::info!(seconds = length.as_secs(), "the NATS server stores writes again; work goes on");
        }
    }

    /// Waits until there is an outage, and returns [`Connection::outage`].
    pub async fn outage_begins(&self) -> String {
        loop {
            if let Some(outage) = self.outage() {
                return outage;
            }
            tokio::time::sleep(PAUSE.1 / 2).await;
        }
    }

    /// Why the server has not stored writes for [`LOUD`], with what to do; none if it stores them.
    pub fn outage(&self) -> Option<String> {
        let writes = self.outages.writes();
        let write = writes.longest(Instant::now())?;
        let words = one_line(&write.words, SHOWN);
        let advice = advice(&words, &self.client.server_info().version);
        Some(format!("the NATS server does not store writes to {}: {words}; {advice}", write.subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_after_five_seconds_and_its_end_once() {
        let (outages, start) = (Outages::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let (one, other) = (outages.write("a"), outages.write("b"));
        assert!(!one.refused("full".into(), at(0)));
        assert!(!one.refused("full".into(), at(4)));
        assert!(one.refused("full".into(), at(5)));
        assert!(!one.refused("full".into(), at(6)));
        assert!(!other.refused("full".into(), at(7)), "it is one outage");
        assert_eq!(one.settled(at(13)), None, "the other still waits");
        assert_eq!(other.settled(at(14)), Some(Duration::from_secs(14)));
        assert_eq!(other.settled(at(15)), None);
    }

    #[test]
    fn a_short_refusal_and_a_lost_server_are_no_outage() {
        let (outages, start) = (Outages::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let write = outages.write("a");
        assert!(!write.refused("full".into(), at(0)));
        assert_eq!(write.settled(at(1)), None);
        assert!(!write.refused("full".into(), at(2)));
        write.away();
        assert!(!write.refused("full".into(), at(8)), "the time starts again");
        drop(write);
        assert!(outages.writes().refused.is_empty(), "a write that is given up does not wait");
    }

    #[test]
    fn a_number_that_an_earlier_message_had_is_not_confirmed() {
        let places = Places::default();
        let ack = |stream: &str, sequence| PublishAck {
            stream: stream.into(),
            sequence,
            domain: String::new(),
            duplicate: false,
            value: None,
        };
        let before = places.now();
        assert_eq!(places.confirm(&ack("A", 83), "one", &before), Ok(()));
        assert_eq!(
            places.confirm(&ack("A", 82), "one", &before),
            Ok(()),
            "two writes at once are confirmed in any order"
        );
        let after = places.now();
        assert_eq!(places.confirm(&ack("A", 1), "one", &after), Err(83));
        assert_eq!(places.confirm(&ack("B", 1), "one", &after), Ok(()));
        assert_eq!(places.confirm(&ack("A", 84), "one", &after), Ok(()));
        assert_eq!(places.confirm(&ack("A", 5), "two", &places.now()), Ok(()), "another process begins lower");
        assert_eq!(places.confirm(&ack("A", 4), "two", &places.now()), Err(5));
    }

    #[test]
    fn advice_follows_the_words_and_the_version_of_the_server() {
        for (words, server, expect) in [
            ("insufficient resources", "2.15.1", "raise max_file_store"),
            ("maximum bytes exceeded", "2.15.1", "nats stream edit"),
            ("write x: no space left on device", "2.10.26", "restart the server"),
            ("write x: no space left on device", "2.11.11", "make room"),
            ("no message cache", "2.12.8", "restart the server"),
            ("the write timed out", "2.15.1", "make room and restart it"),
        ] {
            let advice = advice(words, server);
            assert!(advice.contains(expect), "{words}: {advice}");
            assert_eq!(advice.contains("restart"), expect.contains("restart"), "{words}: {advice}");
        }
        assert_eq!(AfterFullDisk::of("2.11.1"), Some(AfterFullDisk::NumbersAgain));
        assert_eq!(AfterFullDisk::of("2.11.2"), Some(AfterFullDisk::GoesOn));
        assert_eq!(AfterFullDisk::of("x"), None);
    }
}
