//! Performs tasks: drives the turn loop, records every finished call and the outcome once, and then acknowledges the
//! job.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::key::{call_key, outcome_key};
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{
    Answer, CallId, CallStatus, Outcome, OutcomeNotice, Step, Task, TaskId, ToolCall, Usage, View, between,
    hash::canonical_json,
};
use casebook_runtime::bus::{Bus, BusError, Delivery};
use casebook_runtime::env::{BuryError, Env};
use casebook_runtime::process::Performer;
use casebook_runtime::store::{Once, StoreError, artifact_text};
use casebook_runtime::telemetry::{self, export, meter};
use casebook_runtime::wire::{self, WireError};
use casebook_runtime::{stored, task_span, tool_span};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tracing::Instrument;

use crate::model::kept::Before;
use crate::reasoner::{Action, CallRequest, Done, PromptCache, Reasoner, Turn};
use crate::tools::Tools;
use crate::turn::{Effect, Input, TurnLoop};

mod ask;
mod dead;
mod journal;
mod notice;

use ask::TaskTime;

/// The Director's tool for Journal entries. The worker collects the entries from its recorded calls.
pub const JOURNAL_TOOL: &str = "journal";

/// Maximum attempts before a task is recorded as failed. Worker crashes and infrastructure errors count as attempts.
pub const ATTEMPTS: u32 = 10;

/// Why a task could not be worked on. It returns to the queue.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Bury(#[from] BuryError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("task {task} does not belong to the queue {queue}")]
    Astray { task: TaskId, queue: String },
    #[error("the record of {what} cannot be read: {reason}")]
    Recorded { what: String, reason: String },
}

#[derive(Clone)]
pub struct Worker {
    env: Env,
    reasoner: Arc<dyn Reasoner>,
    tools: Arc<dyn ToolsFor>,
}

/// The tools of a task. An Expert's are always the same; the Critic's read the record of the task's investigation.
pub trait ToolsFor: Send + Sync + 'static {
    fn tools_for(&self, task: &Arc<Task>, env: &Env) -> Arc<dyn Tools>;
}

pub struct Fixed(pub Arc<dyn Tools>);

impl ToolsFor for Fixed {
    fn tools_for(&self, _: &Arc<Task>, _: &Env) -> Arc<dyn Tools> {
        Arc::clone(&self.0)
    }
}

#[async_trait]
impl Performer for Worker {
    fn bus(&self) -> &Arc<dyn Bus> {
        &self.env.bus
    }

    async fn ready(&self) {
        self.reasoner.ready().await;
    }

    async fn handle(&self, queue: &Queue, delivery: Box<dyn Delivery>) {
        let attempt = delivery.attempt();
        let done = match self.attempt(queue, delivery.bytes(), attempt).await {
            Ok(()) => delivery.done().await,
            Err(error @ (WorkError::Wire(_) | WorkError::Astray { .. })) => {
                tracing::error!(%error, "dropped a job that is not a task of this queue; the Hub will request the task again");
                match self.bury(queue, None, delivery.bytes(), attempt, &error.to_string()).await {
                    Ok(()) => delivery.done().await,
                    Err(error) => {
                        tracing::error!(%error, attempt, "could not write a dead letter; the job returns to its queue");
                        delivery.back(pause(attempt)).await
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, attempt, "a task returns to its queue");
                delivery.back(pause(attempt)).await
            }
        };
        if let Err(error) = done {
            tracing::warn!(%error, "could not acknowledge a job; it will be delivered again");
        }
    }
}

impl Worker {
    #[must_use]
    pub fn new(env: Env, reasoner: Arc<dyn Reasoner>, tools: Arc<dyn ToolsFor>) -> Self {
        Self { env, reasoner, tools }
    }

