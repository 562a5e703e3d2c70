//! The actors of a process. Only this file and `actor.rs` of each crate use actix, which is in passive maintenance: an
//! actor is a shell around a [`Performer`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::prelude::*;
use async_trait::async_trait;
use casebook_protocol::subject::{self, Queue};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::bus::{Bus, BusError, Delivery, Failing};

/// Ends the process on any panic. With actix a panic would only end its actor, and other actors would wait for it
/// without end.
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        eprintln!(
            "casebook stopped because of a defect; recorded work is safe, and `casebook resume` continues from there"
        );
        std::process::abort();
    }));
}

/// Runs `main` on an actix system with several threads.
pub fn run<F: Future>(main: F) -> std::io::Result<F::Output> {
    let system = System::with_tokio_rt(|| {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(threads()).enable_all().build();
        built.unwrap_or_else(|error| {
            eprintln!("casebook: cannot start the runtime: {error}");
            std::process::exit(70)
        })
    });
    Ok(system.block_on(main))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).max(2)
}

/// Runs `work` on a thread for blocking work; an error means that it panicked. Never returns if the runtime shuts
/// down: an answer would be recorded as a permanent failure.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    match tokio::task::spawn_blocking(work).await {
        Err(error) if error.is_cancelled() => std::future::pending().await,
        done => done,
    }
}

#[async_trait]
pub trait Performer: Send + Sync + 'static {
    fn bus(&self) -> &Arc<dyn Bus>;

    /// Does slow preparations, so that the first job does not wait for them.
    async fn ready(&self);

    /// Performs a job and answers its delivery. Infrastructure errors are logged and return the job. After too many
    /// deliveries the task is recorded as failed, so that the investigation continues.
    async fn handle(&self, queue: &Queue, delivery: Box<dyn Delivery>);
}

/// A job on its way to an actor, with the permit that limits concurrent jobs.
#[derive(Message)]
#[rtype(result = "()")]
struct Job(Box<dyn Delivery>, OwnedSemaphorePermit);

#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "Observation")]
pub struct Observe;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, MessageResponse)]
pub struct Observation {
    pub name: String,
    pub taken: u64,
    pub under_way: u64,
}

/// Stops taking jobs, waits this long for running ones, and returns the rest. The answer is the number of returned
/// jobs.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "usize")]
pub struct Drain(pub Duration);

/// An actor that takes jobs from one queue and runs a limited number at once.
pub struct RoleActor {
    queue: Queue,
    worker: Arc<dyn Performer>,
    at_once: usize,
    taken: u64,
    under_way: Arc<AtomicU64>,
    jobs: Arc<Mutex<JoinSet<()>>>,
    pulling: Option<AbortHandle>,
}

impl RoleActor {
    pub fn start_on(queue: Queue, worker: Arc<dyn Performer>, at_once: usize) -> Addr<Self> {
        let (under_way, jobs) = (Arc::default(), Arc::default());
        Self { queue, worker, at_once, taken: 0, under_way, jobs, pulling: None }.start()
    }
}

impl Actor for RoleActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let permits = Arc::new(Semaphore::new(self.at_once));
        let (bus, addr) = (Arc::clone(self.worker.bus()), ctx.address());
        let queue = subject::tasks(self.queue.role, self.queue.domain.as_ref());
        let pulling = tokio::spawn(async move {
            let mut failing = Failing::default();
            // The permit is acquired first, so that a pulled job never waits for one.
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                let pulled = bus.pull(&queue).await;
                failing.note(&pulled);
                match pulled {
                    Ok(delivery) => {
                        if addr.send(Job(delivery, permit)).await.is_err() {
                            return;
                        }
                    }
                    Err(BusError::Closed) => return,
                    Err(_) => {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        });
        self.pulling = Some(pulling.abort_handle());
    }
}

impl Handler<Job> for RoleActor {
    type Result = ();

    fn handle(&mut self, Job(delivery, permit): Job, _: &mut Self::Context) {
        self.taken += 1;
        let (worker, queue, under_way) = (Arc::clone(&self.worker), self.queue.clone(), Arc::clone(&self.under_way));
        let counted = UnderWay::of(under_way);
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(async move {
            worker.handle(&queue, delivery).await;
            drop((counted, permit));
        });
    }
}

/// Counts a job while it runs, even if it panics.
struct UnderWay(Arc<AtomicU64>);

impl UnderWay {
    fn of(count: Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handler<Drain> for RoleActor {
    type Result = ResponseFuture<usize>;

    fn handle(&mut self, Drain(patience): Drain, _: &mut Self::Context) -> Self::Result {
        if let Some(pulling) = self.pulling.take() {
            pulling.abort();
        }
        let mut jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move {
            let ended = tokio::time::timeout(patience, async { while jobs.join_next().await.is_some() {} });
            if ended.await.is_ok() {
                return 0;
            }
            let left = jobs.len();
            // A dropped job returns to its queue. Its finished steps are already recorded.
            jobs.shutdown().await;
            left
        })
    }
}

impl Handler<Observe> for RoleActor {
    type Result = Observation;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Observation {
        Observation { name: self.queue.name(), taken: self.taken, under_way: self.under_way.load(Ordering::Relaxed) }
    }
}
