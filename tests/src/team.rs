//! A team of real processes over a real NATS server: Hubs, Directors, Critics and Experts with a scripted
//! model, each of which can be killed, paused and started again. All of them end with the team.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use casebook_agent::nats::{self, Connection};
use rustix::process::{Pid, Signal, kill_process};

use crate::generate;
use crate::lab::{FORMS, models_file};
use crate::model::brain::Brain;
use crate::model::server::{Options, Server};
use crate::nats::Nats;

mod programs;

/// How long a process may take until it is ready: it may first have to wait for a Hub and the server.
pub const READY: Duration = Duration::from_secs(60);
/// Bytes of a process's log that are shown when a test fails.
const TAIL: usize = 3_000;

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A Hub.
    Hub,
    /// A Director.
    Director,
    /// A Critic.
    Critic,
    /// An Expert for every domain of the evidence.
    Expert,
}

impl Part {
    /// All of them, in the order in which they are started.
    pub const ALL: [Self; 4] = [Self::Hub, Self::Director, Self::Critic, Self::Expert];

    /// Its name, as in that of its program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Director => "director",
            Self::Critic => "critic",
            Self::Expert => "expert",
        }
    }
}

/// How a team is made up.
#[derive(Debug, Clone)]
pub struct Shape {
    /// How many processes of each part.
    pub parts: Vec<(Part, usize)>,
    /// The lease of jobs, in seconds.
    pub lease: u64,
    /// How often a Hub sweeps, in seconds.
    pub sweep: u64,
    /// How long the model takes for a reply.
    pub latency: Duration,
    /// How the model plays.
    pub brain: Brain,
}

impl Shape {
    /// What each process is, in their order.
    #[must_use]
    pub fn members(&self) -> Vec<Part> {
        self.parts.iter().flat_map(|(part, n)| std::iter::repeat_n(*part, *n)).collect()
    }
}

/// A process of the team.
#[derive(Debug)]
pub struct Member {
    /// What it is.
    pub part: Part,
    /// Its name, such as `expert-1`.
    pub name: String,
    arguments: Vec<String>,
    child: Option<Child>,
    paused: bool,
}

/// A team. Dropped, all of its processes are killed; when a test fails, the ends of their logs are shown.
pub struct Team {
    /// The server.
    pub nats: Nats,
    /// The model.
    pub model: Server,
    /// The processes.
    pub members: Vec<Member>,
    programs: PathBuf,
}

impl Team {
    /// Starts a server, a model and a team, and waits until all of it is ready. Blocks.
    ///
    /// # Errors
    /// What went wrong, in words, with the log of the process that it concerns.
    pub fn start(shape: &Shape) -> Result<Self, String> {
        let nats = Nats::start()?;
        let names: Vec<(Part, String)> = shape
            .parts
            .iter()
            .flat_map(|(part, n)| (1..=*n).map(|i| (*part, format!("{}-{i}", part.name()))))
            .collect();
        let keys = names.iter().map(|(_, name)| key(name)).collect();
        let options = Options { latency: shape.latency, numbered: true, keys, threads: 2, ..Options::default() };
        let model = Server::start(shape.brain.clone(), options).map_err(|e| e.to_string())?;
        let evidence = nats.folder().join("evidence");
        generate::write(&evidence, 200_000, 7).map_err(|e| e.to_string())?;
        let mut team = Self { nats, model, members: Vec::new(), programs: programs::folder()? };
        for (part, name) in names {
            let arguments = team.arguments(part, &name, shape)?;
            team.members.push(Member { part, name, arguments, child: None, paused: false });
        }
        for part in Part::ALL {
            let these: Vec<usize> = (0..team.members.len()).filter(|i| team.is(*i, part)).collect();
            for i in &these {
                team.run(*i)?;
            }
            if part == Part::Hub {
                these.iter().try_for_each(|i| team.ready(*i, READY))?;
            }
        }
        (0..team.members.len()).try_for_each(|i| team.ready(i, READY))?;
        Ok(team)
    }

    fn is(&self, i: usize, part: Part) -> bool {
        self.members.get(i).is_some_and(|member| member.part == part)
    }

