//! [`Bus`](crate::bus::Bus) and [`Store`](crate::store::Store) over NATS JetStream. Only this module and its
//! submodules use `async_nats`.

use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{AuthError, Client, ConnectOptions};

use crate::clock::SystemClock;
use crate::env::Env;

mod bus;
mod credentials;
mod feed;
mod link;
mod mac;
mod outage;
pub mod permit;
mod presence;
mod request;
mod store;
mod stream;
pub mod streams;
mod survey;

pub use bus::NatsBus;
pub use outage::AfterFullDisk;
pub use presence::{HEARTBEAT, JoinError};
pub use request::{Asked, Requests};
pub use store::NatsStore;
pub use survey::StreamState;

/// The oldest supported server. Older ones ignore options that the work queues need.
pub const OLDEST_SERVER: (u32, u32, u32) = (2, 10, 26);
/// The smallest supported message limit of a server, in bytes. An alert may have 1 MiB.
pub const SMALLEST_PAYLOAD: usize = 1024 * 1024;
pub(crate) const PROTOCOL: &str = "Casebook-Protocol";
/// Header: the artifact that holds the bytes of a message that is too large to send.
pub(crate) const REFERENCE: &str = "Casebook-Artifact";
/// The largest body of a message in bytes. A larger one is sent as an artifact.
pub(crate) const INLINE: usize = 256 * 1024;
/// The text in errors about missing permissions.
pub const FORBIDDEN: &str = "Permissions Violation";
/// How long a refusal counts as the reason of a failure.
const REFUSED: Duration = Duration::from_secs(30);
/// The filter for log lines of the library: it logs each attempt of an outage, which is one line of ours.
pub(crate) const LIBRARY_LOG: &str = "async_nats=off";
const ANSWER: Duration = Duration::from_secs(5);
/// How often to check that the server is there. A server that is cut off leaves its connections open; after three checks
/// without an answer the client takes another one.
const PING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatsError {
    #[error("cannot connect to NATS at {url}: {reason}")]
    Connect { url: String, reason: String },
    /// A file with credentials or certificates cannot be used.
    #[error("cannot use {path}: {reason}")]
    File { path: String, reason: String },
    #[error("expected NATS server 2.10.26 or newer at {url}, got {found}; update the server")]
    Old { url: String, found: String },
    #[error("NATS server at {url} {what}")]
    Unfit { url: String, what: String },
    /// Streams or consumers exist with other settings.
    #[error(
        "the NATS server has other settings: {0}; change the settings of every Hub, or those of the server (`nats \
         stream edit`, `nats consumer edit`); if a setting cannot be edited, use another account"
    )]
    Different(String),
    #[error("cannot ask on {subject}: no responders")]
    NoResponders { subject: String },
    #[error("cannot {doing}: {reason}")]
    Failed { doing: String, reason: String },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// One or several servers, separated by commas: `nats://` or `tls://`.
    pub url: String,
    /// A file with credentials: what `nsc` writes (`.creds`), the seed of an nkey, or `user:password`.
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's certificate. Default: the authorities of the system.
    pub ca: Option<PathBuf>,
    /// Our certificate, if the server requires one.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Our user (`hub`, `director`, `critic`, `expert-network`, `reader`), unless the credentials name it. Replies
    /// come to `_INBOX_<user>`, so that other users cannot read them.
    pub user: String,
    /// The key of what Hubs write. Without it, nothing is signed or checked.
    pub mac_key: Option<PathBuf>,
}

/// A connection that reconnects by itself. Clones share it.
#[derive(Clone)]
pub struct Connection {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) refused: Refusals,
    /// The prefix of the JetStream API for our user.
    api: &'static str,
    pub(crate) mac: Option<mac::MacKey>,
    outages: outage::Outages,
    places: outage::Places,
    pub(crate) link: link::Link,
    credentials: Option<PathBuf>,
    url: String,
}

/// Recent refusals of the server. A publish without permission fails silently otherwise.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<VecDeque<(Instant, String)>>>);

impl Refusals {
    fn note(&self, text: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= 256 {
            all.pop_front();
        }
        all.push_back((Instant::now(), text));
    }

    /// The latest refusal that names `subject`. Old ones do not count, since the permission may have been granted
    /// meanwhile.
    pub fn of(&self, subject: &str) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = format!("\"{}\"", subject.to_lowercase());
        let recent = all.iter().rev().take_while(|(at, _)| at.elapsed() < REFUSED);
        recent.map(|(_, text)| text).find(|text| text.to_lowercase().contains(&named)).cloned()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Connects once, without retries.
pub fn connect(options: &Options) -> BoxFuture<'_, Result<Connection, NatsError>> {
    // Boxed here, so that the crates of callers do not compile the NATS client again.
    Box::pin(connected(options))
}

