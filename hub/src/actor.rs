//! The Hub as actors: one that opens, resumes and routes, and one for each open investigation. A
//! shell: it hands batches of [`Input`] to the [`batch`] and decides nothing. With
//! `casebook_runtime::process` this is what names actix.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use casebook_protocol::{Domain, InvestigationId, Phase, Report, TaskId};
use casebook_runtime::Env;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::batch::{self, Input, Worked};
use crate::error::HubError;
use crate::ledger::Ledger;

mod handle;
mod notices;

pub use handle::HubHandle;

/// Live steps that wait while the store is busy; more are dropped, since outcomes carry them, too.
const STEPS_WAITING: usize = 1024;
/// How long live steps wait for each other, or for the outcome of their task: whoever watches notices
/// nothing, and each pass over the log costs the same for one step as for many.
const STEPS_GATHER: Duration = Duration::from_millis(50);
/// Work that is taken in at once.
const BATCH: usize = 256;

type Ending = Result<Box<Report>, HubError>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HubObservation {
    /// It hands out no more tasks.
    pub suspended: bool,
    pub open: Vec<InvestigationObservation>,
}

/// How an open investigation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvestigationObservation {
    pub investigation: InvestigationId,
    pub phase: Phase,
    pub round: u32,
    /// The last event in its log.
    pub seq: u64,
    pub in_flight: Vec<TaskId>,
    /// Work that waits for the store.
    pub waiting: usize,
}

/// Opens, resumes, routes.
struct Hub {
    env: Env,
    sweep: Duration,
    open: BTreeMap<InvestigationId, Addr<Investigation>>,
    failed: BTreeMap<InvestigationId, HubError>,
    suspended: bool,
}

/// Works on an investigation from now on; no effect if it is worked on already. One that failed here is
/// tried again.
#[derive(Message)]
#[rtype(result = "Result<Addr<Investigation>, HubError>")]
struct Activate(InvestigationId);

/// Who works on an investigation, or why nobody does any more.
#[derive(Message)]
#[rtype(result = "Result<Option<Addr<Investigation>>, HubError>")]
struct Find(InvestigationId);

type HubAddr = Addr<Hub>;
type InvestigationAddr = Addr<Investigation>;

/// An investigation is over, or cannot be worked on.
#[derive(Message)]
#[rtype(result = "()")]
struct Ended(InvestigationId, Option<HubError>);

/// Hand out no more tasks; answered with those who have to know.
#[derive(Message)]
#[rtype(result = "Vec<Addr<Investigation>>")]
struct SuspendAll;

/// Everyone who works, and whether the Hub is suspended.
#[derive(Message)]
#[rtype(result = "(bool, Vec<Addr<Investigation>>)")]
struct Everyone;

/// Starts the Hub on the actix system of this thread.
fn start(env: Env, sweep: Duration) -> Addr<Hub> {
    Hub { env, sweep, open: BTreeMap::new(), failed: BTreeMap::new(), suspended: false }.start()
}

impl Actor for Hub {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        tokio::spawn(notices::listen(self.env.clone(), ctx.address()));
    }
}

impl Handler<Activate> for Hub {
    type Result = Result<Addr<Investigation>, HubError>;

    fn handle(&mut self, Activate(id): Activate, ctx: &mut Self::Context) -> Self::Result {
        if let Some(addr) = self.open.get(&id) {
            return Ok(addr.clone());
        }
        if self.suspended {
            return Err(HubError::Suspended);
        }
        self.failed.remove(&id);
        let addr = Investigation::new(id.clone(), self.env.clone(), self.sweep, ctx.address()).start();
        self.open.insert(id, addr.clone());
        Ok(addr)
    }
}

impl Handler<Find> for Hub {
    type Result = Result<Option<Addr<Investigation>>, HubError>;

    fn handle(&mut self, Find(id): Find, _: &mut Self::Context) -> Self::Result {
        match self.failed.get(&id) {
            Some(error) => Err(error.clone()),
            None => Ok(self.open.get(&id).cloned()),
        }
    }
}

impl Handler<Ended> for Hub {
    type Result = ();

