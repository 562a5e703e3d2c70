//! What a task may call.

use async_trait::async_trait;
use casebook_protocol::Toolset;

/// A set of tools. Which of them a task may call is decided by the toolset in its view, in code.
#[async_trait]
pub trait Tools: Send + Sync + 'static {
    fn toolset(&self) -> Toolset;

    /// The arguments under which a call is recorded: what the caller gave, with those that are fixed for it.
    fn sent(&self, _tool: &str, arguments: &str) -> String {
        arguments.to_owned()
    }

    /// Calls a tool. The error is a message for the caller: what was wrong and what to do instead.
    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String>;
}

/// No tools at all: the Timeline task.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

#[async_trait]
impl Tools for NoTools {
    fn toolset(&self) -> Toolset {
        Toolset { name: "none".into(), about: "this task has no tools".into(), tools: Vec::new() }
    }

    async fn call(&self, tool: &str, _: &str) -> Result<String, String> {
        Err(format!("there is no tool {tool:?}: this task has no tools"))
    }
}
