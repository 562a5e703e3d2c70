//! A team on seven hosts with three servers: hosts are cut off, lost and restarted while it investigates. Runs only in
//! the sandbox of [`hosts::enter`](crate::hosts::enter).

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use casebook_cli::cluster::users;
use casebook_evidence::DOMAINS;
use casebook_protocol::{Domain, subject};
use casebook_runtime::nats::streams;
use rustix::process::Signal;

use super::Order;
use super::books::{Away, Ms};
use super::run::{Rig, Survived, now};
use crate::Result;
use crate::hosts::{Hosts, Slow};
use crate::nats::{self, Nats};
use crate::team::{Part, READY, Team};
use crate::wait;

const SERVERS: [&str; 3] = ["n1", "n2", "n3"];
/// The hosts of processes, each with the names of those that run there.
const PLACES: [(&str, &[&str]); 4] = [
    ("h1", &["hub-1"]),
    ("h2", &["hub-2"]),
    ("w1", &["director-1", "critic-1", "expert-1"]),
    ("w2", &["director-2", "critic-2", "expert-2"]),
];
/// From the alerts to the fault.
const BEFORE: Duration = Duration::from_millis(2_500);
const LOOK: Duration = Duration::from_millis(250);
/// How long servers may take to have the same after a restart. On a busy machine they elect several leaders.
const AGREED: Duration = Duration::from_secs(120);
/// The longest wait for one answer of a server.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a request that was sent into a cut may arrive after it.
const LATE: Ms = 15_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Case {
    /// The leader of the logs is cut off.
    Leader,
    /// One of three servers is killed, and comes back after the investigations.
    Server,
    /// A Hub is cut off beyond its lease while it lives.
    Hub,
    /// A Director, a Critic and an Expert are cut off beyond their leases.
    Worker,
    /// Two of three servers are killed and come back.
    Quorum,
    /// Servers and processes are restarted one by one.
    Rolling,
    /// The servers are far from each other.
    Slow,
}

impl Case {
    pub const ALL: [Self; 7] =
        [Self::Leader, Self::Server, Self::Hub, Self::Worker, Self::Quorum, Self::Rolling, Self::Slow];
}

/// What happened, with how long each case took from its alerts to the last report.
#[derive(Debug)]
pub struct Parted {
    pub cases: Vec<(Case, Duration)>,
    pub survived: Survived,
}

impl fmt::Display for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, took) in &self.cases {
            writeln!(f, "{case:?}: finished after {:.1} s", took.as_secs_f64())?;
        }
        write!(f, "{}", self.survived)
    }
}

/// Runs these cases one after the other with `order.investigations` alerts each. Hosts are cut off for `cut`. If they are
/// slow, a frame takes `far` from server to server, and half of that between a server and a process. Faults are part of
/// the answer, not an error.
pub fn run(order: &Order, cases: &[Case], cut: Duration, far: Duration) -> Result<Parted> {
    let mut order = order.clone();
    order.shape.parts = [Part::Hub, Part::Director, Part::Critic, Part::Expert].map(|part| (part, 2)).to_vec();
    order.shape.replicas = SERVERS.len();
    let mut site = Site::start(&order)?;
    let mut done = Vec::new();
    for case in cases {
        let begun = Instant::now();
        site.send(done.len() * order.investigations, order.investigations)?;
        std::thread::sleep(BEFORE);
        site.suffer(*case, cut, far).map_err(|e| format!("{case:?}: {e}"))?;
        let patience = if *case == Case::Slow { 3 * order.patience } else { order.patience };
        let open = site.rig.settle(patience, LOOK);
        done.push((*case, begun.elapsed()));
        let faults = open.into_iter().map(|what| format!("{case:?}: not finished after {patience:?}: {what}"));
        let faults: Vec<String> = faults.chain(site.rig.team.ended()).collect();
        if !faults.is_empty() {
            eprintln!("{}{}", site.rig.team.tails(), site.warnings());
            return Ok(Parted { cases: done, survived: Survived { seed: order.seed, faults, ..Survived::default() } });
        }
        site.slow.take().map(Slow::end).transpose()?;
        site.servers_again()?;
    }
    let mut survived = Survived { seed: order.seed, ..Survived::default() };
    site.rig.check(&mut survived)?;
    Ok(Parted { cases: done, survived })
}

