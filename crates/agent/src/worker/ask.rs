//! Asks language models, and records their replies.

use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::{ArtifactId, ModelCall, Purpose, Task, Timestamp, between};

use super::{Step, WorkError, Worker};
use crate::model::kept::{Before, StoredReply, split};
use crate::model::{Answered, AskError};
use crate::reasoner::{Action, Asking, Exchange};
use crate::turn::Input;
use casebook_protocol::key::model_key;
use casebook_runtime::store::Once;
use casebook_runtime::stored;

impl Worker {
    /// Asks a language model, or takes its recorded reply.
    pub(super) async fn ask(
        &self,
        task: &Arc<Task>,
        asking: Asking,
        time: &mut TaskTime,
        before: &mut Before,
    ) -> Result<Input, WorkError> {
        let asked = self.asked(task, &asking, time, before).await?;
        if let Input::Replied(exchange) = &asked {
            *before = Before { messages: asking.ask.messages, reply: exchange.result.clone().ok() };
        }
        Ok(asked)
    }

    async fn asked(
        &self,
        task: &Arc<Task>,
        asking: &Asking,
        time: &mut TaskTime,
        before: &Before,
    ) -> Result<Input, WorkError> {
        let (ask, patience) = (&asking.ask, asking.time);
        let key = model_key(&ask.id);
        if let Some(bytes) = self.env.store.recorded(&task.investigation, &key).await? {
            let exchange = self.recall_model(&key, &bytes).await?;
            time.before += between(exchange.call.started, exchange.call.ended);
            return Ok(Input::Replied(Box::new(exchange)));
        }
        let started = self.env.clock.now();
        let left = time.left(started);
        if left.is_zero() {
            let over = format!("its time of {} s is over", time.limit.as_secs());
            return Ok(Input::Action(Action::GiveUp(over)));
        }
        if left < time.limit / 4 && ask.purpose == Purpose::Turn {
            return Ok(Input::Late);
        }
        let Some(models) = self.reasoner.models() else {
            let defect = "it has no model to ask; this is a defect of casebook".to_owned();
            return Ok(Input::Action(Action::GiveUp(defect)));
        };
        let answer = models.ask(ask, patience.min(left)).await;
        let answered = self.env.clock.now();
        let exchange = self.record_model(task, &key, asking, before, answer, started).await?;
        time.stored += between(answered, self.env.clock.now());
        Ok(Input::Replied(Box::new(exchange)))
    }

    async fn record_model(
        &self,
        task: &Arc<Task>,
        key: &str,
        asking: &Asking,
        before: &Before,
        answer: Result<Answered, AskError>,
        started: Timestamp,
    ) -> Result<Exchange, WorkError> {
        let ask = &asking.ask;
        let request = self.reasoner.keeps_requests().then(|| split(ask, before));
        let mut call = ModelCall {
            request: asking.request.clone(),
            request_bytes: asking.bytes,
            kept: request.as_ref().map(|split| split.kept.clone()),
            started,
            ended: self.env.clock.now(),
            ..ModelCall::new(ask.id.clone(), &*ask.model, &*ask.prompt, ask.purpose)
        };
        let stored = match answer {
            Ok(answered) => {
                call.version = answered.version;
                call.attempts = answered.attempts;
                call.usage.input_tokens = answered.tokens.input;
                call.usage.cached_tokens = answered.tokens.cached;
                call.usage.output_tokens = answered.tokens.output;
                call.usage.cost_micros = answered.cost_micros;
                call.estimated = answered.estimated;
                StoredReply::Reply(answered.reply)
            }
            Err(error) => {
                call.attempts = error.attempts;
                call.failed = Some(error.message);
                StoredReply::Fault(error.fault)
            }
        };
        let what = |reason: String| WorkError::Recorded { what: key.to_owned(), reason };
        let reply = stored::write(&stored).map_err(what)?;
        let id = ArtifactId::of(&reply);
        call.reply = Some(id.clone());
        let json = stored::write(&call).map_err(what)?;
        let parts = request.iter().flat_map(|split| &split.artifacts).map(|(id, bytes)| (id, bytes.as_slice()));
        let artifacts: Vec<_> = std::iter::once((&id, reply.as_slice())).chain(parts).collect();
        let once = self.env.store.record_once_with(&task.investigation, key, &json, &artifacts).await?;
        if let Once::Stands(bytes) = once {
            return self.recall_model(key, &bytes).await;
        }
        self.announce(task, Step::Model(call.clone())).await?;
        Ok(Exchange { call, result: stored.into_result() })
    }

    async fn recall_model(&self, key: &str, bytes: &[u8]) -> Result<Exchange, WorkError> {
        let unreadable = |reason: String| WorkError::Recorded { what: key.to_owned(), reason };
        let call: ModelCall = stored::read(bytes).map_err(unreadable)?;
        let id = call.reply.as_ref().ok_or_else(|| unreadable("it has no reply".into()))?;
        let reply = self.env.store.get(id).await?;
        let reply = reply.ok_or_else(|| unreadable(format!("its reply {id} is not in the store")))?;
        let stored: StoredReply = stored::read(&reply).map_err(unreadable)?;
        Ok(Exchange { call, result: stored.into_result() })
    }
}

/// The working time of a task, over all workers that had it.
pub(super) struct TaskTime {
    pub(super) limit: Duration,
    pub(super) begun: Timestamp,
    /// Time of recorded model calls.
    pub(super) before: Duration,
    /// Time spent recording results. It does not count against the task, which cannot help a full store.
    pub(super) stored: Duration,
}

impl TaskTime {
    fn left(&self, now: Timestamp) -> Duration {
        self.limit.saturating_sub(self.before + between(self.begun, now).saturating_sub(self.stored))
    }
}
