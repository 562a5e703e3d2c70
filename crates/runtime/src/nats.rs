//! The distributed home of [`Bus`](crate::bus::Bus) and [`Store`](crate::store::Store): NATS JetStream.
//! Only this module and those below it name `async_nats`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{Client, ConnectOptions, Event, ServerError};

use crate::clock::SystemClock;
use crate::env::Env;

mod bus;
pub mod permit;
mod presence;
mod request;
mod store;
mod stream;
pub mod streams;

pub use bus::NatsBus;
pub use presence::{HEARTBEAT, JoinError};
pub use request::{Asked, Requests};
pub use store::NatsStore;

/// The oldest server that is worked with: older ones ignore options that the work queues need.
pub const OLDEST_SERVER: (u32, u32, u32) = (2, 10, 26);
/// The smallest message limit of a server that is worked with, in bytes: an alert has up to 1 MiB.
pub const SMALLEST_PAYLOAD: usize = 1024 * 1024;
/// The header with the version of our messages.
pub(crate) const PROTOCOL: &str = "Casebook-Protocol";
/// The header with the artifact that holds the bytes of a message that is too large to be sent.
pub(crate) const REFERENCE: &str = "Casebook-Artifact";
/// Bytes that are sent in a message; more are sent as an artifact and named.
pub(crate) const INLINE: usize = 256 * 1024;
/// What a refusal says that comes from the permissions of our user.
pub const FORBIDDEN: &str = "Permissions Violation";
/// How long a refusal explains a failure.
const REFUSED: Duration = Duration::from_secs(30);
/// How long one answer of the server is waited for.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatsError {
    #[error("cannot connect to NATS at {url}: {reason}")]
    Connect { url: String, reason: String },
    /// A file with credentials or certificates cannot be used.
    #[error("cannot use {path}: {reason}")]
    File {
        path: String,
        /// Why, and what it should hold.
        reason: String,
    },
    #[error(
        "NATS server at {url} is version {found}; casebook needs 2.10.26 or newer, since older ones ignore what its \
         work queues need: update the server"
    )]
    Old { url: String, found: String },
    #[error("NATS server at {url} {what}")]
    Unfit {
        url: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// Streams or consumers are there with another configuration.
    #[error(
        "another configuration is on the NATS server: {0}; set every Hub to what is there, or change it there (`nats \
         stream edit`, `nats consumer edit`); what cannot be edited needs an account of its own"
    )]
    Different(
        /// Each stream and consumer, and of each every setting with what it is and what it should be.
        String,
    ),
    #[error("cannot ask on {subject}: no responders")]
    NoResponders { subject: String },
    #[error("cannot {doing}: {reason}")]
    Failed { doing: String, reason: String },
}

/// How to reach the server, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// One or several servers, separated by commas: `nats://` or `tls://`.
    pub url: String,
    /// A file with credentials: what `nsc` writes (`.creds`), the seed of an nkey, or `user:password`.
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's; the system's authorities otherwise.
    pub ca: Option<PathBuf>,
    /// Our certificate, where the server asks for one.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Our user (`hub`, `director`, `critic`, `expert-network`, `reader`), unless the credentials name it:
    /// replies come to `_INBOX_<user>`, so that no user can read another's.
    pub user: String,
}

/// A connection that comes back by itself. Clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) refused: Refusals,
    url: String,
}

/// What the server refused of late: a publish without permission is otherwise only silence.
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

    /// A refusal of the last half minute that names `subject`: what was refused before may be granted by now.
    pub fn of(&self, subject: &str) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = format!("\"{}\"", subject.to_lowercase());
        let recent = all.iter().rev().take_while(|(at, _)| at.elapsed() < REFUSED);
        recent.map(|(_, text)| text).find(|text| text.to_lowercase().contains(&named)).cloned()
    }

    /// How many of the last are kept.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Connects, once: whoever wants to wait for a server tries again.
