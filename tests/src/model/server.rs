//! The server: HTTP on loopback around a script.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming as Stream, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::model::capture::{Captured, Log, Rejected, UnderWay};
use crate::model::play::{Play, Reply, Script};
use crate::model::request::{Provider, Request};
use crate::model::wire::{self, Incoming, Refused, Usage};

/// The largest body that is taken, in bytes.
const LARGEST: usize = 32 << 20;
/// The size of the pieces of a huge answer, in bytes.
const PIECE: u64 = 64 << 10;
/// Stands for the text of a huge answer until it is sent.
const FILLER: &str = "@filler@";

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port on loopback; 0 for a free one.
    pub port: u16,
    /// How long the model takes for a reply.
    pub latency: Duration,
    /// Keep every request in memory. Without it only counts are kept.
    pub keep: bool,
    /// A folder to write every request and reply into.
    pub record: Option<PathBuf>,
    /// The keys that are taken; any where there are none.
    pub keys: Vec<String>,
    /// The window of every model in tokens; without it none is too small.
    pub window: Option<u64>,
    /// Threads that serve.
    pub threads: usize,
    /// Replies name the model with the number of the request (`scripted-1#17`), so that a recorded call
    /// tells which request it came from.
    pub numbered: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            latency: Duration::ZERO,
            keep: true,
            record: None,
            keys: Vec::new(),
            window: None,
            threads: 1,
            numbered: false,
        }
    }
}

/// A server that runs until it is dropped.
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
    /// Starts to serve `script` on threads of its own.
    ///
    /// # Errors
    /// When the port is taken, the folder cannot be made, or there are no threads.
    pub fn start(script: impl Script, options: Options) -> std::io::Result<Self> {
        if let Some(folder) = &options.record {
            std::fs::create_dir_all(folder)?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("scripted-model")
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
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

    /// Where it serves, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it saw.
    #[must_use]
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
            // Out of file handles, most likely: they come back when connections end.
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
            // A connection that ends early is what some faults are made of.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve(shared: &Shared, request: hyper::Request<Stream>) -> Response<Sent> {
    let under_way = shared.log.begin();
    let path = request.uri().path().to_owned();
    let Some(provider) = wire::provider(&path).filter(|_| request.method() == hyper::Method::POST) else {
        let refused =
            Refused { status: 404, kind: "not_found_error", message: "Not Found".into(), param: None, code: None };
        return refuse(shared, under_way, Provider::Chat, &path, &Bytes::new(), &refused);
    };
    let head = request.headers().clone();
    let bytes = match Limited::new(request.into_body(), LARGEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let message = format!("Request exceeds the maximum size of {LARGEST} bytes");
            let refused = Refused { status: 413, kind: "request_too_large", message, param: None, code: None };
            return refuse(shared, under_way, provider, &path, &Bytes::new(), &refused);
        }
    };
    let incoming = incoming(provider, path, &head, bytes);
    let taken = wire::read(provider, &incoming).and_then(|request| admit(shared, request));
    match taken {
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
        Err(refused) => refuse(shared, under_way, provider, &incoming.path, &incoming.bytes, &refused),
    }
}