struct Server {
    name: &'static str,
    config: PathBuf,
    child: Option<Child>,
}

struct Site {
    hosts: Hosts,
    slow: Option<Slow>,
    servers: Vec<Server>,
    rig: Rig,
}

impl Site {
    fn start(order: &Order) -> Result<Self> {
        let names: Vec<&str> = SERVERS.into_iter().chain(PLACES.map(|(host, _)| host)).collect();
        let hosts = Hosts::new(&names)?;
        let domains = DOMAINS.iter().map(|name| Domain::new(*name)).collect::<Result<Vec<_>, _>>()?;
        let urls = SERVERS.map(|name| format!("nats://{}:4222", hosts.address(name))).join(",");
        let nats = Nats::elsewhere(urls, &users::users(&domains))?;
        let accounts = std::fs::read_to_string(nats.folder().join("accounts.conf"))?;
        let mut servers = Vec::new();
        for name in SERVERS {
            let config =
                PathBuf::from(nats.write(&format!("{name}.conf"), &config(&hosts, name, nats.folder(), &accounts))?);
            servers.push(Server { name, config, child: None });
        }
        servers.iter_mut().try_for_each(|server| server.start(&hosts))?;
        let port = AtomicU16::new(8_400);
        let command = |name: &str, program: &Path| {
            let host = host_of(name);
            let health = format!("{}:{}", hosts.address(host), port.fetch_add(1, Ordering::Relaxed));
            let mut command = hosts.command(host, program);
            command.args(["--until-eof", "--health", &health]);
            command
        };
        let team = Team::start_on(&order.shape, nats, Hosts::driver(), &command)?;
        Ok(Self { servers, rig: Rig::of(team, order)?, hosts, slow: None })
    }

    /// What the servers warned of.
    fn warnings(&self) -> String {
        let logs = self.servers.iter().map(|server| {
            let log = std::fs::read_to_string(server.config.with_extension("log")).unwrap_or_default();
            let marks = ["[WRN]", "[ERR]", "[FTL]"];
            let lines = log.lines().filter(|line| marks.iter().any(|mark| line.contains(mark)));
            format!("--- {}\n{}\n", server.name, lines.collect::<Vec<_>>().join("\n"))
        });
        logs.collect()
    }

