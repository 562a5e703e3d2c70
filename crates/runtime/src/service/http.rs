//! Health checks and metrics over HTTP: `/live`, `/ready` and `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::health::Health;
use crate::telemetry::scrape;

const CONNECTIONS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(5);
const HEAD: usize = 16 * 1024;

/// Serves health checks at `address` until the process ends. Returns the address, which has the chosen port if it was
/// 0.
pub async fn serve(address: SocketAddr, health: Health) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        accept(&listener, CONNECTIONS, &mut JoinSet::new(), |stream| answer(stream, health.clone())).await;
    });
    Ok(bound)
}

pub async fn accept<S: Future<Output = ()> + Send + 'static>(
    listener: &TcpListener,
    most: usize,
    connections: &mut JoinSet<()>,
    serve: impl Fn(TcpStream) -> S,
) {
    let permits = Arc::new(Semaphore::new(most));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = serve(stream);
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, health: Health) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = response(request.method(), request.uri().path(), &health);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false).max_buf_size(HEAD);
    // An error of the client does not matter.
    let _ = tokio::time::timeout(PATIENCE, builder.serve_connection(TokioIo::new(stream), service)).await;
}

fn response(method: &Method, path: &str, health: &Health) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(method) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, b"{\"error\":\"expected GET\"}".to_vec());
    }
    if path == "/metrics" {
        let Some(text) = scrape::text() else {
            return reply(StatusCode::NOT_FOUND, b"{\"error\":\"this process does not measure\"}".to_vec());
        };
        let mut response = reply(StatusCode::OK, text.into_bytes());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(scrape::CONTENT));
        return response;
    }
    let answer = health.answer();
    let good = match path {
        "/live" => health.live(),
        "/ready" => answer.ready,
        _ => return reply(StatusCode::NOT_FOUND, b"{\"error\":\"expected /live, /ready or /metrics\"}".to_vec()),
    };
    match serde_json::to_vec(&answer) {
        Ok(body) => reply(if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body),
        Err(_) => reply(StatusCode::INTERNAL_SERVER_ERROR, Vec::new()),
    }
}

fn reply(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn ask(address: SocketAddr, request: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_prober_learns_whether_work_is_taken_and_why_not() {
        let health = Health::new("critic");
        let address = serve("127.0.0.1:0".parse().unwrap(), health.clone()).await.unwrap();
        let (status, body) = ask(address, "GET /ready").await;
        assert_eq!((status, &body["ready"], &body["role"]), (503, &Value::from(false), &Value::from("critic")));
        assert_eq!(body["reasons"][0], "not ready yet: starting");
        assert_eq!(ask(address, "GET /live").await.0, 200);
        health.preparing(None);
        let (status, body) = ask(address, "GET /ready").await;
        assert_eq!((status, &body["wire"]), (200, &Value::from(crate::wire::WIRE_VERSION)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_else_is_answered_and_who_says_nothing_blocks_nobody() {
        let address = serve("127.0.0.1:0".parse().unwrap(), Health::new("hub")).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS - 1 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(ask(address, "GET /").await.0, 404);
        assert_eq!(ask(address, "POST /ready").await.0, 405);
    }
}
