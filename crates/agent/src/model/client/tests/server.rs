//! A small HTTP server: it serves what it is told, in order, and keeps every request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(had, _)| had == name).map(|(_, value)| value.as_str())
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
    Serve::Whole(200, "content-type: application/json\r\n".into(), body.to_string().into_bytes())
}

pub(super) fn status(status: u16, headers: &str, body: &str) -> Serve {
    Serve::Whole(status, headers.into(), body.as_bytes().to_vec())
}

/// Slow replies under way, now and at the most.
#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

pub(super) struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    sent: Arc<AtomicUsize>,
    busy: Arc<Busy>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server of these replies, one a request; the last is served for ever.
    pub(super) async fn start(replies: impl IntoIterator<Item = Serve>) -> Self {
        let replies: Vec<Serve> = replies.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::new(AtomicUsize::new(0));
        let busy = Arc::new(Busy::default());
        let (seen, count, load) = (Arc::clone(&requests), Arc::clone(&sent), Arc::clone(&busy));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(connection(
                    stream,
                    replies.clone(),
                    Arc::clone(&seen),
                    Arc::clone(&count),
                    Arc::clone(&load),
                ));
            }
        });
        Self { url, requests, sent, busy, task }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Slow replies that were under way at once.
    pub(super) fn most_at_once(&self) -> usize {
        self.busy.most.load(Ordering::SeqCst)
    }

    /// Bytes of large replies that the other side took.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn connection(
    stream: TcpStream,
    replies: Vec<Serve>,
    seen: Arc<Mutex<Vec<Request>>>,
    sent: Arc<AtomicUsize>,
    busy: Arc<Busy>,
) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream).await else { return };
    let n = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        seen.len() - 1
    };
    let mut reply = replies[n.min(replies.len() - 1)].clone();
    if let Serve::Slow(body) = &reply {
        busy.most.fetch_max(busy.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        busy.now.fetch_sub(1, Ordering::SeqCst);
        reply = ok(body);
    }
    let mut stream = stream.into_inner();
    let _ = match reply {
        Serve::Whole(status, headers, body) => {
            let head =
                format!("HTTP/1.1 {status} X\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.into_bytes(), body].concat()).await
        }
        Serve::Cut(body) => {
            let head = format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len() + 999
            );
            stream.write_all(&[head.into_bytes(), body].concat()).await
        }
        Serve::Flood(bytes) => flood(&mut stream, "transfer-encoding: chunked", bytes, true, &sent).await,
        Serve::Announced(bytes) => flood(&mut stream, &format!("content-length: {bytes}"), bytes, false, &sent).await,
        Serve::Slow(_) => Ok(()),
        Serve::Hang => std::future::pending().await,
    };
    let _ = stream.shutdown().await;
}

async fn flood(
    stream: &mut TcpStream,
    header: &str,
    bytes: usize,
    chunked: bool,
    sent: &AtomicUsize,
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\n{header}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let chunk = vec![b' '; 0x1_0000];
    for _ in 0..bytes / chunk.len() {
        if chunked {
            stream.write_all(b"10000\r\n").await?;
        }
        stream.write_all(&chunk).await?;
        if chunked {
            stream.write_all(b"\r\n").await?;
        }
        sent.fetch_add(chunk.len(), Ordering::SeqCst);
    }
    if chunked { stream.write_all(b"0\r\n\r\n").await } else { Ok(()) }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { path, headers, body: serde_json::from_slice(&body).ok()? })
}