    fn send(&mut self, first: usize, count: usize) -> Result<()> {
        for n in first..first + count {
            let alert = self.rig.alert(n)?;
            // A publisher sends an alert until it is acknowledged.
            while self.rig.runtime.block_on(self.rig.publisher.store(subject::ALERTS, alert.clone())).is_err() {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn suffer(&mut self, case: Case, cut: Duration, far: Duration) -> Result<()> {
        match case {
            Case::Leader => {
                let leader = self.leader()?;
                self.cut(&leader, cut)
            }
            Case::Hub => self.cut("h1", cut),
            Case::Worker => self.cut("w1", cut),
            Case::Server => {
                let leader = self.leader()?;
                self.lose(&[leader.as_str()])
            }
            Case::Quorum => {
                self.lose(&["n2", "n3"])?;
                self.waits()?;
                self.servers_again()
            }
            Case::Rolling => self.rolling(),
            Case::Slow => self.far(far),
        }
    }

    /// Cuts a host off for a while.
    fn cut(&mut self, host: &str, length: Duration) -> Result<()> {
        let who: Vec<Option<usize>> = if SERVERS.contains(&host) {
            vec![None]
        } else {
            let members = self.rig.team.members.iter().enumerate();
            members.filter(|(_, member)| host_of(&member.name) == host).map(|(i, _)| Some(i)).collect()
        };
        let from = now();
        self.hosts.cut(host)?;
        std::thread::sleep(length);
        self.hosts.heal(host)?;
        let until = now();
        self.rig.away.extend(who.into_iter().map(|who| Away { who, from, until, late: LATE }));
        Ok(())
    }

    /// Kills servers.
    fn lose(&mut self, names: &[&str]) -> Result<()> {
        self.rig.away.push(Away { who: None, from: now(), until: now(), late: 2 * LATE });
        for server in self.servers.iter_mut().filter(|server| names.contains(&server.name)) {
            self.hosts.signal(server.name, Signal::KILL)?;
            server.child.take().map(|mut child| child.wait()).transpose()?;
        }
        Ok(())
    }

    /// Starts the servers that were lost, and waits until all have the same.
    fn servers_again(&mut self) -> Result<()> {
        for server in self.servers.iter_mut().filter(|server| server.child.is_none()) {
            server.start(&self.hosts)?;
        }
        if !wait::holds(AGREED, || self.leader().is_ok()) {
            self.leader().map_err(|why| format!("the servers do not agree: {why}"))?;
        }
        Ok(())
    }

    /// Every Hub must notice that the server stores nothing.
    fn waits(&self) -> Result<()> {
        let hubs = self.rig.team.members.iter().enumerate().filter(|(_, member)| member.part == Part::Hub);
        for (i, member) in hubs {
            if !wait::holds(READY, || self.rig.team.health(i).is_some_and(|answer| !answer.ready)) {
                return Err(format!("{} is ready without a majority of the servers", member.name).into());
            }
        }
        Ok(())
    }

    fn rolling(&mut self) -> Result<()> {
        for n in 0..self.servers.len() {
            self.rig.away.push(Away { who: None, from: now(), until: now(), late: LATE });
            let Some(server) = self.servers.get_mut(n) else { continue };
            self.hosts.signal(server.name, Signal::TERM)?;
            server.child.take().map(|mut child| child.wait()).transpose()?;
            self.servers_again()?;
        }
        for i in 0..self.rig.team.members.len() {
            let status = self.rig.team.stop(i, READY)?;
            if !status.success() {
                return Err(format!("process {i} ended with {status}").into());
            }
            self.rig.team.run(i)?;
            self.rig.team.ready(i, READY)?;
        }
        Ok(())
    }

    /// Moves the servers away from each other.
    fn far(&mut self, far: Duration) -> Result<()> {
        self.slow = Some(Slow::start(&SERVERS, far / 2)?);
        for name in SERVERS {
            let took = self.hosts.round_trip(name, 4222)?;
            if took < far {
                return Err(format!("expected a way of {far:?} to {name} and back, got {took:?}").into());
            }
        }
        Ok(())
    }

    /// The server that leads the stream of the logs. Fails unless the others follow.
    fn leader(&self) -> Result<String> {
        let client = self.rig.connection.client().clone();
        let found = self
            .rig
            .runtime
            .block_on(async { tokio::time::timeout(ANSWER, jetstream::new(client).get_stream(streams::LOG)).await });
        let cluster = found??.cached_info().cluster.clone().ok_or("the stream has no cluster")?;
        if let Some(peer) = cluster.replicas.iter().find(|peer| !peer.current || peer.offline) {
            return Err(format!("{} is behind: {peer:?}", peer.name).into());
        }
        cluster.leader.ok_or_else(|| "the stream has no leader".into())
    }
}

impl Server {
    fn start(&mut self, hosts: &Hosts) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.config.with_extension("log"))?;
        let mut command: Command = hosts.command(self.name, &nats::program()?);
        self.child = Some(command.arg("-c").arg(&self.config).stdout(log.try_clone()?).stderr(log).spawn()?);
        Ok(())
    }
}

fn host_of(name: &str) -> &'static str {
    PLACES.iter().find(|(_, names)| names.contains(&name)).map_or("h1", |(host, _)| host)
}

fn config(hosts: &Hosts, name: &str, folder: &Path, accounts: &str) -> String {
    let address = hosts.address(name);
    let routes = SERVERS.map(|name| format!("\"nats-route://{}:6222\"", hosts.address(name))).join(", ");
    let store = folder.join(name);
    format!(
        "server_name: {name}\nlisten: \"{address}:4222\"\njetstream {{ store_dir: \"{}\", sync_interval: always }}\n\
         cluster {{ name: casebook, listen: \"{address}:6222\", routes: [{routes}] }}\n{accounts}",
        store.display()
    )
}
