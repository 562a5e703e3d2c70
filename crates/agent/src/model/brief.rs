//! What a role tells a model for a task, and what it takes from the object that the model answers
//! with. Each role implements [`Brief`] for its own tasks; prompts lie in its `prompts/` folder.

use std::sync::Arc;

use casebook_protocol::{Answer, FindingDraft, Task, TaskKind};
use serde_json::Value;

use crate::model::Part;
use crate::model::schema::AnswerForm;
use crate::reasoner::Done;

#[derive(Debug, Clone, PartialEq)]
pub struct Briefing {
    /// The prompt and its version, such as `investigate 1`.
    pub prompt: String,
    /// The system prompt: the same for every task of this kind, rubric included.
    pub system: String,
    /// What the view says, the most stable part first (Journal, then what is new).
    pub parts: Vec<Part>,
}

/// What a role tells a model and takes from it. Pure.
pub trait Brief: Send + Sync + 'static {
    /// The prompt, rendered from the view alone. `room` is the bytes that [`Briefing::system`] and
    /// [`Briefing::parts`] may have together: what does not fit is left out, and the prompt says how
    /// much and of what.
    fn brief(&self, task: &Task, room: usize) -> Briefing;

    /// The form of the answer to a task of this kind: made once, since a schema takes time to compile.
    fn form(&self, kind: TaskKind) -> Arc<AnswerForm>;

    /// The answer in `object`, which has passed the full schema of the form. `done` are the task's
    /// finished tool calls.
    ///
    /// # Errors
    /// What is wrong with it beyond its form, each with its place and what to write instead.
    fn read(&self, task: &Task, done: &[Done], object: &Value) -> Result<Answer, Vec<String>>;

    /// Makes now what is made once and takes time (forms, patterns), so that no task waits for it.
    fn ready(&self) {}

    /// What code raises from the results of the task's own calls, whatever the model made of them.
    /// Nothing, unless the role reads evidence.
    fn raised(&self, _task: &Task, _done: &[Done]) -> Vec<FindingDraft> {
        Vec::new()
    }
}