///
/// # Errors
/// [`NatsError`] when there is no server, it is too old, lets us not in, or has no JetStream.
pub async fn connect(options: &Options) -> Result<Connection, NatsError> {
    crate::tls::install();
    let url = options.url.clone();
    let refused = Refusals::default();
    let noted = refused.clone();
    let named = options.credentials.as_deref().map(named).transpose()?.flatten();
    let user = named.unwrap_or_else(|| options.user.clone());
    let mut connecting = ConnectOptions::new()
        .name(format!("casebook {user}"))
        .custom_inbox_prefix(format!("_INBOX_{user}"))
        .connection_timeout(ANSWER)
        .request_timeout(Some(ANSWER))
        .subscription_capacity(65_536)
        .reconnect_delay_callback(|attempt| Duration::from_millis(100 * (attempt as u64).clamp(1, 10)))
        .event_callback(move |event| {
            let noted = noted.clone();
            async move {
                match event {
                    Event::ServerError(ServerError::Other(text)) => {
                        tracing::error!(text, "the NATS server refuses something");
                        noted.note(text);
                    }
                    Event::Connected => tracing::info!("connected to NATS"),
                    Event::Draining | Event::Closed => tracing::debug!(%event, "NATS"),
                    event => tracing::warn!(%event, "NATS"),
                }
            }
        });
    if let Some(path) = &options.credentials {
        connecting = with_credentials(connecting, path)?;
    }
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
    let jetstream = ContextBuilder::new().timeout(ANSWER).max_ack_inflight(4096).build(client.clone());
    Ok(Connection { client, jetstream, refused, url })
}

impl Connection {
    /// What a worker or a Hub needs of the world, over this connection.
    pub fn env(&self) -> Env {
        let store = Arc::new(NatsStore::new(self.clone()));
        let bus = Arc::new(NatsBus::new(self.clone(), store.clone()));
        Env { bus, store, clock: Arc::new(SystemClock) }
    }

    pub fn connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub const fn refusals(&self) -> &Refusals {
        &self.refused
    }

    /// The client itself, for requests and subscriptions that are not jobs.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Sends what is buffered; to be called before the process ends.
    pub async fn flush(&self) {
        if let Ok(Err(error)) = tokio::time::timeout(ANSWER, self.client.flush()).await {
            tracing::warn!(%error, "not all messages left this process");
        }
    }
}

/// The user that a file of the form `user:password` names.
fn named(path: &Path) -> Result<Option<String>, NatsError> {
    let text = read(path)?;
    let secret = text.contains("BEGIN NATS USER JWT");
    Ok(text.split_once(':').filter(|_| !secret).map(|(user, _)| user.to_owned()))
}

fn read(path: &Path) -> Result<String, NatsError> {
    let text = std::fs::read_to_string(path);
    text.map(|t| t.trim().to_owned())
        .map_err(|e| NatsError::File { path: path.display().to_string(), reason: e.to_string() })
}

fn with_credentials(options: ConnectOptions, path: &Path) -> Result<ConnectOptions, NatsError> {
    let file = |reason: String| NatsError::File { path: path.display().to_string(), reason };
    let text = read(path)?;
    if text.contains("BEGIN NATS USER JWT") {
        return options.credentials(&text).map_err(|e| file(e.to_string()));
    }
    if text.starts_with("SU") && !text.contains(':') {
        return Ok(options.nkey(text));
    }
    match text.split_once(':') {
        Some((user, password)) => Ok(options.user_and_password(user.to_owned(), password.to_owned())),
        None => Err(file("it holds neither `user:password` nor the seed of an nkey nor a .creds file".into())),
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

/// Major, minor and patch of `2.10.26-beta`.
pub fn version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let patch = parts.next()?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((major, minor, patch))
}

/// An error with its causes.
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

/// `reason` with what to do, where the words of the libraries do not tell.
fn advised(reason: String) -> String {
    let advice = if reason.contains("InvalidContentType") {
        "the server answers without TLS; set it up there, or write nats:// and name no `ca`"
    } else if reason.contains("UnknownIssuer") {
        "name the authority that signed the server's certificate with `ca`"
    } else if reason.contains("authorization violation") {
        "see that `credentials` names the file of this user, with the password that the server has"
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

    #[test]
    fn a_credentials_file_that_holds_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub");
        std::fs::write(&path, "nothing").unwrap();
        let error = with_credentials(ConnectOptions::new(), &path).map(drop).unwrap_err().to_string();
        assert!(error.contains("hub: it holds neither `user:password`"), "{error}");
    }
}
