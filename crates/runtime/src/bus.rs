//! How processes communicate: work queues with leases, and subjects with listeners. A queue may lose jobs, since the
//! Hub requests them again from its log.

use std::time::{Duration, Instant};

use async_trait::async_trait;

pub mod memory;

/// True if `subject` matches `pattern`; a `>` at its end matches any rest.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub bytes: Vec<u8>,
}

/// A job under lease. The lease is extended while this value exists. A job that is dropped without an answer is
/// delivered again.
#[async_trait]
pub trait Delivery: Send {
    fn bytes(&self) -> &[u8];

    /// The number of deliveries, from 1.
    fn attempt(&self) -> u32;

    async fn done(self: Box<Self>) -> Result<(), BusError>;

    /// Returns the job, to be delivered again after `delay`.
    async fn back(self: Box<Self>, delay: Duration) -> Result<(), BusError>;
}

#[async_trait]
pub trait Subscription: Send {
    async fn next(&mut self) -> Option<Message>;
}

#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Puts a job into the work queue of `subject`, unless a job with this `id` waits there or is under lease. Waits
    /// while the queue is full.
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError>;

    /// The next job of `subject`, under lease. Waits for one.
    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError>;

    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError>;

    /// Sends a message to all listeners. It may be lost, so a listener that needs all messages reads the log.
    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError>;

    /// False if nothing listens to `subject`, so that the caller can skip the message.
    fn heard(&self, _subject: &str) -> bool {
        true
    }

    /// Listens to a subject; a `>` at its end matches any rest.
    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError>;

    /// The last message on `subject`, if the bus keeps it. A Hub that takes over publishes only what comes after it.
    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError>;
}

/// Whether a loop can take jobs. An outage is one line of the log, and so is its end, however often the loop tries.
#[derive(Debug, Default)]
pub struct Failing(Option<Instant>);

impl Failing {
    pub fn note<T>(&mut self, taken: &Result<T, BusError>) {
        match (taken, self.0) {
            (Ok(_), Some(since)) => {
                tracing::info!(seconds = since.elapsed().as_secs(), "takes jobs again");
                self.0 = None;
            }
            (Err(error), None) if *error != BusError::Closed => {
                tracing::error!(%error, "cannot take jobs; trying again");
                self.0 = Some(Instant::now());
            }
            _ => {}
        }
    }
}
