//! A team of real processes over a NATS server: Hubs, Directors, Critics and Experts with a scripted model.
//! Each process can be killed, paused and started again. All are killed on drop.

use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use casebook_cli::cluster::process::{self, Process};
use casebook_evidence::DOMAINS;
use casebook_protocol::Domain;
use casebook_runtime::nats::{self, Connection};
use casebook_runtime::service::health::Answer;
use rustix::process::Signal;

use crate::lab::{FORMS, models_file};
use crate::model::brain::Brain;
use crate::model::server::{Options, Server};
use crate::nats::Nats;
use crate::wait;
use crate::{Result, generate, run};

/// Maximum wait until a process is ready; it may first wait for a Hub and the server.
pub const READY: Duration = Duration::from_secs(60);
/// Bytes of a process's log to show when a test fails.
const TAIL: usize = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Hub,
    Director,
    Critic,
    /// An Expert for all domains of the evidence.
    Expert,
}

impl Part {
    pub const ALL: [Self; 4] = [Self::Hub, Self::Director, Self::Critic, Self::Expert];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Director => "director",
            Self::Critic => "critic",
            Self::Expert => "expert",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Shape {
    pub parts: Vec<(Part, usize)>,
    /// The lease of jobs, in seconds.
    pub lease: u64,
    /// How often a Hub sweeps, in seconds.
    pub sweep: u64,
    pub latency: Duration,
    /// The only domain of the Experts; `None` for all domains of the evidence.
    pub domain: Option<String>,
    /// Investigations of each Hub, and tasks of each Director and Critic, at once; `None` for the defaults.
    pub at_once: Option<usize>,
    /// Servers that store each message.
    pub replicas: usize,
    pub brain: Brain,
}

impl Shape {
    pub fn members(&self) -> Vec<Part> {
        self.parts.iter().flat_map(|(part, n)| std::iter::repeat_n(*part, *n)).collect()
    }
}

#[derive(Debug)]
pub struct Member {
    pub part: Part,
    pub name: String,
    command: Command,
    log: PathBuf,
    process: Option<Process>,
}

impl Member {
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }
}

/// Processes of a server. Dropping it kills them, and shows the ends of their logs if a test fails.
pub struct Processes {
    pub nats: Nats,
    pub members: Vec<Member>,
}

pub struct Team {
    pub model: Server,
    processes: Processes,
}

impl Deref for Team {
    type Target = Processes;

    fn deref(&self) -> &Processes {
        &self.processes
    }
}

impl DerefMut for Team {
    fn deref_mut(&mut self) -> &mut Processes {
        &mut self.processes
    }
}

impl Team {
    /// Starts a server, a model and a team, and waits until all are ready. Blocks.
    pub fn start(shape: &Shape) -> Result<Self> {
        let domains = DOMAINS.iter().map(|name| Domain::new(*name)).collect::<Result<Vec<_>, _>>()?;
        let local = |_: &str, program: &Path| process::serving(program);
        Self::start_on(shape, Nats::guarded_for(&domains)?, Ipv4Addr::LOCALHOST, &local)
    }

    /// Like [`Team::start`], with these servers, the model at `address`, and the commands that `made` makes of the name and
    /// the program of each process.
    pub fn start_on(
        shape: &Shape,
        nats: Nats,
        address: Ipv4Addr,
        made: &dyn Fn(&str, &Path) -> Command,
    ) -> Result<Self> {
        let named = |(part, n): &(Part, usize)| -> Vec<(Part, String)> {
            (1..=*n).map(|i| (*part, format!("{}-{i}", part.name()))).collect()
        };
        let names: Vec<(Part, String)> = shape.parts.iter().flat_map(named).collect();
        let keys = names.iter().map(|(_, name)| key(name)).collect();
        let options =
            Options { latency: shape.latency, numbered: true, keys, threads: 2, address, ..Options::default() };
        let model = Server::start(shape.brain.clone(), options)?;
        generate::write(&nats.folder().join("evidence"), 200_000, 7)?;
        let mut processes = Processes::of(nats);
        for (part, name) in names {
            let arguments = arguments(&processes.nats, &model.url(), part, &name, shape)?;
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let environment = [("CASEBOOK_LOG", "info,casebook_agent::worker=debug")];
            let command = made(&name, &run::program(&format!("casebook-{}", part.name())));
            processes.add_as(command, part, &name, &arguments, &environment);
        }
        processes.begin()?;
        Ok(Self { model, processes })
    }
}

fn arguments(nats: &Nats, model: &str, part: Part, name: &str, shape: &Shape) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    add("--log", "json".into());
    if let Some(at_once) = shape.at_once.filter(|_| part != Part::Expert) {
        add("--at-once", at_once.to_string());
    }
    add("--credentials", nats.credentials().display().to_string());
    if part == Part::Hub {
        add("--mac-key-file", nats.mac_key().display().to_string());
        add("--lease", shape.lease.to_string());
        add("--sweep", shape.sweep.to_string());
        add("--replicas", shape.replicas.to_string());
        return Ok(arguments);
    }
    let key = nats.write(&format!("{name}.key"), &key(name))?;
    let more = shape.at_once.map(|at_once| format!("concurrency = {at_once}")).unwrap_or_default();
    let models = models_file(model, FORMS[0], key.as_ref(), &more);
    add("--models", nats.write(&format!("{name}.models.toml"), &models)?);
    if part == Part::Expert {
        let domains = shape.domain.as_ref().map(|domain| format!("domains = [\"{domain}\"]\n")).unwrap_or_default();
        let profile = format!("evidence = \"evidence\"\nindex = \"{name}.index\"\n{domains}");
        add("--profile", nats.write(&format!("{name}.profile.toml"), &profile)?);
    }
    Ok(arguments)
}

