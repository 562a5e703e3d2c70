//! The `casebook-api` program: settings and main loop. It reads the logs of a team over NATS, and stores nothing but an
//! index that can be rebuilt.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_index::Index;
use casebook_runtime::clock::SystemClock;
use casebook_runtime::files;
use casebook_runtime::nats;
use casebook_runtime::service::common::number;
use casebook_runtime::service::work::{connected_with, options as connection_options, shown};
use casebook_runtime::service::{Failure, Program, Service};
use clap::Args;

use crate::cases::Cases;
use crate::http::{Config, access, listen};

const USER: &str = "reader";
/// The name of the key file in the data folder.
const KEY: &str = "access.key";
/// The fewest characters of a key, as many as 128 bits have in hexadecimal.
const SHORTEST: usize = 32;

pub const PROGRAM: Program = Program {
    name: "casebook-api",
    about: "The pages and the HTTP API over the investigations of a team. It only reads, as the NATS user `reader`. \
            Start as many as you like, each with its own folder.",
};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The port for the pages and the API; 0 chooses a free one
    #[arg(long, value_name = "PORT", env = "CASEBOOK_API_PORT", value_parser = number::<u16>(0, 65_535), default_value = "7420")]
    pub port: u16,
    /// The address for the pages and the API. Use an address other than the loopback only in a container, and publish
    /// its port on the loopback of the host. Requests must name 127.0.0.1 or localhost. The server has no TLS
    #[arg(long, value_name = "IP", env = "CASEBOOK_API_ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// The folder for the index of investigations, which is rebuilt if it is missing
    #[arg(long, value_name = "DIR", env = "CASEBOOK_API_DATA", default_value = ".casebook-api")]
    pub data: PathBuf,
    /// The file with the key that opens the pages, created if it is missing; by default access.key in the data
    /// folder. Sessions of browsers outlive a restart with the same key and port
    #[arg(long, value_name = "FILE")]
    pub access_key_file: Option<PathBuf>,
    /// The key that signs what Hubs write; with it, what no Hub wrote is skipped and reported
    #[arg(long, value_name = "FILE")]
    pub mac_key_file: Option<PathBuf>,
}

/// Serves until the process is asked to stop.
///
/// # Errors
/// A file or a setting cannot be used, or the server is too old: waiting cannot solve it.
pub async fn serve(mut process: Service, options: Options) -> Result<(), Failure> {
    process.health.queue(USER, |_| {});
    process.health.preparing(None);
    files::private_folder(&options.data).map_err(|e| {
        Failure::usage(format!("cannot create {}: {e}; set another with --data", options.data.display()))
    })?;
    let file = options.access_key_file.clone().unwrap_or_else(|| options.data.join(KEY));
    let key = access_key(&file).map_err(Failure::usage)?;
    if options.mac_key_file.is_none() {
        tracing::warn!("no mac_key_file is set; forged entries of logs are shown as if a Hub had written them");
    }
    let connecting =
        nats::Options { mac_key: options.mac_key_file.clone(), ..connection_options(&process.common, USER) };
    let Some(connection) = connected_with(&mut process, connecting).await? else { return Ok(()) };
    let index = Index::open(&options.data).map_err(Failure::failed)?;
    let cases = Arc::new(Cases::new(connection.env().store, index));
    let address = SocketAddr::from((options.address, options.port));
    let config = Config { cases, team: None, clock: Arc::new(SystemClock), key, address, contained: true };
    let listening = listen(config)
        .await
        .map_err(|error| Failure::usage(format!("{error}; choose another port with --port, or --port 0")))?;
    let bound = listening.address;
    tracing::info!(address = %bound, key_file = %file.display(), "serving pages and API");
    // On standard output, so that a caller that gave port 0 can read the port. The output may be closed.
    let _ = writeln!(std::io::stdout(), "{} pages http://{bound} key file {}", PROGRAM.name, file.display());
    // Only now is it ready: who waits for that reads the address next.
    process.health.queue(USER, |queue| (queue.connected, queue.joined) = (true, true));
    let mut stop = process.stop.clone();
    tokio::select! {
        () = listening.serve(async move { stop.wait().await }) => {}
        () = shown(&process, &connection, USER, async || 0) => {}
    }
    Ok(())
}

/// The key in `file`, which is created with a new one if it is missing.
///
/// # Errors
/// What is wrong with the file, and what to do.
pub fn access_key(file: &Path) -> Result<String, String> {
    let wrong = |why: String| format!("cannot use the key file {}: {why}", file.display());
    if std::fs::symlink_metadata(file).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        created(file).map_err(|e| wrong(format!("{e}; create its folder, or name another file")))?;
    }
    if let Some(mode) = files::loose(file).map_err(|e| wrong(e.to_string()))? {
        return Err(wrong(format!(
            "expected a file that only its owner can read, got mode {:04o}; run `chmod 600`",
            mode & 0o777
        )));
    }
    let text = files::text(file, "key").map_err(|e| wrong(e.reason))?;
    let key = text.trim();
    let fits = key.len() >= SHORTEST && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !fits {
        let expected = format!("expected at least {SHORTEST} letters and digits");
        return Err(wrong(format!("{expected}; delete the file to get a new key")));
    }
    Ok(key.to_owned())
}

/// Creates `file` with a new key. If another process does so at the same time, its key stays.
fn created(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(whole, "{}", access::secret()?)?;
    whole.as_file().sync_all()?;
    match whole.persist_noclobber(file) {
        Err(failed) if failed.error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => Ok(()),
    }
}
