//! Streamable HTTP on the loopback. Pages in a browser get no access: the library checks `Host`, and requests with an
//! `Origin` are refused.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::handler::Handler;
use super::{LAST_WORDS, ServeError};
use casebook_runtime::service::http::accept;
use casebook_runtime::service::signals::Stop;

pub(super) const PATH: &str = "/mcp";
const CONNECTIONS: usize = 128;
const HEAD: Duration = Duration::from_secs(10);

type Service = StreamableHttpService<Handler, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

pub(super) async fn serve(
    handler: Handler,
    address: SocketAddr,
    stop: &mut Stop,
    bound: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let failed = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let config = StreamableHttpServerConfig::default().enforce_origin_validation();
    let ending = config.cancellation_token.clone();
    let service = Service::new(move || Ok(handler.clone()), Arc::default(), config);
    bound(listener.local_addr().map_err(failed)?);
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&listener, CONNECTIONS, &mut connections, |stream| connection(stream, service.clone())) => {}
        () = stop.wait() => {}
    }
    // Ends idle streams, and lets running calls finish.
    ending.cancel();
    let _ = tokio::time::timeout(LAST_WORDS, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    Ok(())
}

async fn connection(stream: TcpStream, service: Service) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let service = service.clone();
        async move {
            let there = request.uri().path() == PATH;
            Ok::<_, Infallible>(if there { service.handle(request).await } else { elsewhere() })
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

fn elsewhere() -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"expected the path /mcp\n")).boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
