//! The bus inside one process, with bounded queues. For simulation it can lose, duplicate and reorder messages from a
//! seed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::subject;
use tokio::sync::{Notify, mpsc};

use super::{Bus, BusError, Delivery, Message, Subscription, matches};

/// The most jobs in one queue; `enqueue` waits for space.
const QUEUE: usize = 1024;
/// The most messages that wait for a slow listener; newer ones are lost.
const BACKLOG: usize = 65_536;

/// Simulated faults, each with a chance in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// The same seed gives the same faults for the same calls.
    pub seed: u64,
    pub lose: u16,
    pub double: u16,
    pub reorder: u16,
}

#[derive(Debug, Clone)]
struct Job {
    id: String,
    bytes: Vec<u8>,
    attempt: u32,
}

#[derive(Default)]
struct State {
    queues: BTreeMap<String, VecDeque<Job>>,
    leased: BTreeMap<(String, String), u32>,
    listeners: Vec<(String, mpsc::Sender<Message>)>,
    random: u64,
    closed: bool,
}

#[derive(Clone)]
pub struct MemoryBus {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    faults: Faults,
}

impl std::fmt::Debug for MemoryBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBus").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new(Faults::default())
    }
}

impl MemoryBus {
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        let state = State { random: faults.seed ^ 0x9e37_79b9_7f4a_7c15, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()), faults }
    }

    /// Ends every wait with [`BusError::Closed`], and every subscription.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.listeners.clear();
        drop(state);
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn when<T>(&self, mut attempt: impl FnMut(&mut State) -> Option<T>) -> Result<T, BusError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.closed {
                    return Err(BusError::Closed);
                }
                if let Some(value) = attempt(&mut state) {
                    return Ok(value);
                }
            }
            changed.await;
        }
    }

    fn lease(&self, subject: &str, job: Job) -> Box<dyn Delivery> {
        Box::new(Lease { bus: self.clone(), subject: subject.to_owned(), job: Some(job) })
    }

    fn release(&self, subject: &str, job: Job, again: bool) {
        let mut state = self.state();
        let key = (subject.to_owned(), job.id.clone());
        if let Some(count) = state.leased.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                state.leased.remove(&key);
            }
        }
        if again {
            state.queues.entry(subject.to_owned()).or_default().push_back(job);
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

impl State {
    /// SplitMix64: small, and the same on every machine.
    fn chance(&mut self, in_thousand: u16) -> bool {
        if in_thousand == 0 {
            return false;
        }
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % 1000 < u64::from(in_thousand)
    }

    fn take(&mut self, subject: &str) -> Option<Job> {
        let job = self.queues.get_mut(subject)?.pop_front()?;
        *self.leased.entry((subject.to_owned(), job.id.clone())).or_default() += 1;
        Some(job)
    }

    fn notify(&mut self, message: &Message, faults: Faults) {
        let hint = message.subject.starts_with(subject::HINTS);
        if hint && self.chance(faults.lose) {
            return;
        }
        let times = 1 + usize::from(hint && self.chance(faults.double));
        self.listeners.retain(|(pattern, listener)| {
            if matches(pattern, &message.subject) {
                for _ in 0..times {
                    if let Err(mpsc::error::TrySendError::Full(_)) = listener.try_send(message.clone()) {
                        tracing::warn!(pattern, "a slow listener lost a message");
                    }
                }
            }
            !listener.is_closed()
        });
    }

    fn put(&mut self, subject: &str, job: Job, faults: Faults) {
        if self.chance(faults.lose) {
            return;
        }
        let double = self.chance(faults.double);
        let reorder = self.chance(faults.reorder);
        let queue = self.queues.entry(subject.to_owned()).or_default();
        if double {
            // The second delivery must count as one.
            queue.push_back(Job { attempt: job.attempt + 1, ..job.clone() });
        }
        if reorder { queue.push_front(job) } else { queue.push_back(job) }
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn enqueue(&self, subject: &str, id: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        let job = Job { id: id.to_owned(), bytes, attempt: 1 };
        self.when(|state| {
            let queue = state.queues.get(subject);
            let waits = queue.is_some_and(|q| q.iter().any(|j| j.id == id));
            if waits || state.leased.contains_key(&(subject.to_owned(), id.to_owned())) {
                return Some(());
            }
            if queue.is_some_and(|q| q.len() >= QUEUE) {
                return None;
            }
            state.put(subject, job.clone(), self.faults);
            Some(())
        })
        .await?;
        self.changed.notify_waiters();
        Ok(())
    }

    async fn pull(&self, subject: &str) -> Result<Box<dyn Delivery>, BusError> {
        let job = self.when(|state| state.take(subject)).await?;
        self.changed.notify_waiters();
        Ok(self.lease(subject, job))
    }

    async fn try_pull(&self, subject: &str) -> Result<Option<Box<dyn Delivery>>, BusError> {
        let job = self.state().take(subject);
        self.changed.notify_waiters();
        Ok(job.map(|job| self.lease(subject, job)))
    }

    async fn publish(&self, subject: &str, bytes: Vec<u8>) -> Result<(), BusError> {
        self.state().notify(&Message { subject: subject.to_owned(), bytes }, self.faults);
        Ok(())
    }

    fn heard(&self, subject: &str) -> bool {
        self.state().listeners.iter().any(|(pattern, _)| matches(pattern, subject))
    }

    async fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let mut state = self.state();
        if state.closed {
            return Err(BusError::Closed);
        }
        state.listeners.push((subject.to_owned(), sender));
        Ok(Box::new(Listener(receiver)))
    }

    async fn last(&self, _: &str) -> Result<Option<Vec<u8>>, BusError> {
        Ok(None)
    }
}

struct Lease {
    bus: MemoryBus,
    subject: String,
    job: Option<Job>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(mut job) = self.job.take() {
            job.attempt += 1;
            self.bus.release(&self.subject, job, true);
        }
    }
}

