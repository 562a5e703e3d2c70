//! How processes reach each other: one of the two seams (the other is the
//! [`Store`](crate::store::Store)). A work queue with leases, and subjects to which anyone may listen.
//! The log is the truth, the queue is a hint: what a queue loses, the Hub asks for again.

use std::time::Duration;

use async_trait::async_trait;

pub mod memory;

/// Whether a subject is one that `pattern` means; `>` at its end stands for any rest.
pub fn matches(pattern: &str, subject: &str) -> bool {
    match pattern.strip_suffix('>') {
        Some(prefix) => subject.starts_with(prefix) && subject.len() > prefix.len(),
        None => pattern == subject,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    #[error("the bus is closed")]
    Closed,
    #[error("cannot {doing}: {reason}")]
    Failed { doing: String, reason: String },
}

/// A message that listeners receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The subject that it was published to.
    pub subject: String,
    pub bytes: Vec<u8>,
}

/// A job under lease, which is extended for as long as this is held. Dropped without an answer the job
/// is delivered again.
#[async_trait]
pub trait Delivery: Send {
    fn bytes(&self) -> &[u8];

    /// How often it was delivered, from 1.
    fn attempt(&self) -> u32;

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
