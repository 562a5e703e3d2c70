//! What thinks in a role: a language model, or the built-in analyst. Both get the same task, make the
//! same kinds of move, and pass the same checks.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{Answer, Player, Task, ToolCall};

/// A tool call that a mind asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// The tool.
    pub tool: String,
    /// Its arguments, JSON.
    pub arguments: String,
}

/// A finished tool call with its result.
#[derive(Debug, Clone)]
pub struct Done {
    /// The call as recorded.
    pub call: ToolCall,
    /// The whole result, or the error message.
    pub result: Arc<str>,
}

/// What a mind does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Thought {
    /// It calls tools, all at once.
    Call(Vec<CallRequest>),
    /// It answers, and the task is over.
    Answer(Box<Answer>),
    /// It cannot: the reason becomes a recorded failure.
    GiveUp(String),
}

/// What thinks in a role. It keeps nothing between calls: all that it may know is in the task and in
/// what the task's own calls returned, so that a task that comes again goes on where it was.
#[async_trait]
pub trait Mind: Send + Sync + 'static {
    /// Who plays.
    fn player(&self) -> Player;

    /// The next move. `last` says that no more tool call will be granted.
    async fn next(&self, task: &Arc<Task>, done: &Arc<Vec<Done>>, last: bool) -> Thought;
}

/// A mind that is a function: the built-in analyst. It runs where blocking work belongs.
pub struct Analyst(pub fn(&Task, &[Done], bool) -> Thought);

impl std::fmt::Debug for Analyst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyst")
    }
}

/// The name under which the built-in analyst plays.
pub const ANALYST: &str = "built-in analyst";

#[async_trait]
impl Mind for Analyst {
    fn player(&self) -> Player {
        Player { name: ANALYST.into(), version: env!("CARGO_PKG_VERSION").into() }
    }

    async fn next(&self, task: &Arc<Task>, done: &Arc<Vec<Done>>, last: bool) -> Thought {
        let (think, task, done) = (self.0, Arc::clone(task), Arc::clone(done));
        match tokio::task::spawn_blocking(move || think(&task, &done, last)).await {
            Ok(thought) => thought,
            // The runtime shuts down. An answer now would be recorded for ever as the task's failure.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            Err(error) => Thought::GiveUp(format!("the built-in analyst stopped: {error}")),
        }
    }
}
