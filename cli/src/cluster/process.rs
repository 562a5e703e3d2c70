//! A child process of a team: the NATS server, or a program that reports its health.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use casebook_runtime::service::health::Answer;
use casebook_runtime::service::healthy;
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// Bytes to read at the end of a log to find its last lines.
const TAIL: u64 = 16 * 1024;

/// A child process. It is killed on drop; if we die, its standard input ends.
#[derive(Debug)]
pub struct Process {
    pub name: String,
    pub log: PathBuf,
    child: Child,
}

/// The command for one of our programs: reports health on a free port, and drains when its input ends.
pub fn serving(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--health", "0", "--until-eof"]);
    command
}

impl Process {
    /// Starts `command` and appends its standard error to `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let files = File::create(printed(log)).and_then(|out| {
            let errors = OpenOptions::new().create(true).append(true).open(log)?;
            Ok((out, errors))
        });
        let (out, errors) = files.map_err(|e| Failure::write(log, &e))?;
        // Ctrl-C in a terminal signals the whole process group, but the team must end in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|e| {
            let what = format!("cannot run {}: {e}", command.get_program().display());
            Failure::failed(what, "build all programs: cargo build --release --workspace --bins")
        })?;
        Ok(Self { name: name.to_owned(), log: log.to_path_buf(), child })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, or `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its health report, or `None` if it does not answer. Blocks for a moment.
    pub fn ready(&self) -> Option<Answer> {
        healthy::answer(self.serves("health")?).ok()
    }

    /// Where it serves `what`, as it printed; `None` if it does not yet.
    pub fn serves(&self, what: &str) -> Option<SocketAddr> {
        let printed = std::fs::read_to_string(printed(&self.log)).ok()?;
        let place = |line: &str| line.split_once(&format!(" {what} http://"))?.1.split(' ').next()?.parse().ok();
        // A line is whole when it has its end.
        printed.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).find_map(place)
    }

    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // An error means that it has ended.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    pub fn kill(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn last_lines(&self) -> io::Result<String> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut last: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(5).collect();
        last.reverse();
        Ok(last.join(" / "))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The file beside `log` for standard output, which contains addresses.
fn printed(log: &Path) -> PathBuf {
    log.with_extension("out")
}
