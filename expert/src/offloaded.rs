//! Evidence tools block on files; here they run where blocking is allowed.

use async_trait::async_trait;
use casebook_agent::tools::Tools;
use casebook_protocol::Toolset;
use casebook_runtime::process::blocking;
use tokio::sync::Semaphore;

use casebook_evidence::EvidenceTools;

/// So many searches read evidence at once in the whole process: each may hold many hits, and more of them
/// than cores only hold more memory.
static SEARCHES: Semaphore = Semaphore::const_new(3);

/// Evidence tools for callers that must not block.
#[derive(Debug, Clone)]
pub struct Offloaded(pub EvidenceTools);

#[async_trait]
impl Tools for Offloaded {
    fn toolset(&self) -> Toolset {
        self.0.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        // The semaphore is never closed. The search holds its turn, for whoever asked may go away before.
        let turn = SEARCHES.acquire().await;
        let (tools, tool, arguments) = (self.0.clone(), tool.to_owned(), arguments.to_owned());
        let search = move || {
            let _turn = turn;
            tools.call(&tool, &arguments)
        };
        blocking(search).await.unwrap_or_else(|error| Err(format!("the tool stopped: {error}")))
    }
}
