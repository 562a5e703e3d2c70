//! What thinks in a role: a language model, or the built-in analyst. Both get the same task, make the
//! same kinds of move, and pass the same checks.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use casebook_protocol::{
    ANALYST, Allowance, Answer, ArtifactId, FindingDraft, ModelCall, Player, Task, ToolCall, Toolset, Usage,
};
use casebook_runtime::process::blocking;

use crate::model::brief::Briefing;
use crate::model::{Ask, Fault, Model, Reply};

/// A tool call that a reasoner asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    pub tool: String,
    /// Its arguments, JSON.
    pub arguments: String,
}

#[derive(Debug, Clone)]
pub struct Done {
    pub call: ToolCall,
    /// The whole result, or the error message.
    pub result: Arc<str>,
}

/// A finished call of a language model with what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub call: ModelCall,
    /// The reply, or what sort of failure it was.
    pub result: Result<Arc<Reply>, Fault>,
}

/// What a task has done so far: all that a reasoner has besides the task.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Its finished tool calls, in order of id.
    pub done: Arc<Vec<Done>>,
    /// Its finished model calls, in order.
    pub asked: Arc<Vec<Exchange>>,
}

/// What a reasoner may do now.
#[derive(Debug, Clone)]
pub struct Turn {
    pub toolset: Arc<Toolset>,
    /// No more tool call will be granted.
    pub last: bool,
    /// What was made of the task in earlier turns.
    pub prompt_cache: PromptCache,
}

/// What was laid out of a task for a model, kept from turn to turn: it follows from the task alone, so that
/// nothing is lost with it. Clones keep the same.
#[derive(Debug, Clone, Default)]
pub struct PromptCache(Arc<Mutex<Option<CachedBriefing>>>);

/// A briefing with the room that it was laid out in, in bytes.
#[derive(Debug)]
struct CachedBriefing {
    room: usize,
    briefing: Arc<Briefing>,
}

impl PromptCache {
    /// The briefing in `room` bytes, which is made once.
    pub fn briefing(&self, room: usize, make: impl FnOnce() -> Briefing) -> Arc<Briefing> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref() {
            Some(fitted) if fitted.room == room => Arc::clone(&fitted.briefing),
            _ => {
                let briefing = Arc::new(make());
                *kept = Some(CachedBriefing { room, briefing: Arc::clone(&briefing) });
                briefing
            }
        }
    }
}

/// A request to a language model with what it may use at the most.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    pub ask: Ask,
    /// The hash of its canonical form.
    pub request: ArtifactId,
    pub bytes: u64,
    /// The most that it can use: tokens by our estimate, the longest reply, and their price.
    pub most: Usage,
    /// How long it may take.
    pub time: std::time::Duration,
}

/// What a reasoner does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It asks a language model, and is asked again with the reply.
    Ask(Box<Asking>),
    /// It calls tools, all at once.
    Call(Vec<CallRequest>),
    Answer(Box<Answer>),
    /// It cannot: the reason becomes a recorded failure.
    GiveUp(String),
}

/// What thinks in a role. It keeps nothing between calls: all that it may know is in the task and in
/// what the task's own calls returned, so that a task that comes again goes on where it was.
#[async_trait]
pub trait Reasoner: Send + Sync + 'static {
    /// Who plays `task`, or did, as far as `past` tells.
    fn player(&self, task: &Task, past: &Past) -> Player;

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action;

    /// What `task` may use: no more than it was given.
    fn allowance(&self, task: &Task) -> Allowance {
        task.allowance
    }

    /// What code saw in the results of the task's own calls and raises whatever the reasoner makes of them,
    /// and even when it gives no answer: text that addresses the analyst, and what is grave.
    async fn raised(&self, _task: &Arc<Task>, _past: &Past) -> Vec<FindingDraft> {
        Vec::new()
    }

    /// Makes now what is made once and takes time, so that no task waits for it.
    async fn ready(&self) {}

    /// The language models that it asks; none for an analyst in code.
    fn models(&self) -> Option<&dyn Model> {
        None
    }
}

/// Tasks that a role works on at once where language models think: what bounds those is how many calls
/// a model takes at once (`concurrency` of the models file), and a task that waits takes memory alone.
pub const WAITING: usize = 1024;

/// A reasoner that is a function: the built-in analyst. It runs where blocking work belongs.
pub struct Analyst(pub fn(&Task, &[Done], bool) -> Action);

impl std::fmt::Debug for Analyst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyst")
    }
}

#[async_trait]
impl Reasoner for Analyst {
    fn player(&self, _: &Task, _: &Past) -> Player {
        Player { name: ANALYST.into(), version: env!("CARGO_PKG_VERSION").into(), built_in: true }
    }

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action {
        let last = turn.last;
        let (think, task, done) = (self.0, Arc::clone(task), Arc::clone(&past.done));
        let thought = blocking(move || think(&task, &done, last)).await;
        thought.unwrap_or_else(|error| Action::GiveUp(format!("the built-in analyst stopped: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_briefing_is_laid_out_once_for_the_room_that_there_is() {
        let prompt_cache = PromptCache::default();
        let mut made = 0;
        let mut briefing = |room: usize| {
            let make = || {
                made += 1;
                Briefing { prompt: room.to_string(), system: String::new(), parts: Vec::new() }
            };
            prompt_cache.clone().briefing(room, make).prompt.clone()
        };
        assert_eq!([7, 7, 8, 8].map(&mut briefing), ["7", "7", "8", "8"]);
        assert_eq!(made, 2);
    }
}
