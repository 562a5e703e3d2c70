//! Serves our own [`Tools`] over MCP: standard input and output, or streamable HTTP on the loopback.

use futures_util::future::BoxFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::QuitReason;

use crate::tools::Tools;
use casebook_runtime::service::signals::Stop;

mod handler;
mod http;
mod patient;

use handler::Handler;
use patient::Patient;

/// How long running calls may take after a request to stop.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Hints about a tool for clients. A client must not rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    pub read_only: bool,
    /// It destroys nothing, and repeating a call changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond the data of this server.
    pub open_world: bool,
}

impl Hints {
    /// For a tool that only reads the data of this server.
    pub const READS: Self = Self { read_only: true, idempotent: true, open_world: false };
}

#[derive(Clone)]
pub struct Served {
    pub name: &'static str,
    /// What the server is and how to begin, for a model.
    pub instructions: String,
    pub tools: Arc<dyn Tools>,
    pub hints: fn(&str) -> Hints,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("expected a loopback address such as 127.0.0.1:0, got {0}; other machines could call all tools there")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {address}: {source}; use another address, or port 0 for a free one")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("cannot talk to the client over standard input and output: {0}")]
    Stdio(String),
}

/// Serves one client over standard input and output until the input ends or a request to stop. No other code may write
/// to standard output.
pub fn stdio(served: Served, stop: &mut Stop) -> BoxFuture<'_, Result<(), ServeError>> {
    // Boxed here, so that the crates of callers do not compile the MCP library again.
    Box::pin(over_stdio(served, stop))
}

async fn over_stdio(served: Served, stop: &mut Stop) -> Result<(), ServeError> {
    let transport = Patient::new(tokio::io::stdin(), tokio::io::stdout());
    let serving = async {
        let running = match Handler::new(served).serve(transport).await {
            Ok(running) => running,
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Stdio(error.to_string())),
        };
        match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Stdio(error.to_string())),
            Ok(_) => Ok(()),
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => ended,
        () = stop.wait() => tokio::time::timeout(LAST_WORDS, serving).await.unwrap_or(Ok(())),
    }
}

/// Serves any number of clients over streamable HTTP at `http://ADDRESS/mcp` until a request to stop. `bound` gets the
/// address, with the chosen port if it was 0.
pub fn http<'a>(
    served: Served,
    address: SocketAddr,
    stop: &'a mut Stop,
    bound: Box<dyn FnOnce(SocketAddr) + Send + 'a>,
) -> BoxFuture<'a, Result<(), ServeError>> {
    Box::pin(http::serve(Handler::new(served), address, stop, bound))
}

/// The line with the address of a server such as `casebook mcp`, so that a caller that gave port 0 can read the port.
pub fn announcement(command: &str, bound: SocketAddr) -> String {
    format!("{command} http://{bound}{}", http::PATH)
}

#[cfg(test)]
mod tests;
