use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyper::Uri;

use crate::telemetry::LogFormat;

/// The variable for [`Common::drain`].
pub const DRAIN_ENV: &str = "CASEBOOK_DRAIN";
/// The default of [`Common::drain`], in seconds.
pub const DRAIN: &str = "30";

#[derive(Debug, Clone, Args)]
pub struct Common {
    /// NATS server, or several of one cluster, separated by commas
    #[arg(long, value_name = "URL", value_parser = servers, default_value = "nats://127.0.0.1:4222")]
    pub nats: String,
    /// File with our credentials (user:password, an nkey seed, .creds), or a folder with one file for each user
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CREDENTIALS")]
    pub credentials: Option<PathBuf>,
    /// Certificate of the authority that signed the server's certificate (PEM)
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CA")]
    pub ca: Option<PathBuf>,
    /// Our own certificate, if the server requires one (PEM)
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CERT")]
    pub cert: Option<PathBuf>,
    /// Private key of our own certificate (PEM)
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_KEY")]
    pub key: Option<PathBuf>,
    /// Serve /live, /ready and /metrics over HTTP here; a port alone is on the loopback, 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub health: Option<SocketAddr>,
    /// How long running work may take to finish after a request to stop
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0, 3600), default_value = DRAIN)]
    pub drain: Duration,
    /// Format of log lines; CASEBOOK_LOG filters them
    #[arg(long, value_name = "FORM", env = "CASEBOOK_LOG_FORM", value_enum, default_value_t)]
    pub log: LogFormat,
    /// Send traces and metrics to this OpenTelemetry collector, over HTTP (OTLP, protobuf); default: that of
    /// OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL", value_parser = http)]
    pub otlp: Option<String>,
}

pub fn number<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|n| (least..=most).contains(n)).and_then(|n| T::try_from(n).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}, got {text:?}"))
    }
}

pub fn seconds(least: u64, most: u64) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| number(least, most)(text).map(Duration::from_secs)
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let on_loopback = || text.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let found = text.parse().ok().or_else(on_loopback);
    found.ok_or_else(|| format!("expected a port such as 8080, or an address such as 127.0.0.1:8080, got {text:?}"))
}

/// Checks the addresses of NATS servers, separated by commas. Passwords are rejected and not repeated, since `ps`,
/// logs and printed settings would show them.
pub fn servers(text: &str) -> Result<String, String> {
    for server in text.split(',').map(str::trim) {
        let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
        if rest.contains('@') {
            return Err("expected an address without user and password; put them in a file and name it with \
                        `credentials`"
                .to_owned());
        }
        let uri: Option<Uri> = format!("http://{}", rest.trim_end_matches('/')).parse().ok();
        let place = uri.as_ref().is_some_and(|uri| uri.path() == "/" && uri.query().is_none() && names_a_place(uri));
        if !["nats", "tls"].contains(&scheme) || !place {
            return Err(format!("expected a NATS server such as nats://127.0.0.1:4222, got {server:?}"));
        }
    }
    Ok(text.to_owned())
}

/// Checks the address of an HTTP server. Secrets are rejected and not repeated, since `ps`, logs and printed settings
/// would show them.
pub fn http(text: &str) -> Result<String, String> {
    if text.contains(['@', '?', '#']) {
        return Err("expected an address without user, password and query; put a collector's key into \
                    OTEL_EXPORTER_OTLP_HEADERS"
            .to_owned());
    }
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && names_a_place(uri);
    match text.parse::<Uri>() {
        Ok(uri) if web(&uri) => Ok(text.to_owned()),
        _ => Err(format!("expected an HTTP server such as http://127.0.0.1:4318, got {text:?}")),
    }
}

/// True if it has a host, and a valid port or none.
fn names_a_place(uri: &Uri) -> bool {
    let of = uri.authority().filter(|of| !of.host().is_empty());
    of.is_some_and(|of| of.port_u16().is_some() || of.as_str() == of.host())
}