fn incoming(provider: Provider, path: String, head: &HeaderMap, bytes: Bytes) -> Incoming {
    let header = |name: &str| head.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let key = match provider {
        Provider::Anthropic => header("x-api-key"),
        _ => header("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
    };
    Incoming { path, key, version: header("anthropic-version"), bytes }
}

fn admit(shared: &Shared, request: Request) -> Result<Request, Refused> {
    let Options { keys, window, .. } = &shared.options;
    if !keys.is_empty() && !keys.contains(&request.key) {
        return Err(wire::wrong_key(request.provider));
    }
    let tokens = request.prefix.tokens() + request.max_output.unwrap_or(0);
    match window {
        Some(window) if tokens > *window => Err(wire::too_long(request.provider, tokens, *window)),
        _ => Ok(request),
    }
}

fn refuse(
    shared: &Shared,
    under_way: UnderWay,
    provider: Provider,
    path: &str,
    bytes: &Bytes,
    refused: &Refused,
) -> Response<Sent> {
    let message = refused.message.clone();
    shared.log.reject(Rejected { path: path.to_owned(), status: refused.status, message, bytes: bytes.clone() });
    respond(refused.status, "application/json", Sent::whole(wire::error_body(provider, refused).to_string(), under_way))
}

fn respond(status: u16, kind: &'static str, body: Sent) -> Response<Sent> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn perform(shared: &Shared, under_way: UnderWay, captured: &Captured, play: Play) -> Response<Sent> {
    let provider = captured.request.provider;
    let response = match play {
        Play::Late(pause, then) => {
            tokio::time::sleep(pause).await;
            return Box::pin(perform(shared, under_way, captured, *then)).await;
        }
        Play::Reply(reply) => {
            let (frames, usage) = frames(captured, &reply);
            shared.log.answered(captured, usage);
            respond(200, kind_of(captured), Sent::frames(frames, under_way))
        }
        Play::Fail { status, retry_after } => {
            let text = wire::error_body(provider, &wire::failure(provider, status)).to_string();
            let mut response = respond(status, "application/json", Sent::whole(text, under_way));
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            response
        }
        Play::Page { status } => {
            let page = format!("<html><head><title>{status}</title></head><body>upstream trouble</body></html>");
            respond(status, "text/html", Sent::whole(page, under_way))
        }
        Play::Cut(reply) => {
            let (frames, _) = frames(captured, &reply);
            let length: usize = frames.iter().map(Bytes::len).sum();
            let mut response = respond(200, kind_of(captured), Sent::cut(&frames, under_way));
            if !captured.request.stream {
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            response
        }
        Play::Huge(bytes) => {
            let (frames, _) = frames(captured, &Reply::text(FILLER));
            respond(200, kind_of(captured), Sent::huge(&frames, bytes, under_way))
        }
    };
    if shared.log.records() {
        let sent: Vec<u8> = response.body().frames.iter().flatten().copied().collect();
        if let Err(error) = shared.log.record(captured, &sent) {
            eprintln!("scripted-model: request {} is not recorded: {error}", captured.number);
        }
    }
    response
}

fn kind_of(captured: &Captured) -> &'static str {
    if captured.request.stream { "text/event-stream" } else { "application/json" }
}

/// The reply as it is sent, and what it counts.
fn frames(captured: &Captured, reply: &Reply) -> (VecDeque<Bytes>, Usage) {
    let usage = Usage { prompt: captured.prompt, output: wire::output_tokens(reply) };
    let request = &captured.request;
    let frames = if request.stream {
        wire::events(request, reply, usage).into_iter().map(Bytes::from).collect()
    } else {
        VecDeque::from([Bytes::from(wire::body(request, reply, usage).to_string())])
    };
    (frames, usage)
}

/// A body: some frames, then filler, then the rest; or an end in the middle.
#[derive(Debug)]
struct Sent {
    frames: VecDeque<Bytes>,
    filler: u64,
    rest: VecDeque<Bytes>,
    /// The body ends in an error.
    broken: bool,
    /// The error waits for one more turn, so that what came before it leaves first.
    waits: bool,
    /// The request is under way until its answer is sent, or no one waits for it any more.
    _under_way: UnderWay,
}

impl Sent {
    fn frames(frames: VecDeque<Bytes>, under_way: UnderWay) -> Self {
        Self { frames, filler: 0, rest: VecDeque::new(), broken: false, waits: false, _under_way: under_way }
    }

    fn whole(text: String, under_way: UnderWay) -> Self {
        Self::frames(VecDeque::from([Bytes::from(text)]), under_way)
    }

    /// The first half of the bytes, then nothing more.
    fn cut(frames: &VecDeque<Bytes>, under_way: UnderWay) -> Self {
        let mut all: Vec<u8> = frames.iter().flatten().copied().collect();
        all.truncate(all.len() / 2);
        Self { broken: true, waits: true, ..Self::frames(VecDeque::from([Bytes::from(all)]), under_way) }
    }

    /// Filler of so many bytes in the place of the mark.
    fn huge(frames: &VecDeque<Bytes>, bytes: u64, under_way: UnderWay) -> Self {
        let all: Vec<u8> = frames.iter().flatten().copied().collect();
        let text = String::from_utf8_lossy(&all);
        let (before, after) = text.split_once(FILLER).unwrap_or((&text, ""));
        let rest = VecDeque::from([Bytes::from(after.replace(FILLER, ""))]);
        let before = VecDeque::from([Bytes::from(before.to_owned())]);
        Self { filler: bytes, rest, ..Self::frames(before, under_way) }
    }
}

static FILL: [u8; PIECE as usize] = [b'a'; PIECE as usize];

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        if self.filler > 0 {
            let size = self.filler.min(PIECE);
            self.filler -= size;
            let piece = Bytes::from_static(&FILL).slice(..usize::try_from(size).unwrap_or(FILL.len()));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(frame) = self.rest.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        if std::mem::take(&mut self.waits) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if std::mem::take(&mut self.broken) {
            return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionAborted.into())));
        }
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        if self.broken || self.filler > 0 || self.frames.len() > 1 {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.frames.iter().map(|frame| frame.len() as u64).sum())
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.filler == 0 && self.rest.is_empty() && !self.broken
    }
}