#[async_trait]
impl Delivery for Lease {
    fn bytes(&self) -> &[u8] {
        self.job.as_ref().map_or(&[], |job| &job.bytes)
    }

    fn attempt(&self) -> u32 {
        self.job.as_ref().map_or(0, |job| job.attempt)
    }

    async fn done(mut self: Box<Self>) -> Result<(), BusError> {
        if let Some(job) = self.job.take() {
            self.bus.release(&self.subject, job, false);
        }
        Ok(())
    }

    async fn back(mut self: Box<Self>, delay: Duration) -> Result<(), BusError> {
        if let Some(mut job) = self.job.take() {
            job.attempt += 1;
            let (bus, subject) = (self.bus.clone(), self.subject.clone());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                bus.release(&subject, job, true);
            });
        }
        Ok(())
    }
}

struct Listener(mpsc::Receiver<Message>);

#[async_trait]
impl Subscription for Listener {
    async fn next(&mut self) -> Option<Message> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(bus: &MemoryBus) -> Option<(Vec<u8>, u32)> {
        let pulled = tokio::time::timeout(Duration::from_millis(50), bus.pull("q")).await.ok()?.ok()?;
        let got = (pulled.bytes().to_vec(), pulled.attempt());
        pulled.done().await.unwrap();
        Some(got)
    }

    #[tokio::test]
    async fn a_job_is_delivered_until_it_is_done() {
        let bus = MemoryBus::default();
        bus.enqueue("q", "1", b"a".to_vec()).await.unwrap();
        bus.enqueue("q", "1", b"again".to_vec()).await.unwrap();
        drop(bus.pull("q").await.unwrap());
        assert_eq!(next(&bus).await, Some((b"a".to_vec(), 2)));
        assert_eq!(next(&bus).await, None);
    }

    #[tokio::test]
    async fn a_full_queue_waits_and_a_closed_bus_ends_the_wait() {
        let bus = MemoryBus::default();
        for n in 0..QUEUE {
            bus.enqueue("q", &n.to_string(), vec![]).await.unwrap();
        }
        let waiting = tokio::spawn({
            let bus = bus.clone();
            async move { bus.enqueue("q", "more", vec![]).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        bus.close();
        assert_eq!(waiting.await.unwrap(), Err(BusError::Closed));
    }

    #[tokio::test]
    async fn listeners_hear_what_matches() {
        let bus = MemoryBus::default();
        let mut all = bus.subscribe("events.>").await.unwrap();
        assert!(bus.heard("events.x") && !bus.heard("other.x"));
        bus.publish("other.x", vec![]).await.unwrap();
        bus.publish("events.x", b"1".to_vec()).await.unwrap();
        assert_eq!(all.next().await.unwrap().subject, "events.x");
        bus.close();
        assert_eq!(all.next().await, None);
    }
}
