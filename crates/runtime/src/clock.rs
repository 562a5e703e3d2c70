//! Code gets the time from a clock, so that tests can control it.

use std::sync::atomic::{AtomicI64, Ordering};

use casebook_protocol::Timestamp;

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that advances by a millisecond each time it is read, for reproducible simulations.
#[derive(Debug, Default)]
pub struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        let tick = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_millisecond(1_700_000_000_000 + tick).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