    async fn attempt(&self, queue: &Queue, bytes: &[u8], attempt: u32) -> Result<(), WorkError> {
        let task: Arc<Task> = Arc::new(wire::decode(bytes)?);
        if queue_of(&task) != *queue || Queue::of(&task.id).as_ref() != Some(queue) {
            return Err(WorkError::Astray { task: task.id.clone(), queue: queue.name() });
        }
        let agent = queue.name();
        let span = task_span!(task, agent);
        export::link(&span, &task.investigation);
        let begun = self.env.clock.now();
        let done = async {
            let key = outcome_key(&task.id);
            if self.env.store.recorded(&task.investigation, &key).await?.is_none() {
                let outcome = match self.given_up(&task, bytes, attempt).await {
                    Some(given_up) => given_up,
                    None => self.perform(&task).await?,
                };
                let json =
                    stored::write(&outcome).map_err(|reason| WorkError::Recorded { what: key.clone(), reason })?;
                self.env.store.record_once(&task.investigation, &key, &json).await?;
                let failed = outcome.result.is_err();
                if failed {
                    telemetry::failed(&span, meter::TASK_FAILED);
                }
                let seconds = meter::seconds(begun, self.env.clock.now());
                meter::task_ended(&agent, task.view.kind().name(), seconds, failed);
            }
            let notice = OutcomeNotice { investigation: task.investigation.clone(), task: task.id.clone() };
            self.env.bus.publish(&subject::outcomes(&queue_of(&task)), wire::encode(&notice)?).await?;
            Ok(())
        }
        .instrument(span.clone())
        .await;
        if done.is_err() {
            telemetry::failed(&span, NOT_WORKED);
        }
        done
    }

