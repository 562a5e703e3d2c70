//! How processes reach each other: one of the two seams (the other is the
//! [`Store`](crate::store::Store)). A work queue with leases, and subjects to which anyone may listen.
//! The log is the truth, the queue is a hint: what a queue loses, the Hub asks for again.

use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

pub mod memory;

/// Whether a subject is one that `pattern` means; `>` at its end stands for any rest.
#[must_use]
pub fn matches(pattern: &str, subject: &str) -> bool {
    match pattern.strip_suffix('>') {
        Some(prefix) => subject.starts_with(prefix) && subject.len() > prefix.len(),
        None => pattern == subject,
    }
}

/// Why a message did not go out or come in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The bus is shut down.
    #[error("the bus is closed")]
    Closed,
    /// The bus failed.
    #[error("cannot {doing}: {reason}")]
    Failed {
        /// What was tried.
        doing: String,
        /// Why it failed.
        reason: String,
    },
}

/// A message that listeners receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The subject that it was published to.
    pub subject: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A time in which a job is certainly not another worker's, too. A process that was stopped, or whose machine
/// slept, finds it over when it goes on.
#[derive(Debug, Clone, Copy)]
pub struct Alone {
    since: (Instant, SystemTime),
    lease: Duration,
}

impl Alone {
    /// From now on for one lease.
    #[must_use]
    pub fn now(lease: Duration) -> Self {
        Self { since: (Instant::now(), SystemTime::now()), lease }
    }

    /// It is not over. Both clocks say so: the one stands still while the machine sleeps, the other is set.
    #[must_use]
    pub fn holds(&self) -> bool {
        let (steady, set) = self.since;
        steady.elapsed() < self.lease && set.elapsed().is_ok_and(|elapsed| elapsed < self.lease)
    }
}

/// A job under lease, which is extended for as long as this is held. Dropped without an answer the job
/// is delivered again.
#[async_trait]
pub trait Delivery: Send {
    /// The bytes of the job.
    fn bytes(&self) -> &[u8];

    /// How often it was delivered, from 1.
    fn attempt(&self) -> u32;

    /// How long no one else can have been given the job, as far as this process can tell by itself; none: for as
    /// long as it is held.
    fn alone(&self) -> Option<Alone> {
        None
    }

    /// The job is done, its result recorded.
    async fn done(self: Box<Self>) -> Result<(), BusError>;

    /// The job goes back and is delivered again after `delay`.
    async fn back(self: Box<Self>, delay: Duration) -> Result<(), BusError>;
}

/// What is published to a subject from now on.
#[async_trait]
pub trait Subscription: Send {
    /// The next message; none when the bus is closed.
    async fn next(&mut self) -> Option<Message>;
}

/// How processes reach each other.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Puts a job into the work queue of `subject`. A job with an `id` that waits or is under lease
    /// already is not put in twice. Waits while the queue is full.
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError>;

    /// The next job of `subject`, under lease. Waits until there is one.
    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError>;

    /// The next job of `subject` if one waits now.
    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError>;

    /// Tells everyone who listens. Nobody has to, and what a listener misses stands in the log.
    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError>;

    /// Whether anyone may hear what is published to `subject`: what nobody hears need not be written.
    fn heard(&self, _subject: &str) -> bool {
        true
    }

    /// Listens to a subject; `>` at its end stands for any rest.
    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError>;

    /// What was published to `subject` last, where the bus remembers it: whoever takes over goes on
    /// telling from there.
    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_nobody_elses_for_one_lease_by_either_clock() {
        let lease = Duration::from_secs(30);
        let now = Alone::now(lease);
        assert!(now.holds());
        let before = |seconds| Duration::from_secs(seconds);
        let stopped = Alone { since: (now.since.0.checked_sub(before(31)).unwrap_or(now.since.0), now.since.1), lease };
        let slept = Alone { since: (now.since.0, now.since.1 - before(31)), lease };
        let set_back = Alone { since: (now.since.0, now.since.1 + before(60)), lease };
        for over in [stopped, slept, set_back] {
            assert!(!over.holds(), "{over:?}");
        }
    }
}
