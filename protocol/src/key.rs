//! The keys under which each result is recorded once.

use crate::{CallId, ModelCallId, TaskId};

pub fn outcome_key(task: &TaskId) -> String {
    format!("outcome/{task}")
}

pub fn call_key(call: &CallId) -> String {
    format!("call/{call}")
}

pub fn model_key(call: &ModelCallId) -> String {
    format!("model/{call}")
}
