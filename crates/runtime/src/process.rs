//! What every role needs to be an actor in a process. With the `actor.rs` of each crate this is the
//! only place that names actix, which is in passive maintenance: the actor is a shell around a
//! [`Performer`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::prelude::*;
use async_trait::async_trait;
use casebook_protocol::subject::{self, Queue};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::bus::{Bus, BusError, Delivery};

/// Makes a panic anywhere end the process with its cause: actix would only lose the actor, in
/// silence, and the rest would wait for it for ever.
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        eprintln!(
            "casebook stops: this is a defect; what is recorded is safe, and `casebook resume` goes on from there"
        );
        std::process::abort();
    }));
}

/// Runs `main` to its end on an actix system whose runtime has several threads.
pub fn run<F: Future>(main: F) -> std::io::Result<F::Output> {
    let system = System::with_tokio_rt(|| {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(threads()).enable_all().build();
        // There is no process without a runtime.
        built.unwrap_or_else(|error| {
            eprintln!("casebook: cannot start its runtime: {error}");
            std::process::exit(70)
        })
    });
    Ok(system.block_on(main))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).max(2)
}

/// Runs `work` where blocking is allowed. If the runtime shuts down this never ends: an answer now would be recorded
/// for ever as a failure.
///
/// # Errors
/// `work` panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    match tokio::task::spawn_blocking(work).await {
        Err(error) if error.is_cancelled() => std::future::pending().await,
        done => done,
    }
}

/// What performs the jobs of a queue.
#[async_trait]
pub trait Performer: Send + Sync + 'static {
    /// The bus that the jobs are pulled from.
    fn bus(&self) -> &Arc<dyn Bus>;

    /// Makes now what is made once and takes time, so that no job waits for it.
    async fn ready(&self);

    /// Performs a delivered job and answers the delivery. What fails on this side of the job is logged and the
    /// job goes back, until it was delivered too often: then its failure is recorded, so that the flow goes on.
    async fn handle(&self, queue: &Queue, delivery: Box<dyn Delivery>);
}

/// A job on its way into a role's mailbox, with the permit that bounds how many are under way.
#[derive(Message)]
#[rtype(result = "()")]
struct Job(Box<dyn Delivery>, OwnedSemaphorePermit);

/// Asks an actor how it is: health checks, a dashboard and tests read the same answer.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "Observation")]
pub struct Observe;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, MessageResponse)]
pub struct Observation {
    /// The queue that it works on, or what else names it.
    pub name: String,
    pub taken: u64,
    pub under_way: u64,
}

/// Take no more jobs, let those under way end within this time, and give back the rest. Answered with how
/// many were given back.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "usize")]
pub struct Drain(pub Duration);

/// A role as an actor: it takes jobs from one queue, a bounded number at once.
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
    /// Starts the actor that works on `queue`, at most `at_once` jobs at a time.
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
            // The permit comes before the pull: the mailbox bounds what waits, not what runs.
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                match bus.pull(&queue).await {
                    Ok(delivery) => {
                        if addr.send(Job(delivery, permit)).await.is_err() {
                            return;
                        }
                    }
                    Err(BusError::Closed) => return,
                    Err(error) => {
                        tracing::error!(%error, queue, "cannot pull a job");
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

/// Counts a job for as long as it is under way, however it ends.
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
            // A job that is dropped goes back to its queue, and its finished steps are recorded.
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
