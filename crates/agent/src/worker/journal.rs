use casebook_protocol::{CallStatus, EntryDraft, Task, ToolCall, View};

use super::JOURNAL_TOOL;

/// The accepted Journal entries of a Director's task, in order. Empty for other roles.
pub(super) fn written(task: &Task, calls: &[ToolCall]) -> Vec<EntryDraft> {
    if !matches!(task.view, View::Plan(_) | View::Decide(_) | View::Report(_)) {
        return Vec::new();
    }
    let accepted = calls.iter().filter(|c| c.tool == JOURNAL_TOOL && c.status == CallStatus::Answered);
    accepted.filter_map(|c| serde_json::from_str(&c.arguments).ok()).collect()
}
