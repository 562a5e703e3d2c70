//! Broken connections: a client of the stream, and a page, get each event once.

use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::InvestigationId;
use futures_util::StreamExt;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use reqwest::Client;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

use super::live::Growing;
use crate::Result;
use crate::browser::Browser;

/// Bytes of a stream before it is cut, at most.
const SMALL: usize = 6_000;
/// The same, enough for the largest event.
const LARGE: usize = 600_000;

/// # Errors
/// An event that is missing, doubled or out of order.
pub async fn check(browser: &Browser, cuts: usize) -> Result<String> {
    let growing = Arc::new(Growing::new().await?);
    let (base, key, _server) = growing.apart()?;
    let (mut made, mut cases, mut events) = (0, 0, 0);
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    while made < cuts {
        let id = InvestigationId::new(format!("stream-{cases}"))?;
        let log = growing.begin(&id, 5).await?;
        let (writer, mut written) = (Arc::clone(&growing), log);
        let writing = tokio::spawn(async move {
            writer.go_on(&mut written, usize::MAX, |_| Duration::from_millis(4)).await.map(|()| written.len())
        });
        let (seen, broken) = stream(&base, &key, &id, &mut dice).await?;
        let whole = writing.await?? as u64;
        if seen != (1..=whole).collect::<Vec<_>>() {
            return Err(format!("{id}: events 1 to {whole} were recorded, {seen:?} came").into());
        }
        (made, cases, events) = (made + broken, cases + 1, events + seen.len());
    }
    let page = page(browser, &growing, &base, &key).await?;
    Ok(format!("stream: {made} cuts, {events} events of {cases} cases, each once and in order\n{page}"))
}

/// The numbers of the events of a stream that is cut again and again, and how often it was.
async fn stream(base: &str, key: &str, id: &InvestigationId, dice: &mut ChaCha8Rng) -> Result<(Vec<u64>, usize)> {
    let client = Client::new();
    let (mut seen, mut cuts): (Vec<u64>, usize) = (Vec::new(), 0);
    loop {
        let ask = client.get(format!("{base}/api/v1/investigations/{id}/events")).bearer_auth(key);
        let mut ask = ask.header("accept", "text/event-stream");
        if let Some(last) = seen.last() {
            ask = ask.header("last-event-id", last.to_string());
        }
        let answer = ask.send().await?;
        if answer.status() == 204 {
            return Ok((seen, cuts));
        }
        let most = if dice.random_ratio(1, 4) { LARGE } else { SMALL };
        let most = dice.random_range(0..most);
        let (mut chunks, mut bytes) = (answer.bytes_stream(), Vec::new());
        let mut ended = true;
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() > most {
                bytes.truncate(most);
                ended = false;
                break;
            }
        }
        // An event counts when its empty line came.
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        seen.extend(whole.lines().filter_map(|line| line.strip_prefix("id: ")?.parse::<u64>().ok()));
        cuts += usize::from(!ended);
    }
}

/// Passes connections on, and cuts all of them when asked to.
struct Proxy {
    port: u16,
    cut: broadcast::Sender<()>,
}

impl Proxy {
    async fn before(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (port, cut) = (listener.local_addr()?.port(), broadcast::channel(1).0);
        let (server, cuts) = (server.trim_start_matches("http://").to_owned(), cut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, mut cut) = (server.clone(), cuts.subscribe());
                tokio::spawn(async move {
                    tokio::select! { passed = pass(client, &server, port) => drop(passed), _ = cut.recv() => {} }
                });
            }
        });
        Ok(Self { port, cut })
    }
}

/// The server answers for its own port alone, so the port in requests is changed.
async fn pass(mut client: TcpStream, server: &str, port: u16) -> std::io::Result<()> {
    let mut behind = TcpStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = behind.split();
    let up = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from_client.read(&mut buffer).await?;
            let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { return Ok(()) };
            let text = String::from_utf8_lossy(part).replace(&format!("127.0.0.1:{port}"), server);
            to_server.write_all(text.as_bytes()).await?;
        }
    };
    let down = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! { ended = up => ended, ended = down => ended.map(drop) }
}

/// A page whose connections are cut while the case grows shows every event in the end, without being loaded again.
async fn page(browser: &Browser, growing: &Growing, base: &str, key: &str) -> Result<String> {
    let proxy = Proxy::before(base).await?;
    let id = InvestigationId::new("page-0")?;
    let mut log = growing.begin(&id, 5).await?;
    browser.open(&format!("http://127.0.0.1:{}/i/{id}?tab=events&k={key}", proxy.port)).await?;
    browser.run("window.same = true").await?;
    browser.until("document.getElementById('live').dataset.state === 'live'").await?;
    let shown = 190;
    let cutting = tokio::spawn(async move {
        let mut cuts = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(700)).await;
            if proxy.cut.send(()).is_ok() {
                cuts += 1;
            }
            if cuts == 15 {
                return (proxy, cuts);
            }
        }
    });
    growing.go_on(&mut log, shown, |_| Duration::from_millis(60)).await?;
    let (_proxy, cuts) = cutting.await?;
    browser.until(&format!("document.getElementById('s-{shown}')")).await?;
    let seen = browser.run("return [window.same === true, ...[...document.querySelectorAll('li[id^=s-]')].map((one) => Number(one.id.slice(2))).reverse()]").await?;
    let wanted: Vec<Value> = std::iter::once(Value::Bool(true)).chain((1..=shown as u64).map(Value::from)).collect();
    if seen != Value::Array(wanted) {
        return Err(format!("the page shows {seen} after {cuts} cuts").into());
    }
    Ok(format!("page: {cuts} cuts of all its connections, {shown} events, each shown once"))
}