    fn handle(&mut self, Ended(id, error): Ended, _: &mut Self::Context) {
        self.open.remove(&id);
        if let Some(error) = error {
            tracing::error!(investigation = %id, %error, "an investigation cannot go on");
            self.failed.insert(id, error);
        }
    }
}

impl Handler<SuspendAll> for Hub {
    type Result = MessageResult<SuspendAll>;

    fn handle(&mut self, _: SuspendAll, _: &mut Self::Context) -> Self::Result {
        self.suspended = true;
        MessageResult(self.open.values().cloned().collect())
    }
}

impl Handler<Everyone> for Hub {
    type Result = MessageResult<Everyone>;

    fn handle(&mut self, _: Everyone, _: &mut Self::Context) -> Self::Result {
        MessageResult((self.suspended, self.open.values().cloned().collect()))
    }
}

/// Works on one investigation, one batch at a time.
struct Investigation {
    id: InvestigationId,
    env: Env,
    sweep: Duration,
    hub: Addr<Hub>,
    ledger: Option<Ledger>,
    queue: VecDeque<Input>,
    /// Tasks on their way into a queue that may be full.
    leaving: BTreeSet<TaskId>,
    onward: bool,
    waiters: Vec<oneshot::Sender<Ending>>,
    /// The domains that were said to be there last.
    present: Option<Arc<BTreeSet<Domain>>>,
    ended: Option<Ending>,
    gathering: Gathering,
    seen: InvestigationObservation,
}

/// Whether live steps wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gathering {
    No,
    Since,
    Over,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Take(Input);

#[derive(Message)]
#[rtype(result = "()")]
struct Wait(oneshot::Sender<Ending>);

/// Hand out no more tasks; what is recorded from now on waits for whoever resumes.
#[derive(Message)]
#[rtype(result = "()")]
struct Suspend(oneshot::Sender<()>);

#[derive(Message)]
#[rtype(result = "Result<InvestigationObservation, ()>")]
struct ObserveOne;

impl Investigation {
    fn new(id: InvestigationId, env: Env, sweep: Duration, hub: Addr<Hub>) -> Self {
        let seen = InvestigationObservation {
            investigation: id.clone(),
            phase: Phase::Discovery,
            round: 0,
            seq: 0,
            in_flight: Vec::new(),
            waiting: 0,
        };
        let queue = VecDeque::from([Input::Sweep]);
        Self {
            id,
            env,
            sweep,
            hub,
            ledger: None,
            queue,
            leaving: BTreeSet::new(),
            onward: true,
            waiters: Vec::new(),
            present: None,
            ended: None,
            gathering: Gathering::No,
            seen,
        }
    }

