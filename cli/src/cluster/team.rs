//! Starts the processes of a team, waits until they are ready, detects one that ends, and stops all of them,
//! the server last.

use std::time::{Duration, Instant};

use casebook_runtime::service::common::{DRAIN, DRAIN_ENV};
use rustix::process::Signal;

use super::process::Process;
use crate::failure::Failure;
use crate::screen::{DIM, YELLOW, paint, safe, tell};
use crate::stop::Stop;

const LOOK: Duration = Duration::from_millis(100);
/// After this time, a member that is not ready is reported with the reason.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to end after draining.
const LAST_WORDS: Duration = Duration::from_secs(15);

/// A running team. All processes are killed on drop.
pub(crate) struct Team {
    pub(crate) members: Vec<Process>,
    pub(crate) server: Process,
}

impl Team {
    /// Waits until every member is ready, and reports each one. Fails if a process ends.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        report_ready(&self.server);
        for n in 0..self.members.len() {
            let mut late = Instant::now() + PATIENCE;
            loop {
                self.all_run()?;
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
            if let Err(failure) = self.all_run() {
                return failure;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn all_run(&mut self) -> Result<(), Failure> {
        for process in self.members.iter_mut().chain([&mut self.server]) {
            let Some(status) = process.ended() else { continue };
            let ended = format!("{} ended by itself ({status})", process.name);
            tell(paint(YELLOW, format_args!("{ended}; stopping the team")));
            let log = process.last_lines().unwrap_or_default();
            let what = format!("{ended}; the end of {}: {log}", process.log.display());
            return Err(match status.code() {
                Some(2) => Failure::usage(what, "correct the setting, then run the same command again"),
                _ => Failure::failed(what, "recorded results are safe; run the same command again to continue"),
            });
        }
        Ok(())
    }

    /// Lets every member finish its running tasks, ends them, then ends the server. `at_once` interrupts the
    /// wait. Fails if processes had to be killed.
    pub(crate) async fn stop(mut self, at_once: &mut Stop) -> Result<(), Failure> {
        tell(paint(DIM, "stopping after running tasks finish (press Ctrl-C again to stop at once)"));
        // Without the server, results cannot be recorded.
        let drain = if self.server.ended().is_some() { Duration::ZERO } else { drain() };
        let late = end(&mut self.members, drain + LAST_WORDS, at_once).await?;
        self.members.clear();
        end(std::slice::from_mut(&mut self.server), LAST_WORDS, at_once).await?;
        if late.is_empty() {
            return Ok(());
        }
        let what = format!("{} did not end in time and were killed", late.join(", "));
        Err(Failure::failed(what, "their running tasks are repeated when the team starts again"))
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
