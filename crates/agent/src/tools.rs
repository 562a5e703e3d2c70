//! The interface of toolsets.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{Acts, Alert, ExpertView, Files, InvestigationId, Toolset};

/// A set of tools. The toolset in a task's view decides which of them it may call.
#[async_trait]
pub trait Tools: Send + Sync + 'static {
    fn toolset(&self) -> Toolset;

    /// The arguments under which a call is recorded: those of the caller and the fixed ones.
    fn sent(&self, _tool: &str, arguments: &str) -> String {
        arguments.to_owned()
    }

    /// Calls a tool. The error is a message for the caller.
    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String>;

    /// The acts of an alert that a dismissal must account for. None if these tools read no evidence files.
    async fn acts(&self, _alert: &Alert) -> Option<Acts> {
        None
    }

    /// The evidence files that these tools read, with their hashes. None if they read none.
    async fn files(&self) -> Option<Files> {
        None
    }

    /// These tools for one investigation: over the sources of the view, as they were when the snapshot was read; as they
    /// are now if nothing was read yet. None if all investigations share these tools.
    fn for_case(&self, _investigation: &InvestigationId, _view: &ExpertView) -> Option<Arc<dyn Tools>> {
        None
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

#[async_trait]
impl Tools for NoTools {
    fn toolset(&self) -> Toolset {
        Toolset { name: "none".into(), about: "this task has no tools".into(), tools: Vec::new() }
    }

    async fn call(&self, tool: &str, _: &str) -> Result<String, String> {
        Err(format!("cannot call {tool:?}: this task has no tools"))
    }
}