    /// Performs the task. Recorded calls are reused and never repeated.
    ///
    /// # Errors
    /// The store or the bus fails. Failures of the task itself are outcomes.
    pub async fn perform(&self, task: &Arc<Task>) -> Result<Outcome, WorkError> {
        let tools = self.tools.tools_for(task, &self.env);
        let allowance = self.reasoner.allowance(task);
        let toolset = Arc::new(tools.toolset());
        let mut machine = TurnLoop::new(task.id.clone(), task.view.kind(), allowance, &toolset);
        let mut time = TaskTime {
            limit: Duration::from_secs(allowance.seconds),
            begun: self.env.clock.now(),
            before: Duration::ZERO,
            stored: Duration::ZERO,
        };
        let prompt_cache = PromptCache::default();
        let mut before = Before::default();
        let mut effects = machine.begin();
        loop {
            let mut calls = FuturesUnordered::new();
            let mut inputs = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Finish(result) => {
                        return Ok(self.outcome(task, &tools, &machine, result.map(|a| *a)).await);
                    }
                    Effect::Think { last } => {
                        let turn = Turn { toolset: Arc::clone(&toolset), last, prompt_cache: prompt_cache.clone() };
                        inputs.push(Input::Action(self.reasoner.next(task, machine.past(), &turn).await));
                    }
                    Effect::Ask(asking) => inputs.push(self.ask(task, *asking, &mut time, &mut before).await?),
                    Effect::Call { id, request, refused } => {
                        calls.push(self.call(task, &tools, id, request, refused));
                    }
                }
            }
            let mut stored = Duration::ZERO;
            while let Some(done) = calls.next().await {
                let (done, took) = done?;
                stored = stored.max(took);
                inputs.push(Input::Called(Box::new(done)));
            }
            time.stored += stored;
            effects = inputs.into_iter().flat_map(|input| machine.step(input)).collect();
            if effects.is_empty() {
                let stuck = "the turn loop has no next step; this is a defect of casebook".to_owned();
                return Ok(self.outcome(task, &tools, &machine, Err(stuck)).await);
            }
        }
    }

    /// Makes a call and records it, or takes its recorded result. Returns how long the recording took.
    async fn call(
        &self,
        task: &Arc<Task>,
        tools: &Arc<dyn Tools>,
        id: CallId,
        request: CallRequest,
        refused: Option<String>,
    ) -> Result<(Done, Duration), WorkError> {
        let key = call_key(&id);
        if let Some(bytes) = self.env.store.recorded(&task.investigation, &key).await? {
            return Ok((self.recall(&key, &bytes).await?, Duration::ZERO));
        }
        let started = self.env.clock.now();
        let asked = serde_json::from_str(&request.arguments)
            .map(|v: serde_json::Value| canonical_json(&v))
            .unwrap_or_else(|_| request.arguments.clone());
        let arguments = if refused.is_none() { tools.sent(&request.tool, &asked) } else { asked.clone() };
        let result = match refused {
            Some(why) => Err(why),
            None => {
                // Not for refused calls, whose names a model may have made up.
                let span = tool_span!(id, request.tool.as_str());
                tracing::debug!(call = %id, investigation = %task.investigation, tool = request.tool, "a tool runs");
                let result = tools.call(&request.tool, &asked).instrument(span.clone()).await;
                if result.is_err() {
                    telemetry::failed(&span, meter::TOOL_FAILED);
                }
                let seconds = meter::seconds(started, self.env.clock.now());
                meter::tool_ran(&queue_of(task).name(), &request.tool, seconds, result.is_err());
                result
            }
        };
        let limit = task.allowance.result_bytes;
        let (status, text) = match result {
            Ok(text) if text.len() as u64 > limit => (
                CallStatus::Failed,
                format!("expected a result of at most {limit} bytes, got {}; ask for less", text.len()),
            ),
            Ok(text) => (CallStatus::Answered, text),
            Err(why) => (CallStatus::Failed, why),
        };
        let answered = ToolCall::answered(id, request.tool, arguments, text.as_bytes());
        let (domain, ended) = (task.domain.clone(), self.env.clock.now());
        let call = ToolCall { domain, status, started, ended, ..answered };
        let json = stored::write(&call).map_err(|reason| WorkError::Recorded { what: key.clone(), reason })?;
        let artifact = (&call.result, text.as_bytes());
        let once = self.env.store.record_once_with(&task.investigation, &key, &json, &[artifact]).await?;
        let took = between(call.ended, self.env.clock.now());
        if let Once::Stands(bytes) = once {
            return Ok((self.recall(&key, &bytes).await?, took));
        }
        self.announce(task, Step::Tool(call.clone())).await?;
        Ok((Done { call, result: text.into() }, took))
    }

    async fn recall(&self, key: &str, bytes: &[u8]) -> Result<Done, WorkError> {
        let unreadable = |reason: String| WorkError::Recorded { what: key.to_owned(), reason };
        let call: ToolCall = stored::read(bytes).map_err(unreadable)?;
        let result = artifact_text(self.env.store.as_ref(), &call.result).await?;
        let result = result.ok_or_else(|| unreadable(format!("its result {} is not in the store", call.result)))?;
        Ok(Done { call, result: result.into() })
    }

    async fn outcome(
        &self,
        task: &Arc<Task>,
        tools: &Arc<dyn Tools>,
        machine: &TurnLoop,
        result: Result<Answer, String>,
    ) -> Outcome {
        let calls: Vec<ToolCall> = machine.done().iter().map(|d| d.call.clone()).collect();
        let asked = machine.past().asked.iter().map(|e| e.call.clone()).collect();
        let mut usage = Usage {
            tool_calls: calls.iter().filter(|call| !call.id.is_again()).count() as u64,
            result_bytes: calls.iter().map(|c| c.bytes).sum(),
            ..Usage::default()
        };
        usage += machine.used();
        let journal = journal::written(task, &calls);
        let player = self.reasoner.player(task, machine.past());
        let raised = self.reasoner.raised(task, machine.past()).await;
        let (acts, files, limits) = match &task.view {
            View::Investigate(view) => (tools.acts(&view.alert).await, tools.files().await, machine.limits()),
            View::Plan(_) | View::Review(_) | View::Timeline(_) | View::Decide(_) | View::Report(_) => {
                (None, None, Vec::new())
            }
        };
        let corrected = machine.corrected();
        let whole = Outcome::new(task.id.clone(), player, result);
        Outcome { journal, calls, asked, raised, acts, files, corrected, limits, usage, ..whole }
    }
}

/// The kind of failure of a task that was interrupted and will be repeated.
const NOT_WORKED: &str = "not_worked";

/// The pause before another delivery after this many attempts.
fn pause(attempt: u32) -> Duration {
    Duration::from_secs(u64::from(attempt.min(30)))
}

fn queue_of(task: &Task) -> Queue {
    Queue::new(task.view.kind().role(), task.domain.as_ref())
}

/// A call that an analyst asks for.
pub fn call(tool: &str, arguments: &serde_json::Value) -> CallRequest {
    CallRequest { tool: tool.to_owned(), arguments: canonical_json(arguments) }
}

/// The final action of an analyst.
pub fn answer(answer: Answer) -> Action {
    Action::Answer(Box::new(answer))
}
