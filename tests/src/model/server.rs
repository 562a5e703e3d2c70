//! Serves a script over HTTP on loopback.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming as Stream};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::model::capture::{Captured, Log, UnderWay};
use crate::model::play::{Play, Reply, Script};
use crate::model::request::{Provider, Request};
use crate::model::wire::{self, Incoming, Refused, Usage};

/// The largest request body, in bytes.
const LARGEST: usize = 32 << 20;
/// The size of the pieces of a huge answer, in bytes.
const PIECE: usize = 64 << 10;
/// Placeholder for the text of a huge answer.
const FILLER: &str = "@filler@";

#[derive(Debug, Clone)]
pub struct Options {
    pub address: Ipv4Addr,
    /// 0 for any free one.
    pub port: u16,
    pub latency: Duration,
    /// Keep every request in memory, not only counts.
    pub keep: bool,
    /// A folder for every request and reply.
    pub record: Option<PathBuf>,
    /// The accepted keys; empty for any.
    pub keys: Vec<String>,
    /// The window of every model in tokens; `None` for no limit.
    pub window: Option<u64>,
    pub threads: usize,
    /// Replies append the number of the request to the model's name (`scripted-1#17`), so that a recorded call
    /// can be matched with its request.
    pub numbered: bool,
    /// Replies have no usage.
    pub unmetered: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::LOCALHOST,
            port: 0,
            latency: Duration::ZERO,
            keep: true,
            record: None,
            keys: Vec::new(),
            window: None,
            threads: 1,
            numbered: false,
            unmetered: false,
        }
    }
}

#[derive(Debug)]
pub struct Server {
    runtime: Option<tokio::runtime::Runtime>,
    address: SocketAddr,
    log: Arc<Log>,
}

struct Shared {
    script: Box<dyn Script>,
    options: Options,
    log: Arc<Log>,
}

