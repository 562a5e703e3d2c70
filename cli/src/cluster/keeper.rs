//! Keeps the processes of a team running: starts them, asks how they are, starts again what ended, and
//! stops them in their order, the server last. It has a thread of its own, since it waits for processes.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{self as orders, RecvTimeoutError};
use std::time::{Duration, Instant};

use casebook_runtime::broker::Broker;
use casebook_runtime::service::child::{Plan, Process, last_lines};
use casebook_runtime::service::common;
use tokio::sync::mpsc;

use crate::failure::Failure;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(250);
/// The first pause before what ended is started again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// What ran for so long did not fail at its start: the pause is the first one again.
const STEADY: Duration = Duration::from_secs(60);
/// What a process takes to end once its time to drain is over.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// The name of the server among the processes.
pub const SERVER: &str = "nats-server";

/// How a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It runs and takes no work yet, with the reason.
    NotReady(String),
    /// It takes work.
    Ready,
    /// It ended and is started again soon.
    Down,
    /// It finishes what is under way.
    Stopping,
    /// It was stopped.
    Stopped,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its number in the system, while it runs.
    pub pid: Option<u32>,
    /// How it is.
    pub state: State,
    /// Tasks, or investigations, under way.
    pub under_way: u64,
    /// How often it was started again.
    pub restarts: u32,
}

/// What the keeper says.
#[derive(Debug)]
pub enum Note {
    /// How all processes are; said whenever something changed.
    Rows(Vec<Row>),
    /// Something went wrong, or right again.
    Said(String),
    /// Nothing runs any more.
    Over(Result<(), Failure>),
}

enum Order {
    Stop,
    Kill,
}

/// The keeper of a team. Dropped, it kills all of it.
#[derive(Debug)]
pub struct Keeper {
    orders: orders::Sender<Order>,
}

struct Kept {
    name: String,
    plan: Plan,
    process: Option<Process>,
    started: Instant,
    again: Instant,
    failures: u32,
    row: Row,
    was_ready: bool,
    /// It ended and is not ready again since.
    fell: bool,
}

/// What runs in the thread.
struct Team {
    broker: Broker,
    server: Row,
    again: Option<Instant>,
    failures: u32,
    started: Instant,
    members: Vec<Kept>,
    notes: mpsc::Sender<Note>,
    last: Vec<Row>,
}

impl Keeper {
    /// Keeps a server that runs, and starts and keeps the processes of `plans`, each with its name.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(broker: Broker, plans: Vec<(String, Plan)>) -> std::io::Result<(Self, mpsc::Receiver<Note>)> {
        let (orders, given) = orders::channel();
        let (notes, told) = mpsc::channel(256);
        let now = Instant::now();
        let row = |name: &str| Row {
            name: name.to_owned(),
            pid: None,
            state: State::NotReady("it starts".to_owned()),
            under_way: 0,
            restarts: 0,
        };
        let kept = |(name, plan): (String, Plan)| Kept {
            row: row(&name),
            name,
            plan,
            process: None,
            started: now,
            again: now,
            failures: 0,
            was_ready: false,
            fell: false,
        };
        let members = plans.into_iter().map(kept).collect();
        let server = row(SERVER);
        let team = Team { broker, server, again: None, failures: 0, started: now, members, notes, last: Vec::new() };
        std::thread::Builder::new().name("keeper".into()).spawn(move || team.run(&given))?;
        Ok((Self { orders }, told))
    }

    /// Lets every process finish what is under way and ends it, the server last.
    pub fn stop(&self) {
        // An error says that nothing runs any more.
        let _ = self.orders.send(Order::Stop);
    }

    /// Ends everything at once.
    pub fn kill(&self) {
        let _ = self.orders.send(Order::Kill);
    }
}

/// The pause after so many failures in a row.
fn pause(failures: u32) -> Duration {
    PAUSE.0.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(PAUSE.1)
}

/// How a process ended: what it said last where it ended by itself, and where all that it said is.
fn how(status: ExitStatus, log: &Path) -> String {
    let by_others = matches!(status.signal(), Some(9 | 15));
    let last = if by_others { String::new() } else { last_lines(log, 1) };
    let said = if last.is_empty() { last } else { format!(": {last}") };
    format!("ended ({status}){said} (see {})", log.display())
}

impl Kept {
    /// Looks after it. What must be said is said; a failure ends the team.
    fn tick(&mut self, say: &dyn Fn(String)) -> Result<(), Failure> {
        let Some(process) = &mut self.process else {
            if Instant::now() >= self.again {
                self.begin(say);
            }
            return Ok(());
        };
        if let Some(status) = process.ended() {
            let how = how(status, &self.plan.log);
            if status.code() == Some(2) && !self.was_ready {
                // A wrong setting is not mended by starting again.
                let what = format!("{} {how}", self.name);
                return Err(Failure::usage(what, "mend that, then run the same command again"));
            }
            self.failed(&how, say);
            return Ok(());
        }
        self.row.pid = Some(process.id());
        match process.ready() {
            Some(answer) => {
                self.row.under_way = answer.under_way;
                if answer.ready && std::mem::take(&mut self.fell) {
                    say(format!("{} is ready again", self.name));
                }
                self.was_ready |= answer.ready;
                self.row.state = if answer.ready { State::Ready } else { State::NotReady(answer.reasons.join("; ")) };
            }
            None if self.row.state == State::Ready => self.row.state = State::NotReady("it does not answer".into()),
            None => {}
        }
        if self.started.elapsed() > STEADY {
            self.failures = 0;
        }
        Ok(())
    }

