//! A NATS server as a child process: [`find`] looks for one and installs it, [`Broker`] runs it. For
//! tests and for a cluster on one machine; elsewhere whoever runs the machines runs the server.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::service::child::last_lines;

pub mod find;
mod install;

pub use find::{FindError, Places, Server};

/// How long a server may take until it accepts connections, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of the server's log that are worth repeating.
const COMPLAINT: usize = 5;

/// What went wrong with a server of our own.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// A file cannot be written, or the program not be run.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended at once.
    #[error("the NATS server ended ({status}); the end of {}: {log}", path.display())]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// Its log.
        path: PathBuf,
        /// The end of its log.
        log: String,
    },
    /// It does not answer.
    #[error("the NATS server accepts no connection after {} s; see {}", PATIENCE.as_secs(), path.display())]
    Silent {
        /// Its log.
        path: PathBuf,
    },
}

/// How a server is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    pub program: PathBuf,
    /// The folder for its store, its log and, where no file is given, its configuration. It is made
    /// where it is missing.
    pub folder: PathBuf,
    /// Its configuration; without one, anyone on this machine may do anything, and each append is
    /// synced to the disk before it is acknowledged.
    pub config: Option<PathBuf>,
    /// Its port on the loopback; 0 takes a free one.
    pub port: u16,
}

/// A NATS server that runs as our child. Dropped, it is killed.
#[derive(Debug)]
pub struct Broker {
    options: Options,
    child: Child,
}

/// What the server writes when it listens.
#[derive(Deserialize)]
struct Ports {
    nats: Vec<String>,
}

impl Broker {
    /// Starts a server and waits until it accepts connections. Blocks.
    ///
    /// # Errors
    /// [`BrokerError`] with the end of the server's log where it has one.
    pub fn start(mut options: Options) -> Result<Self, BrokerError> {
        let made = std::fs::create_dir_all(&options.folder);
        made.map_err(|source| BrokerError::Io { doing: "make", path: options.folder.clone(), source })?;
        let child = spawn(&options)?;
        // From here on the child is ours to end, whatever happens.
        let mut broker = Self { options: options.clone(), child };
        options.port = broker.accepting()?;
        broker.options = options;
        Ok(broker)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.options.port
    }

    /// Its address, without TLS.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.options.port)
    }

    /// The id of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        log_file(&self.options.folder)
    }

    /// How it ended; none while it runs.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends it at once, as a loss of power would end it.
    pub fn kill(&mut self) {
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, waits for that, and kills it when it takes too long. Blocks.
    pub fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        if matches!(self.child.try_wait(), Ok(None)) {
            // An error says that it has ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        self.kill();
    }

    /// Runs it again on the same port and store, and ends it before if it still runs. Blocks.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn restart(&mut self) -> Result<(), BrokerError> {
        self.kill();
        self.child = spawn(&self.options)?;
        self.accepting().map(drop)
    }

    /// Waits until it accepts connections; gives its port.
    fn accepting(&mut self) -> Result<u16, BrokerError> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                let path = self.log();
                let log = last_lines(&path, COMPLAINT);
                return Err(BrokerError::Ended { status, path, log });
            }
            if let Some(port) = listening(&self.options.folder, self.child.id())
                && greets(port)
            {
                return Ok(port);
            }
            std::thread::sleep(LOOK);
        }
        Err(BrokerError::Silent { path: self.log() })
    }
}

/// Ends a server that was left over in `folder` because whoever ran it was killed. Blocks.
pub fn end_left_over(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_prefix("nats-server_").and_then(|rest| rest.strip_suffix(".ports"));
        let Some(pid) = number.and_then(|n| n.parse().ok()).and_then(rustix::process::Pid::from_raw) else { continue };
        let end = Instant::now() + PATIENCE;
        // Numbers are used again: only what runs with this folder is ours.
        while runs_in(pid, folder) && Instant::now() < end {
            // An error says that it has ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            std::thread::sleep(LOOK * 10);
        }
        // What cannot be removed is looked at again the next time.
        let _ = std::fs::remove_file(&path);
    }
}

/// Whether the process `pid` is a server that keeps its store in `folder`.
fn runs_in(pid: rustix::process::Pid, folder: &Path) -> bool {
    let pid = pid.as_raw_nonzero().to_string();
    let said = Command::new("ps").args(["-o", "command=", "-p", &pid]).stdin(Stdio::null()).output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(&*folder.to_string_lossy()))
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("nats-server.log")
}

fn spawn(options: &Options) -> Result<Child, BrokerError> {
    let failed = |doing, path: &Path| {
        let path = path.to_path_buf();
        move |source| BrokerError::Io { doing, path, source }
    };
    let log = log_file(&options.folder);
    let out = OpenOptions::new().create(true).append(true).open(&log).map_err(failed("write", &log))?;
    let again = out.try_clone().map_err(failed("write", &log))?;
    let config = match &options.config {
        Some(config) => config.clone(),
        None => {
            let config = options.folder.join("nats-server.conf");
            std::fs::write(&config, "jetstream { sync_interval: always }\n").map_err(failed("write", &config))?;
            config
        }
    };
    let port = if options.port == 0 { "-1".to_owned() } else { options.port.to_string() };
    let mut command = Command::new(&options.program);
    command.args(["-js", "-a", &Ipv4Addr::LOCALHOST.to_string(), "-p", &port, "-c"]).arg(config);
    command.arg("-sd").arg(options.folder.join("store")).arg("--ports_file_dir").arg(&options.folder);
    // A group of its own: Ctrl-C in a terminal is for us, and we end the server last.
    command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(again);
    command.spawn().map_err(failed("run", &options.program))
}

/// The port on which the process `pid` says that it listens.
fn listening(folder: &Path, pid: u32) -> Option<u16> {
    let said = std::fs::read(folder.join(format!("nats-server_{pid}.ports"))).ok()?;
    let ports: Ports = serde_json::from_slice(&said).ok()?;
    ports.nats.iter().find_map(|url| url.rsplit_once(':')?.1.parse().ok())
}

/// Whether a NATS server greets at this port.
fn greets(port: u16) -> bool {
    let greeting = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut first = [0; 5];
        stream.read_exact(&mut first).map(|()| first)
    });
    greeting.is_ok_and(|first| &first == b"INFO ")
}

#[cfg(test)]
mod tests;