async fn connected(options: &Options) -> Result<Connection, NatsError> {
    crate::tls::install();
    let url = options.url.clone();
    let mac = options.mac_key.as_deref().map(mac::MacKey::read).transpose()?;
    let refused = Refusals::default();
    let link = link::Link::default();
    let named = options.credentials.as_deref().map(credentials::user).transpose()?.flatten();
    let user = named.unwrap_or_else(|| options.user.clone());
    let (heard, noted) = (link.clone(), refused.clone());
    let mut connecting = match options.credentials.clone() {
        None => ConnectOptions::new(),
        Some(path) => {
            credentials::auth(&path, b"")?;
            ConnectOptions::with_auth_callback(move |nonce| {
                let auth = credentials::auth(&path, &nonce).map_err(AuthError::new);
                async move { auth }
            })
        }
    };
    connecting = connecting
        .name(format!("casebook {user}"))
        .custom_inbox_prefix(permit::inbox(&user).trim_end_matches('.'))
        .connection_timeout(ANSWER)
        .ping_interval(PING)
        .request_timeout(Some(ANSWER))
        .subscription_capacity(65_536)
        .reconnect_delay_callback(|attempt| Duration::from_millis(100 * (attempt as u64).clamp(1, 10)))
        .event_callback(move |event| {
            heard.heard(event, &noted);
            async {}
        });
    if let Some(ca) = &options.ca {
        connecting = connecting.add_root_certificates(readable(ca)?).require_tls(true);
    }
    if let (Some(cert), Some(key)) = (&options.cert, &options.key) {
        connecting = connecting.add_client_certificate(readable(cert)?, readable(key)?);
    }
    let servers: Vec<&str> = options.url.split(',').map(str::trim).collect();
    let client = connecting
        .connect(servers.as_slice())
        .await
        .map_err(|e| NatsError::Connect { url: url.clone(), reason: advised(reason(&e)) })?;
    fit(&url, &client.server_info())?;
    // A server with users has an account for each of them; only Hubs are in that of the streams.
    let foreign = options.credentials.is_some() && user != permit::User::Hub.name();
    let api = if foreign { permit::IMPORTED_API } else { permit::API };
    let jetstream = ContextBuilder::new().api_prefix(api).timeout(ANSWER).max_ack_inflight(4096).build(client.clone());
    let (outages, places) = Default::default();
    let credentials = options.credentials.clone();
    Ok(Connection { client, jetstream, refused, api, mac, outages, places, link, credentials, url })
}

impl Connection {
    pub fn env(&self) -> Env {
        let store = Arc::new(NatsStore::new(self.clone()));
        let bus = Arc::new(NatsBus::new(self.clone(), store.clone()));
        Env { bus, store, clock: Arc::new(SystemClock) }
    }

    /// Whether a key signs and checks what Hubs write.
    pub const fn signs(&self) -> bool {
        self.mac.is_some()
    }

    pub fn connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Connects again, with the files of credentials and certificates as they are now. Nothing is lost: what waits for an
    /// answer of the server is sent again.
    ///
    /// # Errors
    /// The credentials cannot be used. The connection stays.
    pub async fn reconnect(&self) -> Result<(), NatsError> {
        self.credentials.as_deref().map(|path| credentials::auth(path, b"")).transpose()?;
        let asked = self.client.force_reconnect().await;
        asked.map_err(|e| NatsError::Failed { doing: "connect again".into(), reason: e.to_string() })
    }

    /// Why no work is possible: the server refuses our credentials, does not answer, or does not store what we write. None
    /// otherwise.
    pub fn trouble(&self) -> Option<String> {
        self.link.trouble().or_else(|| self.outage())
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The subject of a request to the JetStream API, as errors name it.
    pub(crate) fn api(&self, request: &str) -> String {
        format!("{}.{request}", self.api)
    }

    pub const fn refusals(&self) -> &Refusals {
        &self.refused
    }

    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Sends buffered messages. Call it before the process ends.
    pub async fn flush(&self) {
        if let Ok(Err(error)) = tokio::time::timeout(ANSWER, self.client.flush()).await {
            tracing::warn!(%error, "could not send all messages");
        }
    }
}

fn readable(path: &Path) -> Result<PathBuf, NatsError> {
    std::fs::File::open(path)
        .map(|_| path.to_path_buf())
        .map_err(|e| NatsError::File { path: path.display().to_string(), reason: e.to_string() })
}

fn fit(url: &str, server: &async_nats::ServerInfo) -> Result<(), NatsError> {
    let unfit = |what: String| Err(NatsError::Unfit { url: url.to_owned(), what });
    if version(&server.version) < Some(OLDEST_SERVER) {
        return Err(NatsError::Old { url: url.to_owned(), found: server.version.clone() });
    }
    if !server.jetstream {
        return unfit("runs without JetStream: start it with `jetstream` in its configuration, or `-js`".into());
    }
    if server.max_payload < SMALLEST_PAYLOAD {
        return unfit(format!(
            "takes messages of {} bytes; casebook needs {SMALLEST_PAYLOAD}: raise max_payload",
            server.max_payload
        ));
    }
    Ok(())
}

/// Major, minor and patch of a version such as `2.10.26-beta`.
pub fn version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let patch = parts.next()?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((major, minor, patch))
}

pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// `reason` with advice for errors that do not explain themselves.
fn advised(reason: String) -> String {
    let advice = if reason.contains("InvalidContentType") {
        "the server does not use TLS; enable it there, or use nats:// without `ca`"
    } else if reason.contains("UnknownIssuer") {
        "set `ca` to the authority that signed the server's certificate"
    } else if reason.contains("authorization violation") {
        "check that `credentials` names the file of this user and has the right password"
    } else {
        return reason;
    };
    format!("{reason}: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_servers_are_compared_as_numbers() {
        assert_eq!(version("2.15.1"), Some((2, 15, 1)));
        assert_eq!(version("v2.10.26-RC.1"), Some((2, 10, 26)));
        assert!(version("2.9.10") < Some(OLDEST_SERVER) && version("2.10.4") < Some(OLDEST_SERVER));
        assert!(version("nonsense") < Some(OLDEST_SERVER));
    }
}