    fn begin(&mut self, say: &dyn Fn(String)) {
        self.started = Instant::now();
        match Process::start(&self.plan) {
            Ok(process) => {
                self.row.pid = Some(process.id());
                self.row.state = State::NotReady("it starts".to_owned());
                self.process = Some(process);
            }
            Err(error) => self.failed(&format!("cannot be run: {error}"), say),
        }
    }

    fn failed(&mut self, how: &str, say: &dyn Fn(String)) {
        self.failures += 1;
        let pause = pause(self.failures);
        say(format!("{} {how}; it is started again in {} s", self.name, pause.as_secs()));
        self.process = None;
        self.fell = true;
        self.again = Instant::now() + pause;
        self.row =
            Row { pid: None, state: State::Down, under_way: 0, restarts: self.row.restarts + 1, ..self.row.clone() };
    }
}

impl Team {
    fn run(mut self, orders: &orders::Receiver<Order>) {
        let over = loop {
            if let Err(failure) = self.tick() {
                break self.stop(orders).and(Err(failure));
            }
            match orders.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Order::Stop) => break self.stop(orders),
                Ok(Order::Kill) | Err(RecvTimeoutError::Disconnected) => break self.kill(),
            }
        };
        // Nobody listens any more when the command was given up.
        let _ = self.notes.blocking_send(Note::Over(over));
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let notes = self.notes.clone();
        let say = |text: String| drop(notes.blocking_send(Note::Said(text)));
        self.server(&say);
        for member in &mut self.members {
            member.tick(&say)?;
        }
        self.show();
        Ok(())
    }

    fn server(&mut self, say: &dyn Fn(String)) {
        if let Some(again) = self.again {
            if Instant::now() < again {
                return;
            }
            self.started = Instant::now();
            match self.broker.restart() {
                Ok(()) => {
                    self.again = None;
                    say(format!("{SERVER} runs again"));
                }
                Err(error) => self.server_failed(&format!("cannot start: {error}"), say),
            }
        } else if let Ok(Some(status)) = self.broker.ended() {
            self.server_failed(&how(status, &self.broker.log()), say);
        } else {
            self.server.pid = Some(self.broker.pid());
            self.server.state = State::Ready;
            if self.started.elapsed() > STEADY {
                self.failures = 0;
            }
        }
    }

    fn server_failed(&mut self, how: &str, say: &dyn Fn(String)) {
        self.failures += 1;
        let pause = pause(self.failures);
        say(format!("{SERVER} {how}; it is started again in {} s", pause.as_secs()));
        self.again = Some(Instant::now() + pause);
        self.server.restarts += 1;
        self.server.pid = None;
        self.server.state = State::Down;
    }

    fn show(&mut self) {
        let rows: Vec<Row> =
            std::iter::once(&self.server).chain(self.members.iter().map(|member| &member.row)).cloned().collect();
        if rows != self.last {
            self.last.clone_from(&rows);
            // A full channel: the next rows say more than these.
            let _ = self.notes.try_send(Note::Rows(rows));
        }
    }

    /// Lets everyone finish what is under way.
    fn stop(&mut self, orders: &orders::Receiver<Order>) -> Result<(), Failure> {
        for member in &mut self.members {
            member.row.state = State::Stopped;
            if let Some(process) = &mut member.process {
                process.terminate();
                member.row.state = State::Stopping;
            }
        }
        let end = Instant::now() + drain() + LAST_WORDS;
        let mut late = Vec::new();
        loop {
            for member in self.members.iter_mut().filter(|member| member.row.state == State::Stopping) {
                let ended = member.process.as_mut().is_none_or(|process| process.ended().is_some());
                if ended || Instant::now() > end {
                    if !ended {
                        late.push(member.name.clone());
                    }
                    member.process = None;
                    member.row = Row { pid: None, state: State::Stopped, under_way: 0, ..member.row.clone() };
                }
            }
            self.show();
            if self.members.iter().all(|member| member.process.is_none()) {
                break;
            }
            if let Ok(Order::Kill) | Err(RecvTimeoutError::Disconnected) = orders.recv_timeout(LOOK) {
                return self.kill();
            }
        }
        self.broker.stop();
        self.server = Row { pid: None, state: State::Stopped, ..self.server.clone() };
        self.show();
        if late.is_empty() {
            return Ok(());
        }
        let what = format!("{} did not end in time and were killed", late.join(", "));
        Err(Failure::failed(what, "what they had under way is done again when the team starts again"))
    }

    fn kill(&mut self) -> Result<(), Failure> {
        for member in &mut self.members {
            member.process = None;
        }
        self.broker.kill();
        Err(Failure {
            exit: crate::failure::Exit::Unfinished,
            what: "stopped at once".into(),
            advice: "what is recorded is safe: the same command goes on from there".into(),
        })
    }
}

/// How long processes take to finish what is under way.
fn drain() -> Duration {
    let usual = || common::DRAIN.usual.and_then(|usual| usual.parse().ok());
    let set = std::env::var(common::DRAIN.env).ok().and_then(|text| text.parse().ok());
    Duration::from_secs(set.or_else(usual).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_a_limit() {
        let seconds: Vec<u64> = (1..9).map(|n| pause(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(pause(u32::MAX).as_secs(), 30);
    }
}