impl Server {
    /// Starts to serve `script` on its own threads.
    pub fn start(script: impl Script, options: Options) -> std::io::Result<Self> {
        if let Some(folder) = &options.record {
            std::fs::create_dir_all(folder)?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("scripted-model")
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind((options.address, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let log = Arc::new(Log::new(options.keep, options.record.clone()));
        let shared = Arc::new(Shared { script: Box::new(script), options, log: Arc::clone(&log) });
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        runtime.spawn(accept(listener, shared));
        Ok(Self { runtime: Some(runtime), address, log })
    }

    /// The address, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Probably out of file handles, which are released when connections end.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(serve(&shared, request).await) }
            });
            // Some faults end a connection early.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Sent = UnsyncBoxBody<Bytes, std::io::Error>;

async fn serve(shared: &Shared, request: hyper::Request<Stream>) -> Response<Sent> {
    let under_way = shared.log.begin();
    let Some(provider) = wire::provider(request.uri().path()).filter(|_| request.method() == hyper::Method::POST)
    else {
        return refuse(shared, under_way, Provider::Chat, &Refused::new(404, "Not Found"));
    };
    let head = request.headers().clone();
    let Ok(body) = Limited::new(request.into_body(), LARGEST).collect().await else {
        let refused = Refused::new(413, format!("Request exceeds the maximum size of {LARGEST} bytes"));
        return refuse(shared, under_way, provider, &refused);
    };
    let incoming = incoming(provider, &head, body.to_bytes());
    match wire::read(provider, &incoming).and_then(|request| admit(shared, request)) {
        Ok(request) => {
            let mut captured = shared.log.take(Arc::new(request));
            let play = shared.script.reply(&captured.request);
            if shared.options.numbered {
                let model = format!("{}#{}", captured.request.model, captured.number);
                captured.request = Arc::new(Request { model, ..captured.request.as_ref().clone() });
            }
            if !shared.options.latency.is_zero() {
                tokio::time::sleep(shared.options.latency).await;
            }
            perform(shared, under_way, &captured, play).await
        }
        Err(refused) => refuse(shared, under_way, provider, &refused),
    }
}

fn incoming(provider: Provider, head: &HeaderMap, bytes: Bytes) -> Incoming {
    let header = |name: &str| head.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let key = match provider {
        Provider::Anthropic => header("x-api-key"),
        _ => header("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
    };
    Incoming { key, version: header("anthropic-version"), bytes }
}

fn admit(shared: &Shared, request: Request) -> Result<Request, Refused> {
    let Options { keys, window, .. } = &shared.options;
    if !keys.is_empty() && !keys.contains(&request.key) {
        return Err(Refused::new(401, "the API key is not known"));
    }
    let tokens = request.prefix.tokens() + request.max_output.unwrap_or(0);
    match window {
        Some(window) if tokens > *window => Err(wire::too_long(request.provider, tokens, *window)),
        _ => Ok(request),
    }
}

fn refuse(shared: &Shared, under_way: UnderWay, provider: Provider, refused: &Refused) -> Response<Sent> {
    shared.log.reject(&refused.message);
    error(under_way, provider, refused)
}

fn error(under_way: UnderWay, provider: Provider, refused: &Refused) -> Response<Sent> {
    whole(refused.status, "application/json", wire::error_body(provider, refused).to_string(), under_way)
}

async fn perform(shared: &Shared, under_way: UnderWay, captured: &Captured, play: Play) -> Response<Sent> {
    let provider = captured.request.provider;
    match play {
        Play::Late(pause, then) => {
            tokio::time::sleep(pause).await;
            Box::pin(perform(shared, under_way, captured, *then)).await
        }
        Play::Reply(reply) => {
            let (text, usage) = rendered(shared, captured, &reply);
            shared.log.answered(captured, usage);
            if let Err(error) = shared.log.record(captured, &text) {
                eprintln!("scripted-model: cannot record request {}: {error}", captured.number);
            }
            whole(200, "application/json", text, under_way)
        }
        Play::Fail { status, retry_after } => {
            let mut response = error(under_way, provider, &wire::failure(status));
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            response
        }
        Play::Page { status } => {
            let page = format!("<html><head><title>{status}</title></head><body>upstream trouble</body></html>");
            whole(status, "text/html", page, under_way)
        }
        Play::Cut(reply) => cut(rendered(shared, captured, &reply).0, under_way),
        Play::Huge(bytes) => {
            let (text, _) = rendered(shared, captured, &Reply::text(FILLER));
            let (before, after) = text.split_once(FILLER).unwrap_or((&text, ""));
            let piece = Bytes::from_static(&[b'a'; PIECE]);
            let filler = std::iter::repeat_n(piece, bytes.div_ceil(PIECE as u64) as usize);
            let ends = [before, after].map(|end| Bytes::from(end.to_owned()));
            let [before, after] = ends.map(|end| stream::iter([end]));
            let pieces = before.chain(stream::iter(filler)).chain(after).map(Ok);
            respond(200, "application/json", pieces, under_way)
        }
    }
}

fn rendered(shared: &Shared, captured: &Captured, reply: &Reply) -> (String, Usage) {
    let usage = Usage { prompt: captured.prompt, output: wire::output_tokens(reply) };
    let mut body = wire::body(&captured.request, reply, usage);
    if let Some(body) = body.as_object_mut().filter(|_| shared.options.unmetered) {
        body.remove("usage");
    }
    (body.to_string(), usage)
}

fn whole(status: u16, kind: &'static str, text: String, under_way: UnderWay) -> Response<Sent> {
    let length = HeaderValue::from(text.len());
    let mut response = respond(status, kind, stream::iter([Ok(Bytes::from(text))]), under_way);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

/// Sends the first half of the text, then ends the connection.
fn cut(text: String, under_way: UnderWay) -> Response<Sent> {
    let length = text.len();
    let half = Bytes::from(text).slice(..length / 2);
    // Waits one turn, so that the first half is sent before the end.
    let end = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let pieces = stream::iter([Ok(half)]).chain(Box::pin(end));
    let mut response = respond(200, "application/json", pieces, under_way);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Sends these pieces. The request counts as running until they are sent or the client leaves.
fn respond(
    status: u16,
    kind: &'static str,
    pieces: impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    under_way: UnderWay,
) -> Response<Sent> {
    let frames = pieces.map(move |piece| {
        let _until_all_is_sent = &under_way;
        piece.map(Frame::data)
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
