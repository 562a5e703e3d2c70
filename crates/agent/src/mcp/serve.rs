//! Our own tools as an MCP server: any [`Tools`] over standard input and output, or over streamable
//! HTTP on the loopback. Whatever a client sends, it gets an answer, and the server goes on.

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

/// How long answers under way may take once somebody asked to stop.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a client may be told of a tool beside its documentation. Hints: who needs to rely on them does not
/// take them from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// What it changes is added and destroys nothing; the same call again changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond what this server keeps.
    pub open_world: bool,
}

impl Hints {
    /// A tool that only reads what this server keeps.
    pub const READS: Self = Self { read_only: true, idempotent: true, open_world: false };
}

#[derive(Clone)]
pub struct Served {
    pub name: &'static str,
    /// What it is and how to begin, for a model that never saw it.
    pub instructions: String,
    pub tools: Arc<dyn Tools>,
    /// What is said of each tool, by name.
    pub hints: fn(&str) -> Hints,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "{0} can be reached from other machines, and whoever reaches it may call all tools: name a loopback address, such as 127.0.0.1:0"
    )]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {address}: {source}; name another address, or port 0 for a free one")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("cannot talk to the client over standard input and output: {0}")]
    Stdio(String),
}

/// Serves one client over standard input and output until the input ends or `stop` is asked for. Nothing
/// else may write to standard output meanwhile.
pub async fn stdio(served: Served, stop: &mut Stop) -> Result<(), ServeError> {
    let transport = Patient::new(tokio::io::stdin(), tokio::io::stdout());
    let serving = async {
        let running = match Handler::new(served).serve(transport).await {
            Ok(running) => running,
            // The input ended before a client said who it is.
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

/// Serves any number of clients over streamable HTTP at `http://ADDRESS/mcp` until `stop` is asked for;
/// `bound` is told the address once it is listened on, with the port that the system chose for port 0.
///
/// # Errors
/// The address is none of the loopback, or cannot be listened on.
pub async fn http(
    served: Served,
    address: SocketAddr,
    stop: &mut Stop,
    bound: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    http::serve(Handler::new(served), address, stop, bound).await
}

/// The line that says where the server of a command (`casebook mcp`) listens: whoever gave port 0 reads it there.
pub fn announcement(command: &str, bound: SocketAddr) -> String {
    format!("{command} http://{bound}{}", http::PATH)
}

#[cfg(test)]
mod tests;
