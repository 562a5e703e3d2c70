//! The interface of what thinks in a role: a language model or the built-in analyst. Both have the same tasks and
//! actions, and pass the same checks.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use casebook_protocol::{
    ANALYST, Allowance, Answer, ArtifactId, FindingDraft, Member, ModelCall, Player, Task, ToolCall, Toolset, Usage,
};
use casebook_runtime::process::blocking;

use crate::model::brief::Briefing;
use crate::model::{Ask, Fault, Model, Reply};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    pub tool: String,
    pub arguments: String,
}

#[derive(Debug, Clone)]
pub struct Done {
    pub call: ToolCall,
    /// The whole result, or the error message.
    pub result: Arc<str>,
}

/// A finished model call with its reply.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub call: ModelCall,
    pub result: Result<Arc<Reply>, Fault>,
}

/// What a task has done so far.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Finished tool calls, in order of id.
    pub done: Arc<Vec<Done>>,
    /// Finished model calls, in order.
    pub asked: Arc<Vec<Exchange>>,
}

#[derive(Debug, Clone)]
pub struct Turn {
    pub toolset: Arc<Toolset>,
    /// No more tool calls are allowed.
    pub last: bool,
    /// Kept from earlier turns.
    pub prompt_cache: PromptCache,
}

/// The briefing of a task, kept between turns. It follows from the task, so it may be lost. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PromptCache(Arc<Mutex<Option<CachedBriefing>>>);

#[derive(Debug)]
struct CachedBriefing {
    room: usize,
    briefing: Arc<Briefing>,
}

impl PromptCache {
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

#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    pub ask: Ask,
    /// The hash of the request's canonical form.
    pub request: ArtifactId,
    pub bytes: u64,
    /// The most that the request can use: estimated input tokens, the longest reply, and their price.
    pub most: Usage,
    pub time: std::time::Duration,
    /// The answer that counts if this request cannot be made.
    pub stands: Option<Box<Answer>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask a language model. The reasoner is called again with the reply.
    Ask(Box<Asking>),
    /// Call tools, all at once.
    Call(Vec<CallRequest>),
    Answer(Box<Answer>),
    /// An answer after faulty findings were returned, and how many of them are right now.
    Corrected(Box<Answer>, u32),
    GiveUp(String),
}

/// What thinks in a role. It has no state between calls: it knows only the task and the task's own results, so that a
/// repeated task continues where it was.
#[async_trait]
pub trait Reasoner: Send + Sync + 'static {
    /// The player of `task`, by the replies in `past`.
    fn player(&self, task: &Task, past: &Past) -> Player;

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action;

    /// The limits of `task`, within those that it was given.
    fn allowance(&self, task: &Task) -> Allowance {
        task.allowance
    }

    /// Findings that code makes from the task's own results, such as text that addresses the analyst. They are added
    /// to any answer, and reported without one.
    async fn raised(&self, _task: &Arc<Task>, _past: &Past) -> Vec<FindingDraft> {
        Vec::new()
    }

    /// The most that the first call for an Expert of this roster entry can use, at least. None for an analyst in code.
    fn one_call(&self, _member: &Member) -> Option<Usage> {
        None
    }

    /// Does slow preparations, so that no task waits for them.
    async fn ready(&self) {}

    /// Whether the requests to its models are kept.
    fn keeps_requests(&self) -> bool;

    /// None for an analyst in code.
    fn models(&self) -> Option<&dyn Model> {
        None
    }
}

/// The most concurrent tasks of a role with language models. Calls are limited by `concurrency` in the models file,
/// and a waiting task only takes memory.
pub const WAITING: usize = 1024;

/// The built-in analyst: a function, which runs on a thread for blocking work.
pub struct Analyst(pub fn(&Task, &[Done], bool) -> Action);

impl std::fmt::Debug for Analyst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyst")
    }
}

#[async_trait]
impl Reasoner for Analyst {
    fn keeps_requests(&self) -> bool {
        false
    }

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
