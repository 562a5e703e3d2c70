//! Lines of standard input as messages, from a client that need not keep to the order of the protocol.

use rmcp::model::{JsonRpcMessage, ServerResult};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

/// A client over a pair of streams. What is neither a request nor asked for is left out until the client
/// has opened the session: the library would end there, and the client would lose its server.
pub(super) struct Patient<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    open: bool,
}

impl<R, W> Patient<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W) -> Self {
        Self { lines: AsyncRwTransport::new_server(read, write), open: false }
    }
}

impl<R, W> Transport<RoleServer> for Patient<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // A ping and a discovery may come before; any other answer is one within a session.
        if let JsonRpcMessage::Response(answer) = &item {
            self.open |= !matches!(answer.result, ServerResult::EmptyResult(_) | ServerResult::DiscoverResult(_));
        }
        self.lines.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.lines.receive().await?;
            if self.open || matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
            tracing::debug!("a message before the session is open is left out");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.lines.close()
    }
}
