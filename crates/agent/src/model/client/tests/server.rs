//! A small HTTP server: it serves what it is given, in order, and keeps every request.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;

/// Size of the pieces of a large reply.
const PIECE: usize = 0x1_0000;

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: hyper::HeaderMap,
    pub(super) body: Value,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

#[derive(Debug, Clone)]
pub(super) enum Serve {
    /// A whole reply: status, further header lines, body.
    Whole(u16, String, Vec<u8>),
    /// A reply that announces more than it sends.
    Cut(Vec<u8>),
    /// A reply of this many bytes, chunked, so that nothing announces its size.
    Flood(usize),
    /// A reply that announces this many bytes and sends them.
    Announced(usize),
    /// A whole reply, after a while in which others may come.
    Slow(Value),
    /// No reply, ever.
    Hang,
}

pub(super) fn ok(body: &Value) -> Serve {
    Serve::Whole(200, "content-type: application/json".into(), body.to_string().into_bytes())
}

pub(super) fn status(status: u16, headers: &str, body: &str) -> Serve {
    Serve::Whole(status, headers.into(), body.as_bytes().to_vec())
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    /// Bytes of replies that the other side took.
    sent: AtomicUsize,
    /// Slow replies under way, and their maximum.
    now: AtomicUsize,
    most: AtomicUsize,
}

pub(super) struct Server {
    url: String,
    seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server of these replies, one a request; the last one is repeated.
    pub(super) async fn start(replies: impl IntoIterator<Item = Serve>) -> Self {
        let replies: Arc<[Serve]> = replies.into_iter().collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (replies, seen) = (Arc::clone(&replies), Arc::clone(&shared));
                let service = service_fn(move |request| answer(request, Arc::clone(&replies), Arc::clone(&seen)));
                let mut http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.keep_alive(false).serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, seen, task }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.seen.most.load(Ordering::SeqCst)
    }

    pub(super) fn sent(&self) -> usize {
        self.seen.sent.load(Ordering::SeqCst)
    }
}

type Response = hyper::Response<UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(
    request: hyper::Request<Incoming>,
    replies: Arc<[Serve]>,
    seen: Arc<Seen>,
) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    let body = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let n = {
        let mut requests = seen.requests.lock().unwrap();
        requests.push(Request { path: head.uri.path().into(), headers: head.headers, body });
        requests.len() - 1
    };
    let (status, headers, body, times) = match replies[n.min(replies.len() - 1)].clone() {
        Serve::Whole(status, headers, body) => (status, headers, body, 1),
        Serve::Cut(body) => (200, format!("content-length: {}", body.len() + 999), body, 1),
        Serve::Flood(bytes) => (200, String::new(), vec![b' '; PIECE], bytes / PIECE),
        Serve::Announced(bytes) => (200, format!("content-length: {bytes}"), vec![b' '; PIECE], bytes / PIECE),
        Serve::Slow(body) => {
            seen.most.fetch_max(seen.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            seen.now.fetch_sub(1, Ordering::SeqCst);
            (200, String::new(), body.to_string().into_bytes(), 1)
        }
        Serve::Hang => std::future::pending().await,
    };
    let mut response = hyper::Response::builder().status(status);
    for (name, value) in headers.lines().filter_map(|line| line.split_once(": ")) {
        response = response.header(name, value);
    }
    let pieces = stream::iter(std::iter::repeat_n(Bytes::from(body), times)).map(move |piece| {
        seen.sent.fetch_add(piece.len(), Ordering::SeqCst);
        Ok(Frame::data(piece))
    });
    Ok(response.body(StreamBody::new(pieces).boxed_unsync()).unwrap())
}
