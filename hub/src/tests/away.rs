//! A bus for tests of what happens when it fails.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::bus::{Bus, BusError, Delivery, Subscription};

/// A bus on which nothing comes out under one prefix so many times, and that counts what does.
pub(crate) struct Away {
    pub(crate) inner: MemoryBus,
    prefix: String,
    away: AtomicU32,
    told: AtomicU32,
}

impl Away {
    /// A bus on which `times` messages under `prefix` fail.
    pub(crate) fn new(prefix: &str, times: u32) -> Self {
        let (inner, told) = (MemoryBus::default(), AtomicU32::new(0));
        Self { inner, prefix: prefix.to_owned(), away: AtomicU32::new(times), told }
    }

    /// How many messages under its prefix came out.
    pub(crate) fn told(&self) -> u32 {
        self.told.load(Ordering::SeqCst)
    }

    /// How many will still fail.
    pub(crate) fn left(&self) -> u32 {
        self.away.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Bus for Away {
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        self.inner.enqueue(subject, id, bytes).await
    }
    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError> {
        self.inner.pull(subject).await
    }
    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError> {
        self.inner.try_pull(subject).await
    }
    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        if subject.starts_with(&self.prefix) {
            let fewer = |left: u32| left.checked_sub(1);
            if self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
                return Err(BusError::Failed { doing: "publish".into(), reason: "the server is away".into() });
            }
            self.told.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.publish(subject, bytes).await
    }
    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        self.inner.subscribe(subject).await
    }
    async fn last(&self, subject: &str) -> Result<Option<Vec<u8>>, BusError> {
        self.inner.last(subject).await
    }
}
