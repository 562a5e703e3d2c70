//! The Hub as actix actors: one routes messages, and one works on each open investigation. They pass [`Input`]
//! to [`batch`] and decide nothing themselves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use casebook_protocol::{Domain, InvestigationId, Phase, Report, TaskId, TaskKind};
use casebook_runtime::Env;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::batch::{self, Input, Worked};
use crate::error::HubError;
use crate::ledger::Ledger;
use crate::state::{Progress, TaskState};

mod handle;
mod notices;

pub use handle::HubHandle;

/// Live steps beyond this limit are dropped while the store is busy; outcomes repeat them.
const STEPS_WAITING: usize = 1024;
/// Live steps are collected for this long, because one pass over the log costs the same for one step as for
/// many.
const STEPS_GATHER: Duration = Duration::from_millis(50);
/// Maximum number of inputs in one batch.
const BATCH: usize = 256;

type Ending = Result<Box<Report>, HubError>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HubObservation {
    pub suspended: bool,
    pub open: Vec<InvestigationObservation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvestigationObservation {
    pub investigation: InvestigationId,
    pub phase: Phase,
    pub round: u32,
    pub seq: u64,
    pub in_flight: Vec<TaskId>,
    /// An Expert has answered.
    pub examined: bool,
    /// Inputs that wait for the store.
    pub waiting: usize,
}

struct Hub {
    env: Env,
    sweep: Duration,
    open: BTreeMap<InvestigationId, Addr<Investigation>>,
    failed: BTreeMap<InvestigationId, HubError>,
    suspended: bool,
}

/// Starts work on an investigation. No effect if it is open; one that failed is tried again.
#[derive(Message)]
#[rtype(result = "Result<Addr<Investigation>, HubError>")]
struct Activate(InvestigationId);

/// Finds the actor of an investigation, or the error that ended it.
#[derive(Message)]
#[rtype(result = "Result<Option<Addr<Investigation>>, HubError>")]
struct Find(InvestigationId);

type HubAddr = Addr<Hub>;
type InvestigationAddr = Addr<Investigation>;

#[derive(Message)]
#[rtype(result = "()")]
struct Ended(InvestigationId, Option<HubError>);

/// Stop handing out tasks. The answer lists the open investigations.
#[derive(Message)]
#[rtype(result = "Vec<Addr<Investigation>>")]
struct SuspendAll;

/// The open investigations, and whether the Hub is suspended.
#[derive(Message)]
#[rtype(result = "(bool, Vec<Addr<Investigation>>)")]
struct Everyone;

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
            if !matches!(error, HubError::NotInvestigated { .. }) {
                tracing::error!(investigation = %id, %error, "investigation failed");
            }
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

struct Investigation {
    id: InvestigationId,
    env: Env,
    sweep: Duration,
    hub: Addr<Hub>,
    ledger: Option<Ledger>,
    queue: VecDeque<Input>,
    /// Tasks that are being enqueued; their queue may be full.
    leaving: BTreeSet<TaskId>,
    onward: bool,
    waiters: Vec<oneshot::Sender<Ending>>,
    /// The domains with an Expert, as last reported.
    present: Option<Arc<BTreeSet<Domain>>>,
    ended: Option<Ending>,
    gathering: Gathering,
    seen: InvestigationObservation,
}

/// Whether live steps are being collected.
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

/// Stop handing out tasks. Outcomes are still recorded, for a later resume.
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
            examined: false,
            waiting: 0,
        };
        let queue = VecDeque::from([Input::GoOn, Input::Sweep]);
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

    /// Starts the next batch, unless one is running (then the ledger is taken).
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
                let rounds = self.ledger.as_ref().map_or(0, |ledger| ledger.state().idle_rounds.len());
                match (worked.report, worked.not_investigated) {
                    (Some(report), _) => self.end(Ok(report), ctx),
                    (None, Some(reason)) => {
                        let investigation = self.id.clone();
                        self.end(Err(HubError::NotInvestigated { investigation, reason, rounds }), ctx);
                    }
                    (None, None) => self.turn(ctx),
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
        let ended = |task: &TaskState| task.kind == TaskKind::Investigate && task.progress != Progress::Requested;
        self.seen.examined = state.tasks.values().any(ended);
    }

    /// Enqueues outside the batch, so that a full task queue does not delay the recording of outcomes.
    fn send_out(&mut self, task: casebook_protocol::Task, ctx: &mut Context<Self>) {
        if !self.onward || !self.leaving.insert(task.id.clone()) {
            return;
        }
        let bus = Arc::clone(&self.env.bus);
        let sent = async move {
            if let Err(error) = batch::enqueue(bus.as_ref(), &task).await {
                tracing::warn!(task = %task.id, %error, "could not enqueue task; the next sweep tries again");
            }
            task.id
        };
        ctx.spawn(sent.into_actor(self).map(|id, this, _| {
            this.leaving.remove(&id);
        }));
    }

    /// Reports the ending to the Hub, answers those who wait, and stops. Inputs left in the queue are dropped:
    /// deliveries are repeated, and the log has the rest.
    fn end(&mut self, ending: Ending, ctx: &mut Context<Self>) {
        let reported = self.hub.send(Ended(self.id.clone(), ending.as_ref().err().cloned()));
        self.ended = Some(ending.clone());
        self.queue.clear();
        ctx.spawn(reported.into_actor(self).map(move |_, this, ctx| {
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