    fn arguments(&self, part: Part, name: &str, shape: &Shape) -> Result<Vec<String>, String> {
        let folder = self.nats.folder();
        let write = |name: String, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(path)
        };
        let url = self.nats.broker.url();
        let mut arguments: Vec<String> =
            ["--nats", &url, "--health", "127.0.0.1:0", "--log", "json"].map(str::to_owned).to_vec();
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        if part == Part::Hub {
            add("--lease", shape.lease.to_string());
            add("--sweep", shape.sweep.to_string());
            return Ok(arguments);
        }
        let key = write(format!("{name}.key"), &key(name))?;
        let form = FORMS.first().copied().unwrap_or_default();
        let models = write(format!("{name}.models.toml"), &models_file(&self.model.url(), form, &key, ""))?;
        add("--models", models.display().to_string());
        if part == Part::Expert {
            let profile = format!("evidence = \"evidence\"\nindex = \"{name}.index\"\n");
            add("--profile", write(format!("{name}.profile.toml"), &profile)?.display().to_string());
        }
        Ok(arguments)
    }

    /// Runs a process that does not run. It is not waited for.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn run(&mut self, i: usize) -> Result<(), String> {
        let folder = self.nats.folder().to_path_buf();
        let Some(member) = self.members.get_mut(i) else { return Err(format!("there is no process {i}")) };
        let program = self.programs.join(format!("casebook-{}", member.part.name()));
        let told = |e: std::io::Error| format!("{}: {e}", program.display());
        let out = File::create(folder.join(format!("{}.out", member.name))).map_err(told)?;
        let log = OpenOptions::new().create(true).append(true).open(folder.join(format!("{}.log", member.name)));
        let mut command = Command::new(&program);
        command.args(&member.arguments).env("CASEBOOK_LOG", "info,casebook_agent::worker=debug");
        command.stdin(Stdio::null()).stdout(out).stderr(log.map_err(told)?);
        member.child = Some(command.spawn().map_err(told)?);
        member.paused = false;
        Ok(())
    }

    /// Waits until a process says that it is ready. Blocks.
    ///
    /// # Errors
    /// It ended, or `patience` did; with the end of its log.
    pub fn ready(&mut self, i: usize, patience: Duration) -> Result<(), String> {
        let end = Instant::now() + patience;
        let folder = self.nats.folder().to_path_buf();
        let Some(member) = self.members.get_mut(i) else { return Err(format!("there is no process {i}")) };
        let mut said = String::new();
        while Instant::now() < end {
            if let Some(Ok(Some(status))) = member.child.as_mut().map(Child::try_wait) {
                return Err(format!("{} ended with {status}: {}", member.name, tail(&folder, &member.name)));
            }
            match address(&folder.join(format!("{}.out", member.name))).map(|address| get(&address, "/ready")) {
                Some(Ok(answer)) if answer.starts_with("HTTP/1.1 200") => return Ok(()),
                Some(Ok(answer)) => said = answer,
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("{} is not ready: {said}\n{}", member.name, tail(&folder, &member.name)))
    }

    /// Kills a process (`kill -9`). One that does not run stays as it is.
    pub fn kill(&mut self, i: usize) {
        if let Some(mut child) = self.members.get_mut(i).and_then(|member| member.child.take()) {
            // An error says that it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pauses a process (`SIGSTOP`) or lets it go on.
    pub fn pause(&mut self, i: usize, pause: bool) {
        let Some(member) = self.members.get_mut(i) else { return };
        member.paused = pause;
        if let Some(child) = &member.child {
            // An error says that it has ended.
            let _ = kill_process(Pid::from_child(child), if pause { Signal::STOP } else { Signal::CONT });
        }
    }

    /// Whether it runs and is not paused.
    #[must_use]
    pub fn runs(&self, i: usize) -> bool {
        self.members.get(i).is_some_and(|member| member.child.is_some() && !member.paused)
    }

    /// Whether a process has ended by itself, and how.
    pub fn ended(&mut self) -> Vec<String> {
        let ended = self.members.iter_mut().filter_map(|member| {
            let status = member.child.as_mut()?.try_wait().ok()??;
            Some(format!("{} ended by itself with {status}", member.name))
        });
        ended.collect()
    }

    /// The process that sends this key to the model.
    #[must_use]
    pub fn owner(&self, sent: &str) -> Option<usize> {
        self.members.iter().position(|member| key(&member.name) == sent)
    }

    /// A connection to the server as the user of a Hub, which may read everything.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub async fn connection(&self) -> Result<Connection, String> {
        nats::connect(&self.nats.options("hub")).await.map_err(|e| e.to_string())
    }

    /// The log of every process: a name and all its lines.
    #[must_use]
    pub fn logs(&self) -> Vec<(String, String)> {
        let read = |name: &str| std::fs::read_to_string(self.nats.folder().join(format!("{name}.log")));
        self.members.iter().map(|member| (member.name.clone(), read(&member.name).unwrap_or_default())).collect()
    }

    /// The ends of all logs.
    #[must_use]
    pub fn tails(&self) -> String {
        let folder = self.nats.folder();
        self.members.iter().map(|member| format!("--- {}\n{}\n", member.name, tail(folder, &member.name))).collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.tails());
        }
        (0..self.members.len()).for_each(|i| self.kill(i));
    }
}

/// The key with which the process of this name asks the model.
#[must_use]
pub fn key(name: &str) -> String {
    format!("sk-of-{name}-never-to-be-seen")
}

/// The address after `health http://` in what the process said.
pub(crate) fn address(out: &Path) -> Option<String> {
    let said = std::fs::read_to_string(out).ok()?;
    said.lines().find_map(|line| Some(line.split_once("health http://")?.1.trim().to_owned()))
}

pub(crate) fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn tail(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(folder.join(format!("{name}.log"))).unwrap_or_default();
    let from = bytes.len().saturating_sub(TAIL);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}
