//! Runs evidence tools, which block on files, on threads that may block.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::tools::Tools;
use casebook_protocol::{Acts, Alert, Files, Toolset};
use casebook_runtime::process::blocking;
use tokio::sync::Semaphore;

use casebook_evidence::EvidenceTools;

/// Concurrent searches in the process. Each may hold many hits in memory, and more searches than cores are not
/// faster.
static SEARCHES: Semaphore = Semaphore::const_new(3);

#[derive(Debug, Clone)]
pub struct Offloaded(pub EvidenceTools);

#[async_trait]
impl Tools for Offloaded {
    fn toolset(&self) -> Toolset {
        self.0.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        // The semaphore is never closed. The search keeps its permit, because its caller may stop waiting.
        let turn = SEARCHES.acquire().await;
        let (tools, tool, arguments) = (self.0.clone(), tool.to_owned(), arguments.to_owned());
        let search = move || {
            let _turn = turn;
            tools.call(&tool, &arguments)
        };
        blocking(search).await.unwrap_or_else(|error| Err(format!("the tool stopped: {error}")))
    }

    fn files(&self) -> Option<Files> {
        Some(self.0.catalog().files())
    }

    async fn acts(&self, alert: &Alert) -> Option<Acts> {
        let turn = SEARCHES.acquire().await;
        let (catalog, alert) = (Arc::clone(self.0.catalog()), alert.clone());
        let list = move || {
            let _turn = turn;
            catalog.acts(&alert).map_err(|error| error.to_string())
        };
        match blocking(list).await.unwrap_or_else(|error| Err(format!("the search stopped: {error}"))) {
            Ok(acts) => Some(acts),
            Err(error) => {
                tracing::warn!(error, "could not list the acts that a dismissal must account for");
                // The list is not complete, so nothing is dismissed.
                Some(Acts { more: 1, ..Acts::default() })
            }
        }
    }
}