impl Processes {
    pub const fn of(nats: Nats) -> Self {
        Self { nats, members: Vec::new() }
    }

    pub fn add(&mut self, part: Part, name: &str, arguments: &[&str], environment: &[(&str, &str)]) {
        let command = process::serving(&run::program(&format!("casebook-{}", part.name())));
        self.add_as(command, part, name, arguments, environment);
    }

    fn add_as(
        &mut self,
        mut command: Command,
        part: Part,
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) {
        command.args(["--nats", &self.nats.url()]).args(arguments).envs(environment.iter().copied());
        let log = log(self.nats.folder(), name);
        self.members.push(Member { part, name: name.to_owned(), command, log, process: None });
    }

    /// Starts all processes, the Hubs first, and waits until they are ready. Blocks.
    pub fn begin(&mut self) -> Result<()> {
        for part in Part::ALL {
            let members = self.members.iter().enumerate().filter(|(_, member)| member.part == part);
            let these: Vec<usize> = members.map(|(i, _)| i).collect();
            these.iter().try_for_each(|i| self.run(*i))?;
            if part == Part::Hub {
                these.iter().try_for_each(|i| self.ready(*i, READY))?;
            }
        }
        (0..self.members.len()).try_for_each(|i| self.ready(i, READY))
    }

    /// Starts a process without waiting for it.
    pub fn run(&mut self, i: usize) -> Result<()> {
        let member = self.members.get_mut(i).ok_or_else(|| format!("unknown process {i}"))?;
        member.process = Some(Process::start(&member.name, &mut member.command, &member.log)?);
        Ok(())
    }

    /// Waits until a process is ready. Fails with the end of its log. Blocks.
    pub fn ready(&mut self, i: usize, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        let folder = self.nats.folder().to_path_buf();
        let member = self.members.get_mut(i).ok_or_else(|| format!("unknown process {i}"))?;
        let mut reasons = String::new();
        while Instant::now() < end {
            let process = member.process.as_mut().ok_or_else(|| format!("{} is not running", member.name))?;
            if let Some(status) = process.ended() {
                return Err(format!("{} ended with {status}: {}", member.name, tail(&folder, &member.name)).into());
            }
            match process.ready() {
                Some(answer) if answer.ready => return Ok(()),
                Some(answer) => reasons = answer.reasons.join("; "),
                None => {}
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("{} is not ready: {reasons}\n{}", member.name, tail(&folder, &member.name)).into())
    }

    /// What a process answers about itself.
    pub fn health(&self, i: usize) -> Option<Answer> {
        self.members.get(i)?.process.as_ref()?.ready()
    }

    /// Kills a process (`kill -9`) if it runs.
    pub fn kill(&mut self, i: usize) {
        if let Some(mut process) = self.members.get_mut(i).and_then(|member| member.process.take()) {
            process.kill();
        }
    }

    pub fn signal(&mut self, i: usize, signal: Signal) {
        if let Some(process) = self.members.get_mut(i).and_then(|member| member.process.as_mut()) {
            process.signal(signal);
        }
    }

    /// Asks a process to stop, and waits for its end. Blocks.
    pub fn stop(&mut self, i: usize, patience: Duration) -> Result<std::process::ExitStatus> {
        self.signal(i, Signal::TERM);
        let process = self.members.get_mut(i).and_then(|member| member.process.as_mut());
        let process = process.ok_or_else(|| format!("process {i} is not running"))?;
        let ended = wait::found(patience, || process.ended());
        ended.ok_or_else(|| format!("process {i} does not stop within {patience:?}\n{}", self.tails()).into())
    }

    /// Pauses a process (`SIGSTOP`) or continues it.
    pub fn pause(&mut self, i: usize, pause: bool) {
        self.signal(i, signal(pause));
    }

    pub fn pause_server(&mut self, pause: bool) {
        self.nats.broker.signal(signal(pause));
    }

    /// The processes that ended by themselves.
    pub fn ended(&mut self) -> Vec<String> {
        let ended = self.members.iter_mut().filter_map(|member| {
            let status = member.process.as_mut()?.ended()?;
            Some(format!("{} ended by itself with {status}", member.name))
        });
        ended.collect()
    }

    /// The process that uses this key with the model.
    pub fn owner(&self, sent: &str) -> Option<usize> {
        self.members.iter().position(|member| key(&member.name) == sent)
    }

    /// A connection as the user of a Hub, which may read everything.
    pub async fn connection(&self) -> Result<Connection> {
        Ok(nats::connect(&self.nats.options("hub")).await?)
    }

    /// A connection that may send alerts.
    pub async fn publisher(&self) -> Result<Connection> {
        Ok(nats::connect(&self.nats.options("publisher")).await?)
    }

    pub fn logs(&self) -> Vec<(String, String)> {
        let read = |name: &str| std::fs::read_to_string(log(self.nats.folder(), name));
        self.members.iter().map(|member| (member.name.clone(), read(&member.name).unwrap_or_default())).collect()
    }

    pub fn tails(&self) -> String {
        let folder = self.nats.folder();
        self.members.iter().map(|member| format!("--- {}\n{}\n", member.name, tail(folder, &member.name))).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.tails());
        }
        (0..self.members.len()).for_each(|i| self.kill(i));
    }
}

const fn signal(pause: bool) -> Signal {
    if pause { Signal::STOP } else { Signal::CONT }
}

pub fn key(name: &str) -> String {
    format!("sk-of-{name}-never-to-be-seen")
}

fn log(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

fn tail(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(log(folder, name)).unwrap_or_default();
    let from = bytes.len().saturating_sub(TAIL);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}
