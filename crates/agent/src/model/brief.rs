//! What a role sends to a model for a task, and how it reads the answer.

use std::sync::Arc;

use casebook_protocol::{Answer, FindingDraft, Task, TaskKind};
use serde_json::Value;

use crate::model::Part;
use crate::model::schema::AnswerForm;
use crate::reasoner::Done;

#[derive(Debug, Clone, PartialEq)]
pub struct Briefing {
    pub prompt: String,
    pub system: String,
    /// The sections of the view. The most stable ones come first, for prompt caches.
    pub parts: Vec<Part>,
}

pub trait Brief: Send + Sync + 'static {
    /// The prompt, made from the view alone. [`Briefing::system`] and [`Briefing::parts`] together have at most `room`
    /// bytes. The prompt says what was left out.
    fn brief(&self, task: &Task, room: usize) -> Briefing;

    /// The form of the answer to a task of this kind. Implementations keep it, since compiling a schema is slow.
    fn form(&self, kind: TaskKind) -> Arc<AnswerForm>;

    /// The answer in `object`, which matches the schema of the form. `done` are the finished tool calls of the task.
    /// `room` is the room of the prompt that it answers, because what the prompt left out depends on it.
    ///
    /// # Errors
    /// Other faults, each with its place and what to write instead.
    fn read(&self, task: &Task, done: &[Done], object: &Value, room: usize) -> Result<Answer, Vec<String>>;

    /// What to say about the findings in `object` that code would cap for their form; empty if there are none. It is
    /// said once for each task.
    fn returned(&self, _task: &Task, _done: &[Done], _object: &Value) -> String {
        String::new()
    }

    /// The answer in `first` with the corrections in `second`, and how many findings were corrected. None if `second`
    /// cannot be read.
    fn mended(&self, _task: &Task, _done: &[Done], _first: &Value, _second: &Value) -> Option<(Answer, u32)> {
        None
    }

    /// Does slow preparations (forms, patterns), so that no task waits for them.
    fn ready(&self) {}

    /// Findings that code makes from the task's own tool results, for roles that read evidence.
    fn raised(&self, _task: &Task, _done: &[Done]) -> Vec<FindingDraft> {
        Vec::new()
    }
}
