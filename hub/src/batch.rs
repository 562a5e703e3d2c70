//! Handles the pending inputs of one investigation together: one pass and one append.

use std::collections::BTreeSet;
use std::sync::Arc;

use casebook_protocol::Step;
use casebook_protocol::{Domain, Report, Task, TaskId, subject};
use casebook_runtime::bus::Bus;
use casebook_runtime::wire;
use tokio::sync::oneshot;

use crate::decide::{Command, Rejection};
use crate::error::HubError;
use crate::ledger::{Ledger, Passed};

pub enum Input {
    /// The outcome of this task is recorded.
    Outcome(TaskId),
    /// A running task made a step.
    Step(TaskId, Box<Step>),
    Stop(String, oneshot::Sender<Result<(), Rejection>>),
    /// Ask the Experts again, if the investigation pauses.
    GoOn,
    /// The domains that have an Expert now.
    Attend(Arc<BTreeSet<Domain>>),
    /// Look for outcomes whose notice was lost, and enqueue open tasks again.
    Sweep,
    /// Reply when all earlier inputs are handled.
    Mark(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
pub struct Worked {
    pub tasks: Vec<Task>,
    pub report: Option<Box<Report>>,
    /// Why it pauses.
    pub not_investigated: Option<String>,
}

/// Handles all of `batch`. On failure, senders in it are dropped without an answer.
pub async fn work(ledger: Ledger, batch: Vec<Input>, onward: bool) -> Result<(Ledger, Worked), HubError> {
    let mut gathered = Batch::default();
    for work in batch {
        gathered.add(&ledger, work).await?;
    }
    let (ledger, passed) = ledger.pass(std::mem::take(&mut gathered.commands), onward).await?;
    let worked = gathered.close(&ledger, passed, onward).await?;
    Ok((ledger, worked))
}

#[derive(Default)]
struct Batch {
    commands: Vec<Command>,
    taken: BTreeSet<TaskId>,
    stops: Vec<(usize, oneshot::Sender<Result<(), Rejection>>)>,
    marks: Vec<oneshot::Sender<()>>,
    again: BTreeSet<TaskId>,
}

impl Batch {
    async fn add(&mut self, ledger: &Ledger, work: Input) -> Result<(), HubError> {
        match work {
            Input::Outcome(task) => self.outcome(ledger, task).await?,
            Input::Step(task, step) => self.commands.push(match *step {
                Step::Tool(call) => Command::RecordCall { task, call },
                Step::Model(call) => Command::RecordModelCall { task, call },
            }),
            Input::Stop(reason, reply) => {
                self.stops.push((self.commands.len(), reply));
                self.commands.push(Command::Stop { reason });
            }
            Input::Attend(present) => {
                let missing = ledger.state().roster().iter().map(|m| &m.domain).filter(|d| !present.contains(*d));
                let gone = missing.map(|d| (d.clone(), format!("the last Expert for {d} is gone"))).collect();
                self.commands.push(Command::Attend { gone, now: ledger.now() });
            }
            Input::GoOn => self.commands.push(Command::GoOn),
            Input::Mark(reply) => self.marks.push(reply),
            Input::Sweep => {
                let waiting: Vec<TaskId> = ledger.state().in_flight().map(|(id, _)| id.clone()).collect();
                for task in waiting {
                    self.outcome(ledger, task).await?;
                }
                self.commands.push(Command::Tick { now: ledger.now() });
            }
        }
        Ok(())
    }

    async fn outcome(&mut self, ledger: &Ledger, task: TaskId) -> Result<(), HubError> {
        if self.taken.contains(&task) {
            return Ok(());
        }
        match ledger.outcome(&task).await? {
            Some(command) => {
                self.commands.push(command);
                self.taken.insert(task);
            }
            None => {
                self.again.insert(task);
            }
        }
        Ok(())
    }

    async fn close(self, ledger: &Ledger, passed: Passed, onward: bool) -> Result<Worked, HubError> {
        let Passed { mut tasks, answers } = passed;
        let waiting = ledger.state().in_flight().map(|(id, _)| id).filter(|id| self.again.contains(id));
        for id in waiting.filter(|_| onward) {
            tasks.extend(ledger.task(id).await?);
        }
        // The receiver may be gone.
        for (place, reply) in self.stops {
            let _ = reply.send(answers.get(place).cloned().unwrap_or(Ok(())));
        }
        for reply in self.marks {
            let _ = reply.send(());
        }
        let not_investigated = ledger.state().not_investigated.clone();
        Ok(Worked { tasks, report: ledger.report().await?, not_investigated })
    }
}

/// Puts a task into its queue, unless it is there already.
pub async fn enqueue(bus: &dyn Bus, task: &Task) -> Result<(), HubError> {
    let queue = subject::tasks(task.view.kind().role(), task.domain.as_ref());
    let id = format!("{}/{}", task.investigation, task.id);
    let bytes = wire::encode(task).map_err(|e| HubError::Defect(e.to_string()))?;
    bus.enqueue(&queue, &id, bytes).await.map_err(|e| HubError::Bus(e.to_string()))
}