    /// Starts on what waits, unless the ledger is away on a batch already.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        if self.queue.is_empty() || self.ended.is_some() {
            return;
        }
        let only_steps = self.queue.len() < BATCH && self.queue.iter().all(|work| matches!(work, Input::Step(..)));
        if only_steps && self.gathering != Gathering::Over {
            if self.gathering == Gathering::No {
                self.gathering = Gathering::Since;
                ctx.run_later(STEPS_GATHER, |this, ctx| {
                    this.gathering = Gathering::Over;
                    this.turn(ctx);
                });
            }
            return;
        }
        let Some(ledger) = self.ledger.take() else { return };
        if self.gathering == Gathering::Over {
            self.gathering = Gathering::No;
        }
        let batch: Vec<Input> = self.queue.drain(..self.queue.len().min(BATCH)).collect();
        let work = batch::work(ledger, batch, self.onward);
        ctx.spawn(work.into_actor(self).map(|done, this, ctx| this.done(done, ctx)));
    }

    fn done(&mut self, done: Result<(Ledger, Worked), HubError>, ctx: &mut Context<Self>) {
        match done {
            Ok((ledger, worked)) => {
                self.see(&ledger);
                self.ledger = Some(ledger);
                worked.tasks.into_iter().for_each(|task| self.send_out(task, ctx));
                match worked.report {
                    Some(report) => self.end(Ok(report), ctx),
                    None => self.turn(ctx),
                }
            }
            Err(error) => self.end(Err(error), ctx),
        }
    }

    fn see(&mut self, ledger: &Ledger) {
        let state = ledger.state();
        self.seen.phase = state.phase;
        self.seen.round = state.round;
        self.seen.seq = state.last_seq();
        self.seen.in_flight = state.in_flight().map(|(id, _)| id.clone()).collect();
    }

    /// Enqueues beside the batches: a queue that is full of tasks must not keep outcomes from being
    /// recorded.
    fn send_out(&mut self, task: casebook_protocol::Task, ctx: &mut Context<Self>) {
        // A suspended Hub hands out nothing: what is requested stands in the log for whoever resumes.
        if !self.onward || !self.leaving.insert(task.id.clone()) {
            return;
        }
        let bus = Arc::clone(&self.env.bus);
        let sent = async move {
            if let Err(error) = batch::enqueue(bus.as_ref(), &task).await {
                tracing::warn!(task = %task.id, %error, "a task was not enqueued: the sweep tries again");
            }
            task.id
        };
        ctx.spawn(sent.into_actor(self).map(|id, this, _| {
            this.leaving.remove(&id);
        }));
    }

    /// Tells the Hub, then whoever waits, and goes. What is left in the queue is dropped with it:
    /// deliveries come again, and the log knows the rest.
    fn end(&mut self, ending: Ending, ctx: &mut Context<Self>) {
        let told = self.hub.send(Ended(self.id.clone(), ending.as_ref().err().cloned()));
        self.ended = Some(ending.clone());
        self.queue.clear();
        ctx.spawn(told.into_actor(self).map(move |_, this, ctx| {
            for waiter in this.waiters.drain(..) {
                let _ = waiter.send(ending.clone());
            }
            ctx.stop();
        }));
    }
}

impl Actor for Investigation {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let (env, id) = (self.env.clone(), self.id.clone());
        let load = async move {
            let ledger = Ledger::load(&env, &id).await?;
            if ledger.state().case.is_none() { Err(HubError::Unknown(id)) } else { Ok((ledger, Worked::default())) }
        };
        ctx.spawn(load.into_actor(self).map(|done, this, ctx| this.done(done, ctx)));
        ctx.run_interval(self.sweep, |this, ctx| {
            if !this.queue.iter().any(|w| matches!(w, Input::Sweep)) {
                this.queue.push_back(Input::Sweep);
            }
            this.turn(ctx);
        });
    }
}

impl Handler<Take> for Investigation {
    type Result = ();

    fn handle(&mut self, Take(work): Take, ctx: &mut Self::Context) {
        if self.ended.is_some() || (matches!(work, Input::Step(..)) && self.queue.len() >= STEPS_WAITING) {
            return;
        }
        if let Input::Attend(present) = &work {
            if self.present.as_ref() == Some(present) {
                return;
            }
            self.present = Some(Arc::clone(present));
        }
        self.queue.push_back(work);
        self.turn(ctx);
    }
}

impl Handler<Wait> for Investigation {
    type Result = ();

    fn handle(&mut self, Wait(reply): Wait, _: &mut Self::Context) {
        match &self.ended {
            Some(ending) => drop(reply.send(ending.clone())),
            None if !self.onward => drop(reply.send(Err(HubError::Suspended))),
            None => self.waiters.push(reply),
        }
    }
}

impl Handler<Suspend> for Investigation {
    type Result = ();

    fn handle(&mut self, Suspend(reply): Suspend, ctx: &mut Self::Context) {
        self.onward = false;
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Err(HubError::Suspended));
        }
        if self.ended.is_none() {
            self.queue.push_back(Input::Mark(reply));
            self.turn(ctx);
        }
    }
}

impl Handler<ObserveOne> for Investigation {
    type Result = Result<InvestigationObservation, ()>;

    fn handle(&mut self, _: ObserveOne, _: &mut Self::Context) -> Self::Result {
        Ok(InvestigationObservation { waiting: self.queue.len(), ..self.seen.clone() })
    }
}

#[cfg(test)]
pub(crate) mod tests;
