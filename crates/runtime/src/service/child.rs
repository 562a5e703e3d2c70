//! A process that serves, as our child: a cluster on one machine runs its processes so, and so do tests.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::health::Answer;

/// How long an answer about health is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How a process is started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; that it answers health on a free port, and ends with us, is added.
    pub arguments: Vec<OsString>,
    /// Variables of its environment besides ours.
    pub environment: Vec<(String, OsString)>,
    /// Variables of our environment that it does not get.
    pub without: Vec<&'static str>,
    /// Where its log lines are added.
    pub log: PathBuf,
}

/// A process of ours. Dropped, it is killed; when we die, it drains and ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    said: PathBuf,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// The program cannot be run, or its log not be written.
    pub fn start(plan: &Plan) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(&plan.log)?;
        let said = plan.log.with_extension("out");
        let mut command = Command::new(&plan.program);
        command.args(&plan.arguments).args(["--health", "0", "--until-eof"]).envs(plan.environment.iter().cloned());
        for name in &plan.without {
            command.env_remove(name);
        }
        // A group of its own: Ctrl-C in a terminal is for us, who end the processes in their order.
        command.process_group(0).stdin(Stdio::piped()).stdout(File::create(&said)?).stderr(log);
        Ok(Self { child: command.spawn()?, said })
    }

    /// Its number in the system.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it answers health; none before it does.
    #[must_use]
    pub fn health(&self) -> Option<SocketAddr> {
        let said = std::fs::read_to_string(&self.said).ok()?;
        let (_, address) = said.lines().find_map(|line| line.split_once(" health http://"))?;
        address.parse().ok()
    }

    /// What it says of itself; none when it does not answer.
    #[must_use]
    pub fn ready(&self) -> Option<Answer> {
        let (_, body) = get(self.health()?, "/ready").ok()?;
        serde_json::from_str(&body).ok()
    }

    /// How it ended; none while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to drain and end.
    pub fn terminate(&mut self) {
        if self.ended().is_none() {
            let pid = rustix::process::Pid::from_child(&self.child);
            // An error says that it has ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Waits until it has ended, for so long at the most. Blocks.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            match self.ended() {
                None if Instant::now() < end => std::thread::sleep(LOOK),
                ended => return ended,
            }
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The status and the body of what is answered at `path`.
///
/// # Errors
/// Nobody answers, or what answers does not speak HTTP.
pub fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.take(64 * 1024).read_to_string(&mut text)?;
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "this is no answer over HTTP");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(odd)?;
    Ok((status, body.to_owned()))
}

/// The last lines of a log, joined: what a process that ended said of it.
#[must_use]
pub fn last_lines(log: &Path, lines: usize) -> String {
    let Ok(mut file) = File::open(log) else { return String::new() };
    let length = file.metadata().map_or(0, |about| about.len());
    let mut bytes = Vec::new();
    // What cannot be read is not shown: the path of the log is.
    let _ = io::Seek::seek(&mut file, io::SeekFrom::Start(length.saturating_sub(16 * 1024)));
    let _ = file.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join(" / ")
}
