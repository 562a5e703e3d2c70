//! The settings that every process has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::key::{Key, Kind};
use super::settings::Settings;
use crate::telemetry::LogFormat;

/// The NATS servers.
pub static NATS: Key = Key {
    name: "nats",
    env: "CASEBOOK_NATS",
    kind: Kind::Servers,
    usual: Some("nats://127.0.0.1:4222"),
    value: "URL",
    help: "the NATS server, or several of one cluster, parted by commas",
};
/// Who we are to the server.
pub static CREDENTIALS: Key = Key {
    name: "credentials",
    env: "CASEBOOK_NATS_CREDENTIALS",
    kind: Kind::Path,
    usual: None,
    value: "FILE",
    help: "the file that says who we are (user:password, an nkey seed, .creds), or a folder with one for each user",
};
/// Whom we trust to be the server.
pub static CA: Key = Key {
    name: "ca",
    env: "CASEBOOK_NATS_CA",
    kind: Kind::Path,
    usual: None,
    value: "FILE",
    help: "the certificate of the authority that signed the server's (PEM)",
};
/// Our own certificate.
pub static CERT: Key = Key {
    name: "cert",
    env: "CASEBOOK_NATS_CERT",
    kind: Kind::Path,
    usual: None,
    value: "FILE",
    help: "our own certificate, where the server asks for one (PEM)",
};
/// The key of our own certificate.
pub static TLS_KEY: Key = Key {
    name: "key",
    env: "CASEBOOK_NATS_KEY",
    kind: Kind::Path,
    usual: None,
    value: "FILE",
    help: "the private key of our own certificate (PEM)",
};
/// Where health is answered.
pub static HEALTH: Key = Key {
    name: "health",
    env: "CASEBOOK_HEALTH",
    kind: Kind::Address,
    usual: None,
    value: "ADDRESS",
    help: "answer /live and /ready over HTTP here; a port alone is on the loopback, 0 takes a free one",
};
/// How long to finish what is under way.
pub static DRAIN: Key = Key {
    name: "drain",
    env: "CASEBOOK_DRAIN",
    kind: Kind::Number(0, 3600),
    usual: Some("30"),
    value: "SECONDS",
    help: "how long what is under way may take to end, once asked to stop",
};
/// How log lines look.
pub static LOG: Key = Key {
    name: "log",
    env: "CASEBOOK_LOG_FORM",
    kind: Kind::Word(&["text", "json"]),
    usual: Some("text"),
    value: "FORM",
    help: "how log lines look, text or json; CASEBOOK_LOG says which there are",
};

/// Where traces and metrics go.
pub static OTLP: Key = Key {
    name: "otlp",
    env: "CASEBOOK_OTLP",
    kind: Kind::Http,
    usual: None,
    value: "URL",
    help: "send traces and metrics to this OpenTelemetry collector, over HTTP (OTLP, protobuf); else where \
           OTEL_EXPORTER_OTLP_ENDPOINT says",
};

/// How much a worker does at a time.
pub static AT_ONCE: Key = Key {
    name: "at_once",
    env: "CASEBOOK_AT_ONCE",
    kind: Kind::Number(1, 1024),
    usual: None,
    value: "N",
    help: "tasks at once; what the role usually takes where it is not set",
};

/// What every process understands.
pub static KEYS: [&Key; 9] = [&NATS, &CREDENTIALS, &CA, &CERT, &TLS_KEY, &HEALTH, &DRAIN, &LOG, &OTLP];

/// The settings that every process has.
#[derive(Debug, Clone)]
pub struct Common {
    /// The NATS servers, parted by commas.
    pub nats: String,
    /// The file that says who we are, or a folder with one for each user.
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's.
    pub ca: Option<PathBuf>,
    /// Our own certificate.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// Where `/live` and `/ready` are answered.
    pub health: Option<SocketAddr>,
    /// How long what is under way may take to end.
    pub drain: Duration,
    /// How log lines look.
    pub log: LogFormat,
    /// The collector that traces and metrics are sent to.
    pub otlp: Option<String>,
}

impl Common {
    /// What `settings` say.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let path = |key| settings.path(key).map(std::path::Path::to_path_buf);
        Self {
            nats: settings.text(&NATS).to_owned(),
            credentials: path(&CREDENTIALS),
            ca: path(&CA),
            cert: path(&CERT),
            key: path(&TLS_KEY),
            health: settings.address(&HEALTH),
            drain: Duration::from_secs(settings.number(&DRAIN).unwrap_or_default()),
            log: if settings.text(&LOG) == "json" { LogFormat::Json } else { LogFormat::Text },
            otlp: Some(settings.text(&OTLP).to_owned()).filter(|url| !url.is_empty()),
        }
    }
}
