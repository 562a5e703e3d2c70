//! Starts the processes of a team, waits until they are ready, detects one that ends, and stops all of them,
//! the server last.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use casebook_runtime::service::common::{DRAIN, DRAIN_ENV};
use rustix::process::Signal;

use super::Private;
use super::again::Again;
use super::process::Process;
use super::server::Server;
use crate::failure::Failure;
use crate::screen::{DIM, YELLOW, paint, safe, tell};
use crate::stop::Stop;

const LOOK: Duration = Duration::from_millis(100);
/// After this time, a member that is not ready is reported with the reason.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to end after draining.
const LAST_WORDS: Duration = Duration::from_secs(15);

/// How to start the server.
#[derive(Debug, Clone)]
pub(crate) struct Nats {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) config: PathBuf,
}

impl Nats {
    pub(crate) async fn start(&self, port: u16) -> Result<Server, Failure> {
        let Self { program, folder, config } = self.clone();
        let started = tokio::task::spawn_blocking(move || Server::start(&program, &folder, &config, port));
        started.await.map_err(Failure::defect)?
    }
}

/// A running team. All processes are killed on drop.
pub(crate) struct Team {
    pub(crate) members: Vec<Process>,
    pub(crate) server: Server,
    pub(crate) nats: Nats,
    pub(crate) again: Again,
}

impl Team {
    /// Waits until every member is ready, and reports each one. Fails if a process ends.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        report_ready(&self.server.process);
        for n in 0..self.members.len() {
            let mut late = Instant::now() + PATIENCE;
            loop {
                self.all_run().await?;
                let Some(member) = self.members.get(n) else { break };
                let answer = member.ready();
                if answer.as_ref().is_some_and(|answer| answer.ready) {
                    report_ready(member);
                    break;
                }
                if Instant::now() > late {
                    late += PATIENCE;
                    let why = answer.map_or_else(|| "it does not answer".to_owned(), |a| a.reasons.join("; "));
                    tell(paint(YELLOW, format_args!("{} is not ready: {}", member.name, safe(&why, 300))));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    pub(crate) async fn ended(&mut self) -> Failure {
        loop {
            if let Err(failure) = self.all_run().await {
                return failure;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Fails if a member has ended. Starts the server again if it has.
    async fn all_run(&mut self) -> Result<(), Failure> {
        for process in &mut self.members {
            if let Some(status) = process.ended() {
                return Err(stopping(process, status));
            }
        }
        let Some(status) = self.server.process.ended() else { return Ok(()) };
        let Some(pause) = self.again.after(Instant::now()) else {
            return Err(stopping(&self.server.process, status));
        };
        tell(paint(YELLOW, format_args!("nats-server ended by itself ({status}); starting it again")));
        tokio::time::sleep(pause).await;
        let _private = Private::begin();
        match self.nats.start(self.server.port).await {
            Ok(server) => self.server = server,
            Err(failure) => {
                // The next look tries again.
                tell(paint(YELLOW, safe(&failure.what, 300)));
                return Ok(());
            }
        }
        report_ready(&self.server.process);
        Ok(())
    }

    /// Lets every member finish its running tasks, ends them, then ends the server. `at_once` interrupts the
    /// wait. Fails if processes had to be killed.
    pub(crate) async fn stop(mut self, at_once: &mut Stop) -> Result<(), Failure> {
        tell(paint(DIM, "stopping after running tasks finish (press Ctrl-C again to stop at once)"));
        // Without the server, results cannot be recorded.
        let drain = if self.server.process.ended().is_some() { Duration::ZERO } else { drain() };
        let late = end(&mut self.members, drain + LAST_WORDS, at_once).await?;
        self.members.clear();
        end(std::slice::from_mut(&mut self.server.process), LAST_WORDS, at_once).await?;
        if late.is_empty() {
            return Ok(());
        }
        let what = format!("{} did not end in time and were killed", late.join(", "));
        Err(Failure::failed(what, "their running tasks are repeated when the team starts again"))
    }
}

/// Reports a process that ended by itself.
fn stopping(process: &Process, status: ExitStatus) -> Failure {
    let ended = format!("{} ended by itself ({status})", process.name);
    tell(paint(YELLOW, format_args!("{ended}; stopping the team")));
    let log = process.last_lines().unwrap_or_default();
    let what = format!("{ended}; the end of {}: {log}", process.log.display());
    match status.code() {
        Some(2) => Failure::usage(what, "correct the setting, then run the same command again"),
        _ => Failure::failed(what, "recorded results are safe; run the same command again to continue"),
    }
}

fn report_ready(process: &Process) {
    tell(paint(DIM, format_args!("{} is ready (process {})", process.name, process.id())));
}

/// Sends SIGTERM and waits. Returns the names of the processes that still run after `patience`.
async fn end(processes: &mut [Process], patience: Duration, at_once: &mut Stop) -> Result<Vec<String>, Failure> {
    processes.iter_mut().for_each(|process| process.signal(Signal::TERM));
    let end = Instant::now() + patience;
    loop {
        let running = processes.iter_mut().filter_map(|p| p.ended().is_none().then(|| p.name.clone()));
        let running: Vec<String> = running.collect();
        if running.is_empty() || Instant::now() > end {
            return Ok(running);
        }
        if at_once.within(LOOK).await {
            let advice = "recorded results are safe; run the same command again to continue";
            return Err(Failure::unfinished("stopped at once", advice));
        }
    }
}

fn drain() -> Duration {
    let set = std::env::var(DRAIN_ENV).ok().and_then(|text| text.parse().ok());
    Duration::from_secs(set.or_else(|| DRAIN.parse().ok()).unwrap_or_default())
}
